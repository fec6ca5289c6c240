//! Claude Code's records.

mod content;
mod fields;
mod queue;
mod rules;
mod skim;

use tidings_protocol::marker::{Carried, ThreadKind};

use super::{Before, Judged, Left, Record, Ruling, Source, Traces, Words};
use fields::Fields;

pub(crate) use rules::is_program_entrypoint;
pub(super) use rules::thread_kind;
pub(super) use skim::{cannot_matter, wanted};

/// Every record type that this build knows, for telling a record from a piece of one.
pub(super) const TYPES: &[&str] = &[
    "user",
    "assistant",
    "system",
    "attachment",
    "progress",
    "summary",
    "queue-operation",
    "file-history-snapshot",
    "file-history-delta",
    "custom-title",
    "ai-title",
    "agent-name",
    "agent-color",
    "agent-setting",
    "tag",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "frame-link",
    "worktree-state",
    "relocated",
    "continued-in",
    "cost-state",
    "bridge-session",
    "fork-context-ref",
    "content-replacement",
    "attribution-snapshot",
    "isolation-latch",
    "atis-latch",
    "ended",
    "ended-by-model",
    "scheduled_task_fire",
];

/// Judges one record.
pub(super) fn judge(
    source: Source,
    record: Record<'_>,
    before: &dyn Before,
    carried: &mut Carried,
) -> Judged {
    let fields = Fields::of(record.bytes).unwrap_or_default();
    if fields.kind().as_deref() == Some("queue-operation") {
        // It says neither version nor entry point itself: those seen last decide.
        before.catch_up(&mut carried.facts);
    }
    fields.note(&mut carried.facts);
    let outcome = decide(source, &fields, before, carried);
    Judged {
        words: outcome.words,
        counts: outcome.counts,
        left: outcome.left,
        names_version: fields.names_version(),
        ..Judged::new(outcome.ruling, fields.id(), fields.at())
    }
}

/// What a record of any type leaves behind.
pub(super) fn traces(record: &[u8]) -> Option<Traces> {
    Some(Fields::of(record)?.traces())
}

/// What the rules make of a record.
struct Outcome {
    ruling: Ruling,
    words: Words,
    counts: bool,
    left: Left,
}

impl Outcome {
    fn new(ruling: Ruling, words: Words) -> Self {
        Self {
            ruling,
            words,
            counts: true,
            left: Left::Nothing,
        }
    }
}

impl From<Ruling> for Outcome {
    fn from(ruling: Ruling) -> Self {
        Self::new(ruling, Words::default())
    }
}

fn decide(
    source: Source,
    fields: &Fields<'_>,
    before: &dyn Before,
    carried: &mut Carried,
) -> Outcome {
    match fields.kind().as_deref() {
        Some("user") => match rules::standing(source, fields, before) {
            Ok(standing) => rules::prompt(fields, standing),
            Err(ruling) => ruling.into(),
        },
        Some("attachment") if fields.is_queued_command() => {
            match rules::standing(source, fields, before) {
                Ok(standing) => queue::attachment(fields, standing, carried),
                Err(ruling) => ruling.into(),
            }
        }
        Some("queue-operation") => {
            queue::operation(fields, rules::standing(source, fields, before), carried)
        }
        _ => Ruling::not("record-type").into(),
    }
}

/// The kind of thread that the latest entry point says; it decides about queued prompts,
/// which carry none of their own.
fn is_program(kind: ThreadKind) -> bool {
    kind != ThreadKind::Person
}
