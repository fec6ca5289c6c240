//! Codex's records.

mod fields;
mod header;
mod text;

use std::sync::LazyLock;

use memchr::memmem::Finder;
use tidings_protocol::EpochMs;
use tidings_protocol::marker::{Carried, ThreadFacts, ThreadKind, WaitingRecord};

use super::sieve::{Needle, Wanted};
use super::{Before, Judged, Left, Record, Ruling, Traces, Words, another_follows, time, waiting};
use fields::Fields;
use text::Message;

pub(crate) use text::is_injected_by_codex;

/// Every record type that this build knows, for telling a record from a piece of one.
pub(super) const TYPES: &[&str] = &[
    "session_meta",
    "turn_context",
    "event_msg",
    "response_item",
    "compacted",
    "world_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "security_risk_score",
    "token_usage_record",
    "rollout_reference",
    "realtime_item",
    "message",
];

/// A turn that is told from the copied ones by its time alone began at least this long
/// after the fork: the copy is written in one go.
const AFTER_REPLAY_MS: i64 = 1_000;

static USER: Needle = LazyLock::new(|| Finder::new("\"user"));
static USER_ITEM: Needle = LazyLock::new(|| Finder::new("UserMessage\""));
static HEADER: Needle = LazyLock::new(|| Finder::new("\"session_meta\""));

/// What a line that matters contains.
pub(super) fn wanted(carried: &Carried) -> Wanted {
    let facts = &carried.facts;
    if facts.headed && facts.kind != ThreadKind::Person {
        return Wanted::Nothing;
    }
    if facts.replaying {
        return Wanted::All;
    }
    let header = (!facts.headed).then_some(&HEADER);
    Wanted::Needles((&USER, [Some(&USER_ITEM), header, None]))
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
pub(super) fn judge(record: Record<'_>, before: &dyn Before, carried: &mut Carried) -> Judged {
    let fields = Fields::of(record.bytes).unwrap_or_default();
    if fields.kind().as_deref() == Some("session_meta") && !carried.facts.headed {
        header::read(&fields, &mut carried.facts);
    }
    let sense = make_out(&fields, before, &mut carried.facts);
    let mut judged = Judged::new(sense.ruling(), fields.id(), fields.at());
    match sense {
        Sense::Ruled(_) => judged.earlier = another_follows(carried),
        Sense::Event(words) => {
            carried.facts.user_events = true;
            judged.earlier = waiting::event_came(carried, words.short_digest());
            judged.earlier.extend(another_follows(carried));
            judged.words = words;
        }
        Sense::Shell(words) => {
            judged.earlier = another_follows(carried);
            judged.words = words;
        }
        Sense::Candidate { words, has_kinds } => {
            judged.earlier = another_follows(carried);
            let waits = waiting_record(record, &words, judged.at, has_kinds);
            judged.earlier.extend(waiting::hold(carried, waits));
            judged.left = Left::Waiting;
            judged.words = words;
        }
    }
    judged
}

fn waiting_record(
    record: Record<'_>,
    words: &Words,
    at: Option<EpochMs>,
    has_kinds: bool,
) -> WaitingRecord {
    WaitingRecord {
        text: words.short_digest(),
        at,
        byte_start: record.start,
        byte_end: record.end,
        followed_by: 0,
        counts: true,
        echo_of: None,
        has_kinds,
    }
}

/// What a record is by itself.
enum Sense {
    /// Decided.
    Ruled(Ruling),
    /// The program's own event for a user's message.
    Event(Words),
    /// A shell line that a person typed.
    Shell(Words),
    /// An item of the model's input that looks like a message.
    Candidate { words: Words, has_kinds: bool },
}

impl Sense {
    fn ruling(&self) -> Ruling {
        match self {
            Self::Ruled(ruling) => *ruling,
            Self::Event(_) => Ruling::human("user-message"),
            Self::Shell(_) => Ruling::human("bash-mode"),
            Self::Candidate { .. } => Ruling::not("waiting"),
        }
    }
}

fn not(rule: &'static str) -> Sense {
    Sense::Ruled(Ruling::not(rule))
}

fn make_out(fields: &Fields<'_>, before: &dyn Before, facts: &mut ThreadFacts) -> Sense {
    match facts.kind {
        ThreadKind::Person => {}
        ThreadKind::Programmatic => return not("programmatic"),
        ThreadKind::Subagent => return not("subagent-thread"),
    }
    if is_replayed(fields, facts) {
        return not("copy");
    }
    match fields.kind().as_deref() {
        Some("event_msg") => event(fields),
        Some("response_item" | "message") | None if fields.is_user_item() => {
            let is_known = fields.id().is_some_and(|id| before.knows(&id));
            if is_known {
                not("copy")
            } else {
                item(fields, facts)
            }
        }
        _ => not("record-type"),
    }
}

/// True while the history that a fork copied goes on.
fn is_replayed(fields: &Fields<'_>, facts: &mut ThreadFacts) -> bool {
    let (true, Some(created_at)) = (facts.forked, facts.created_at) else {
        return false;
    };
    if facts.replaying && starts_own_turn(fields, created_at) {
        facts.replaying = false;
    }
    facts.replaying || fields.at().is_some_and(|at| at < created_at)
}

fn starts_own_turn(fields: &Fields<'_>, created_at: EpochMs) -> bool {
    let later = || {
        fields
            .at()
            .is_some_and(|at| at > created_at.saturating_add(AFTER_REPLAY_MS))
    };
    match fields.turn_id() {
        Some(id) => match time::of_uuid(&id) {
            Some(turn_at) => turn_at >= created_at,
            None => later(),
        },
        None => fields.kind().as_deref() == Some("turn_context") && later(),
    }
}

/// Rule 3.
fn event(fields: &Fields<'_>) -> Sense {
    let message = match fields.payload_kind().as_deref() {
        Some("user_message") => {
            if fields.is_injected_event() {
                return not("injected-context");
            }
            Message::of_event(fields)
        }
        Some("item_completed") if fields.completes_user_message() => {
            Message::of_content(fields.item_content())
        }
        _ => return not("record-type"),
    };
    if message.is_empty() {
        return not("empty");
    }
    Sense::Event(message.words())
}

/// Rule 4.
fn item(fields: &Fields<'_>, facts: &ThreadFacts) -> Sense {
    let Some(content) = fields.content() else {
        return Sense::Ruled(Ruling::unclassified("unknown-shape"));
    };
    let message = Message::of_content(Some(content));
    let says_user = fields.kinds_say_user();
    if says_user == Some(false) {
        return not("injected-context");
    }
    if message.is_shell_command() {
        return Sense::Shell(message.words());
    }
    if says_user.is_none() {
        if message.is_injected() {
            return not("injected-context");
        }
        if facts.user_events {
            return not("response-item-after-event");
        }
    }
    if message.is_empty() {
        return not("empty");
    }
    Sense::Candidate {
        words: message.words(),
        has_kinds: says_user.is_some(),
    }
}
