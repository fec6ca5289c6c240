//! The thread id that a file's first records name, from a bounded look at its beginning.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Deserialize;
use tidings_protocol::{Catalog, ThreadId};

/// How much is read at first: nearly every header fits.
const FIRST_BYTES: usize = 8 * 1024;
/// How much is read at most: Codex puts its instructions into the header.
const MAX_BYTES: u64 = 256 * 1024;
/// How many lines may stand before the header: some builds put a title in front.
const MAX_LINES: usize = 8;

/// The thread that the header of the file names; `None` where there is no header, or none
/// that names one. Claude Code's files have none: their name decides.
pub(super) fn thread_in_header(catalog: Catalog, path: &Path) -> io::Result<Option<ThreadId>> {
    if catalog == Catalog::Claude {
        return Ok(None);
    }
    let mut file = open_regular(path)?;
    let mut bytes = vec![0; FIRST_BYTES];
    let first = file.read(&mut bytes)?;
    bytes.truncate(first);
    if !bytes.contains(&b'\n') {
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(thread_in_lines(catalog, &bytes))
}

/// Opens without waiting for the other end of a FIFO, and takes regular files only.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

fn thread_in_lines(catalog: Catalog, bytes: &[u8]) -> Option<ThreadId> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.split(|byte| *byte == b'\n')
        .take(MAX_LINES)
        .find_map(|line| thread_in_line(catalog, line))
}

fn thread_in_line(catalog: Catalog, line: &[u8]) -> Option<ThreadId> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(default)]
        r#type: String,
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        payload: Option<Payload>,
    }
    #[derive(Deserialize)]
    struct Payload {
        #[serde(default)]
        id: Option<String>,
    }
    // What is no header is nobody's fault: it is only not what was looked for.
    let header: Header = serde_json::from_slice(line).ok()?;
    let id = match (catalog, header.r#type.as_str()) {
        (Catalog::Codex, "session_meta") => header.payload?.id,
        // The oldest format has no envelope: its first line is the header.
        (Catalog::Codex, "") | (Catalog::Openclaw, "session") => header.id,
        _ => None,
    };
    ThreadId::parse(&id?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_its_thread_and_nothing_else_does() {
        for (catalog, text, thread) in [
            (
                Catalog::Openclaw,
                r#"{"type":"session","version":3,"id":"s1","cwd":"/x"}"#,
                Some("s1"),
            ),
            (
                Catalog::Openclaw,
                "\u{feff}{\"type\":\"title\",\"id\":\"no\"}\n{\"type\":\"session\",\"id\":\"s1\"}\n",
                Some("s1"),
            ),
            (Catalog::Openclaw, r#"{"type":"message","id":"m1"}"#, None),
            (Catalog::Openclaw, "{\"type\":\"session\",\"id\":\"s", None),
            (
                Catalog::Codex,
                "{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{\"id\":\"c1\"}}\r\n",
                Some("c1"),
            ),
            (Catalog::Codex, r#"{"id":"c0","timestamp":"t"}"#, Some("c0")),
            (
                Catalog::Codex,
                r#"{"type":"event_msg","payload":{"id":"e"}}"#,
                None,
            ),
            (Catalog::Codex, "null\n[]\n\n", None),
        ] {
            let found = thread_in_lines(catalog, text.as_bytes());
            assert_eq!(found.as_ref().map(ThreadId::as_str), thread, "{text}");
        }
    }

    #[test]
    fn a_header_longer_than_the_first_look_is_read_on() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("long.jsonl");
        let long = "x".repeat(3 * FIRST_BYTES);
        let line = format!(r#"{{"type":"session","cwd":"{long}","id":"s1"}}"#);
        std::fs::write(&path, line + "\n").expect("write");
        let found = thread_in_header(Catalog::Openclaw, &path).expect("read");
        assert_eq!(found.as_ref().map(ThreadId::as_str), Some("s1"));
    }

    #[test]
    fn a_fifo_is_refused_without_waiting() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("fifo.jsonl");
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        made.expect("a FIFO");
        assert!(thread_in_header(Catalog::Codex, &path).is_err());
    }
}
