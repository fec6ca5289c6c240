//! Lines of a transcript, as they are written.

use serde_json::{Value, json};
use tidings_protocol::EpochMs;
use time::OffsetDateTime;

use crate::state::{StateError, fresh_token};

/// Where an entry stands: who it is, what it follows, and when it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stem {
    /// Its id.
    pub id: String,
    /// The entry it follows; `None` for the first.
    pub parent: Option<String>,
    /// When.
    pub at: EpochMs,
}

impl Stem {
    /// A new entry that follows `parent`: naming an earlier one begins a branch there.
    pub fn following(parent: Option<String>, at: EpochMs) -> Result<Self, StateError> {
        let mut id = fresh_token()?;
        id.truncate(16);
        Ok(Self { id, parent, at })
    }

    fn line(&self, kind: &str, members: Value) -> Value {
        let mut line = json!({
            "type": kind,
            "id": self.id,
            "parentId": self.parent,
            "timestamp": iso(self.at),
        });
        if let (Some(line), Value::Object(members)) = (line.as_object_mut(), members) {
            line.extend(members);
        }
        line
    }

    /// A message: `message` has a `role` of `user`, `assistant` or `toolResult`.
    #[must_use]
    pub fn message(&self, message: &Value) -> Value {
        self.line("message", json!({ "message": message }))
    }

    /// A message of an extension, in the model's context; one that is not displayed is hidden
    /// from a view.
    #[must_use]
    pub fn custom_message(&self, custom_type: &str, content: &Value, display: Display) -> Value {
        let display = display == Display::Shown;
        let members = json!({"customType": custom_type, "content": content, "display": display});
        self.line("custom_message", members)
    }

    /// State of an extension, not in the model's context.
    #[must_use]
    pub fn custom(&self, custom_type: &str, data: &Value) -> Value {
        self.line("custom", json!({"customType": custom_type, "data": data}))
    }

    /// A summary of what was before, and the first entry that is kept beside it.
    #[must_use]
    pub fn compaction(&self, summary: &str, first_kept: Option<&str>, tokens_before: u64) -> Value {
        let members = json!({
            "summary": summary,
            "firstKeptEntryId": first_kept,
            "tokensBefore": tokens_before,
        });
        self.line("compaction", members)
    }

    /// A summary of the branch that ends in `from` and is left.
    #[must_use]
    pub fn branch_summary(&self, from: &str, summary: &str) -> Value {
        self.line(
            "branch_summary",
            json!({"fromId": from, "summary": summary}),
        )
    }
}

/// Whether a view shows a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// It does.
    Shown,
    /// It does not.
    Hidden,
}

/// The first line of a transcript.
#[must_use]
pub fn header(session_id: &str, cwd: &str, at: EpochMs, parent_session: Option<&str>) -> Value {
    let mut header = json!({
        "type": "session",
        "version": 3,
        "id": session_id,
        "timestamp": iso(at),
        "cwd": cwd,
    });
    if let Some(parent) = parent_session {
        header["parentSession"] = parent.into();
    }
    header
}

/// A time as transcripts have it: `2026-12-01T04:00:00.000Z`.
#[must_use]
pub fn iso(at: EpochMs) -> String {
    let seconds = at.div_euclid(1_000);
    // Years that four digits cannot name are clocks that are wrong.
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        at.rem_euclid(1_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::transcript::line::{self, Kind};

    #[test]
    fn what_is_written_is_read_as_what_it_is() {
        let stem = Stem {
            id: "b".to_owned(),
            parent: Some("a".to_owned()),
            at: 1_796_097_600_007,
        };
        for (value, kind) in [
            (header("s", "/w", 0, Some("/p.jsonl")), Kind::Session),
            (
                stem.message(&json!({"role": "user", "content": "x"})),
                Kind::User,
            ),
            (
                stem.custom_message("t", &json!("x"), Display::Hidden),
                Kind::CustomMessage,
            ),
            (stem.custom("t", &json!({"n": 1})), Kind::Custom),
            (stem.compaction("s", Some("a"), 7), Kind::Compaction),
            (stem.branch_summary("a", "s"), Kind::BranchSummary),
        ] {
            let text = value.to_string();
            let line = line::read(text.as_bytes()).expect("a record");
            assert_eq!(line.kind, kind, "{text}");
        }
        let message = stem.message(&json!({"role": "user"}));
        assert_eq!(message["timestamp"], "2026-12-01T04:00:00.007Z");
        assert_eq!(
            (&message["id"], &message["parentId"]),
            (&json!("b"), &json!("a"))
        );
        let fresh = Stem::following(None, 0).expect("random");
        assert_eq!((fresh.id.len(), fresh.parent), (16, None));
    }
}
