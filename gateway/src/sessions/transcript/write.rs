//! Appending to a transcript: whole lines, all of a turn at once, durable before it is said.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use tidings_node::private_files::FileError;

use super::lock::{LockError, WriteLock};

/// A longer line is refused: images belong into files.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Where lines were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Where the first begins.
    pub offset: u64,
    /// Where the file ends behind the last.
    pub end: u64,
}

/// Why nothing was appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It cannot be a line of a transcript: the caller's fault.
    #[error("a line of a transcript is a JSON object of at most {MAX_LINE_BYTES} bytes")]
    Line,
    /// The lock is not held.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file cannot be written. What was written of it is no line, and the next append
    /// begins a new one.
    #[error(transparent)]
    File(#[from] FileError),
}

impl WriteLock {
    /// Appends the lines of one turn; they are durable when this returns. After a torn last
    /// line the first begins on a new one.
    pub async fn append(&self, lines: &[Value]) -> Result<Appended, WriteError> {
        let content = encode(lines)?;
        let held = self.held.clone();
        let path = held.transcript.clone();
        let appending = tokio::task::spawn_blocking(move || {
            held.while_held(|| held.files.append(&held.transcript, &content))
        });
        let (offset, end) = match appending.await {
            Ok(appended) => appended?,
            Err(error) => return Err(FileError::at("append to", &path)(error.into()).into()),
        };
        Ok(Appended { offset, end })
    }
}

/// The lines as they stand in the file.
fn encode(lines: &[Value]) -> Result<Vec<u8>, WriteError> {
    let mut content = Vec::new();
    for line in lines {
        let begins = content.len();
        let line = line.as_object().map(InOrder).ok_or(WriteError::Line)?;
        serde_json::to_writer(&mut content, &line).map_err(|_| WriteError::Line)?;
        if content.len() - begins > MAX_LINE_BYTES {
            return Err(WriteError::Line);
        }
        content.push(b'\n');
    }
    Ok(content)
}

/// The members of a line, and of its message, that say what it is and where it stands. They come
/// first: of a line that is too long to keep a reader looks at the beginning only.
const FIRST: [&str; 6] = [
    "type",
    "role",
    "id",
    "parentId",
    "timestamp",
    "firstKeptEntryId",
];

/// An object whose deciding members come first.
struct InOrder<'a>(&'a Map<String, Value>);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        let first = FIRST.iter().filter_map(|name| self.0.get_key_value(*name));
        let is_other = |(name, _): &(&String, &Value)| !FIRST.contains(&name.as_str());
        for (name, value) in first.chain(self.0.iter().filter(is_other)) {
            match value.as_object() {
                Some(message) if name == "message" => {
                    object.serialize_entry(name, &InOrder(message))?;
                }
                _ => object.serialize_entry(name, value)?,
            }
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sessions::transcript::line::{self, Kind, Parent};

    #[test]
    fn a_line_is_one_object_on_one_line() {
        let content = encode(&[json!({"a": "x\ny\r\n"}), json!({})]).expect("lines");
        assert_eq!(content, b"{\"a\":\"x\\ny\\r\\n\"}\n{}\n");
        assert_eq!(encode(&[]).expect("nothing"), b"");
        for no_line in [json!(null), json!([1]), json!("{}")] {
            assert!(matches!(encode(&[no_line]), Err(WriteError::Line)));
        }
        let long = json!({"a": "x".repeat(MAX_LINE_BYTES)});
        assert!(matches!(encode(&[long]), Err(WriteError::Line)));
    }

    #[test]
    fn what_a_line_is_stands_at_its_beginning_however_long_it_is() {
        let text = "x".repeat(64 * 1024);
        for (entry, kind, first_kept) in [
            (
                json!({"message": {"content": text, "role": "assistant"}}),
                Kind::Assistant,
                None,
            ),
            (
                json!({"message": {"content": text, "role": "toolResult"}}),
                Kind::ToolResult,
                None,
            ),
            (
                json!({"content": text, "type": "custom_message"}),
                Kind::CustomMessage,
                None,
            ),
            (
                json!({"summary": text, "tokensBefore": 7, "type": "compaction",
                       "firstKeptEntryId": "k"}),
                Kind::Compaction,
                Some("k"),
            ),
        ] {
            let mut entry = entry;
            for (name, value) in [("id", "i"), ("parentId", "p"), ("timestamp", "t")] {
                entry[name] = json!(value);
            }
            if entry.get("type").is_none() {
                entry["type"] = json!("message");
            }
            let content = encode(std::slice::from_ref(&entry)).expect("a line");
            let skimmed = line::skim(&content[..1024]).expect("a line of some kind");
            assert_eq!(skimmed.kind, kind);
            assert_eq!(skimmed.id.as_deref(), Some("i"));
            assert_eq!(skimmed.parent, Parent::Entry("p".into()));
            assert_eq!(skimmed.first_kept.as_deref(), first_kept);
            let read: Value = serde_json::from_slice(&content).expect("JSON");
            assert_eq!(read, entry, "nothing is lost by the order");
        }
    }
}
