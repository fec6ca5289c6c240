//! Appending to a transcript: whole lines, all of a turn at once, durable before it is said.

use serde_json::Value;
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
        if !line.is_object() || serde_json::to_writer(&mut content, line).is_err() {
            return Err(WriteError::Line);
        }
        if content.len() - begins > MAX_LINE_BYTES {
            return Err(WriteError::Line);
        }
        content.push(b'\n');
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
