//! OpenClaw's and Pi's records: one grammar, two programs.

mod text;

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use tidings_protocol::EpochMs;
use tidings_protocol::marker::{Carried, ThreadFacts};

use super::json::members;
use super::sieve::{Needle, Wanted};
use super::{Before, Judged, Record, Ruling, Source, Traces, Value, Words, short_version, time};

/// Every record type that this build knows, for telling a record from a piece of one.
pub(super) const TYPES: &[&str] = &[
    "session",
    "message",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "session_info",
    "model_change",
    "thinking_level_change",
    "title",
];

static USER: Needle = LazyLock::new(|| Finder::new("\"user\""));
static BASH: Needle = LazyLock::new(|| Finder::new("\"bashExecution\""));
static ASSISTANT: Needle = LazyLock::new(|| Finder::new("\"assistant\""));
static HEADER: Needle = LazyLock::new(|| Finder::new("\"session\""));

/// What a line that matters contains; a reply only while one is waited for.
pub(super) fn wanted(carried: &Carried) -> Wanted {
    let facts = &carried.facts;
    let awaits_reply = facts.last_text.is_some() && !facts.replied;
    let others = [
        Some(&BASH),
        awaits_reply.then_some(&ASSISTANT),
        (!facts.headed).then_some(&HEADER),
    ];
    Wanted::Needles((&USER, others))
}

/// True for a path in Pi's own directories: `.pi/…/--<cwd>--/…`.
pub(super) fn is_pi_path(path: &Path) -> bool {
    let is_encoded_cwd =
        |name: &str| name.len() > 4 && name.starts_with("--") && name.ends_with("--");
    path.iter()
        .any(|part| part == ".pi" || part.to_str().is_some_and(is_encoded_cwd))
}

/// The deciding members of one record; of a member given twice the last one.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<Value<'a>>,
    id: Option<Value<'a>>,
    timestamp: Option<Value<'a>>,
    version: Option<Value<'a>>,
    parent_session: Option<Value<'a>>,
    branched_from: Option<Value<'a>>,
    message: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads a JSON object; `None` where it does not close.
    fn of(record: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        members(record, |key, value| {
            let slot = match key {
                b"type" => &mut fields.kind,
                b"id" => &mut fields.id,
                b"timestamp" => &mut fields.timestamp,
                b"version" => &mut fields.version,
                b"parentSession" => &mut fields.parent_session,
                b"branchedFrom" => &mut fields.branched_from,
                b"message" => &mut fields.message,
                _ => return,
            };
            *slot = Some(value);
        })?;
        Some(fields)
    }

    /// The entry's id. The header's is the thread's: it survives every rewrite.
    fn id(&self) -> Option<String> {
        if self.kind.is_some_and(|kind| kind.is("session")) {
            return None;
        }
        let id = self.id?.text()?;
        (!id.is_empty()).then(|| id.into_owned())
    }

    /// The entry's time, else the one of its message.
    fn at(&self) -> Option<EpochMs> {
        let inner = || time::of(self.message?.get("timestamp")?);
        self.timestamp.and_then(time::of).or_else(inner)
    }

    fn role(&self) -> Option<Cow<'a, str>> {
        self.message?.get("role")?.text()
    }
}

/// What a record of any type leaves behind.
pub(super) fn traces(record: &[u8]) -> Option<Traces> {
    let fields = Fields::of(record)?;
    Some(Traces {
        id: fields.id(),
        at: fields.at(),
        ..Traces::default()
    })
}

/// Judges one record.
pub(super) fn judge(
    source: Source,
    record: Record<'_>,
    before: &dyn Before,
    carried: &mut Carried,
) -> Judged {
    let fields = Fields::of(record.bytes).unwrap_or_default();
    let facts = &mut carried.facts;
    let (ruling, words) = match fields.kind.and_then(Value::text).as_deref() {
        Some("session") if !facts.headed => {
            read_header(&fields, facts);
            (Ruling::not("record-type"), Words::default())
        }
        Some("message") => message(source, &fields, before, facts),
        _ => (Ruling::not("record-type"), Words::default()),
    };
    Judged {
        words,
        ..Judged::new(ruling, fields.id(), fields.at())
    }
}

fn read_header(fields: &Fields<'_>, facts: &mut ThreadFacts) {
    let names_parent = |value: Value<'_>| value.text().is_some_and(|parent| !parent.is_empty());
    facts.headed = true;
    facts.created_at = fields.at();
    facts.forked = fields.parent_session.is_some_and(names_parent)
        || fields.branched_from.is_some_and(names_parent);
    facts.version = fields.version.map(|version| match version.text() {
        Some(text) => short_version(&text),
        None => version.number().map_or_else(String::new, |n| n.to_string()),
    });
}

fn message(
    source: Source,
    fields: &Fields<'_>,
    before: &dyn Before,
    facts: &mut ThreadFacts,
) -> (Ruling, Words) {
    let role = fields.role();
    let (ruling, words) = match role.as_deref() {
        Some("user") => user(fields),
        Some("bashExecution") => (Ruling::human("bash-mode"), Words::default()),
        Some("assistant") => {
            facts.replied = true;
            return (Ruling::not("record-type"), Words::default());
        }
        _ => return (Ruling::not("record-type"), Words::default()),
    };
    if !ruling.is_human() {
        return (ruling, Words::default());
    }
    let is_known = fields.id().is_some_and(|id| before.knows(&id));
    let predates_file = facts.forked
        && matches!((fields.at(), facts.created_at), (Some(at), Some(created)) if at < created);
    if is_known || predates_file {
        return (Ruling::not("copy"), Words::default());
    }
    if words.is_empty() {
        return (ruling, words);
    }
    let text = words.short_digest();
    let is_retry = !source.pi && facts.last_text == Some(text) && !facts.replied;
    facts.last_text = Some(text);
    facts.replied = false;
    if is_retry {
        return (Ruling::not("retry-copy"), Words::default());
    }
    (ruling, words)
}

/// A message with the role of a user.
fn user(fields: &Fields<'_>) -> (Ruling, Words) {
    let nobody = |rule| (Ruling::not(rule), Words::default());
    let Some(message) = fields.message else {
        return nobody("empty");
    };
    let provenance = message.get("provenance").and_then(|own| own.get("kind"));
    let provenance = provenance.filter(|kind| !kind.is_null());
    if provenance.is_some_and(|kind| !kind.is("external_user")) {
        return nobody("provenance");
    }
    let content = text::Content::of(message.get("content"));
    let words = Words::of(&content.texts);
    if !words.is_empty() {
        return (Ruling::human("user-message"), words);
    }
    match content.marker {
        Some(rule) => nobody(rule),
        None if content.has_image => (Ruling::human("image-prompt"), words),
        None => nobody("empty"),
    }
}
