//! Which program wrote a record.

use tidings_protocol::Catalog;

use super::{Value, claude, codex};

/// The catalog whose program wrote this record; `None` where it could be several's, or
/// nobody's.
pub(crate) fn recognise(record: &[u8]) -> Option<Catalog> {
    let object = Value::of(record).filter(|value| value.is_object())?;
    let has = |key| object.get(key).is_some_and(|value| !value.is_null());
    let kind = object.get("type").and_then(Value::text);
    let role = object.get("role").and_then(Value::text);
    match kind.as_deref() {
        Some("session") if has("id") => Some(Catalog::Openclaw),
        Some("message") if object.get("message").is_some_and(Value::is_object) => {
            Some(Catalog::Openclaw)
        }
        Some("message") if role.is_some() => Some(Catalog::Codex),
        Some(kind) if codex::TYPES.contains(&kind) && has("payload") => Some(Catalog::Codex),
        Some(kind) if claude::TYPES.contains(&kind) && is_claudes(kind, object) => {
            Some(Catalog::Claude)
        }
        None if role.is_some() && (has("content") || has("message")) => Some(Catalog::Codex),
        None if has("instructions") && has("id") && has("timestamp") => Some(Catalog::Codex),
        _ => None,
    }
}

/// The names of Claude's types are common words: something else must fit as well.
fn is_claudes(kind: &str, object: Value<'_>) -> bool {
    let has = |key| object.get(key).is_some();
    let fits = match kind {
        "user" | "assistant" => object.get("message").is_some_and(Value::is_object),
        "attachment" => object.get("attachment").is_some_and(Value::is_object),
        "queue-operation" => has("operation"),
        _ => false,
    };
    fits || ["sessionId", "parentUuid", "leafUuid", "uuid", "messageId"]
        .into_iter()
        .any(has)
}
