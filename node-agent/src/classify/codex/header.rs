//! Rule 1: whose thread a file is, from its first `session_meta`.

use tidings_protocol::marker::{ThreadFacts, ThreadKind};

use super::super::{Value, short_version, time};
use super::fields::{Fields, Payload};

/// Keeps what the first `session_meta` says.
pub(super) fn read(fields: &Fields<'_>, facts: &mut ThreadFacts) {
    let payload = fields.payload();
    facts.headed = true;
    facts.kind = thread_kind(payload);
    facts.version = payload
        .cli_version
        .and_then(Value::text)
        .map(|version| short_version(&version));
    facts.created_at = payload
        .timestamp
        .and_then(time::of)
        .or_else(|| time::of_uuid(&payload.id?.text()?))
        .or_else(|| fields.at());
    facts.forked = is_fork(payload);
    facts.replaying = facts.forked && facts.created_at.is_some();
}

fn is_fork(payload: &Payload<'_>) -> bool {
    let names_parent = |value: Value<'_>| value.text().is_some_and(|id| !id.is_empty());
    let spawn = payload.source.and_then(|source| {
        let spawn = source.get("subagent")?.get("thread_spawn")?;
        spawn.get("parent_thread_id")
    });
    payload.forked_from_id.is_some_and(names_parent) || spawn.is_some_and(names_parent)
}

fn thread_kind(payload: &Payload<'_>) -> ThreadKind {
    let source = payload.source.filter(|source| !source.is_null());
    let thread_source = payload.thread_source.and_then(Value::text);
    if source.is_some_and(is_internal) || thread_source.is_some_and(|of| names_agent(&of)) {
        return ThreadKind::Subagent;
    }
    let source = source.and_then(Value::text);
    let is_program = source.is_some_and(|source| matches!(&*source, "exec" | "mcp"));
    let originator = payload.originator.and_then(Value::text);
    if is_program || originator.is_some_and(|name| is_foreign(&name)) {
        return ThreadKind::Programmatic;
    }
    ThreadKind::Person
}

/// A source of one of Codex's own agents.
fn is_internal(source: Value<'_>) -> bool {
    source.get("subagent").is_some()
        || source.get("internal").is_some()
        || source.text().is_some_and(|source| names_agent(&source))
}

fn names_agent(source: &str) -> bool {
    [
        "subagent", "internal", "review", "guardian", "memory", "compact",
    ]
    .iter()
    .any(|name| source.starts_with(name))
}

/// Programs that drive Codex put their own name here. Its own interactive ones begin with
/// `codex`; the oldest files say only `user`.
fn is_foreign(originator: &str) -> bool {
    let name = originator.trim().to_ascii_lowercase();
    let is_own = name.is_empty() || name == "user" || name.starts_with("codex");
    !is_own
        || ["exec", "mcp", "sdk"]
            .iter()
            .any(|part| name.contains(part))
}
