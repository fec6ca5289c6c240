//! What a listing shows of a thread.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tidings_protocol::marker::{Carried, ThreadFacts};
use tidings_protocol::report::MAX_PATH_BYTES;
use tidings_protocol::signal::Summary;
use tidings_protocol::{Catalog, ThreadId};

use super::open::{OpenFile, open_inside};
use super::{FirstPrompt, Places, TailError, ThreadHead};
use crate::classify::{Before, Left, Piece, Record, Source, Value, Verdict, judge, pieces};

/// How much of a file's beginning is looked at: its header, and the first prompt.
const HEAD_BYTES: u64 = 192 * 1024;
/// How much of its end: the latest title and directory.
const TAIL_BYTES: u64 = 64 * 1024;

/// Reads the head and the tail of a thread, at most 256 KiB together, for a listing.
pub fn thread_head(
    catalog: Catalog,
    path: &Path,
    places: &dyn Places,
    prompt: FirstPrompt,
) -> Result<ThreadHead, TailError> {
    let open = open_inside(catalog, path, places)?;
    head_of(catalog, path, &open, prompt).map_err(|source| TailError::Io {
        path: path.into(),
        source,
    })
}

/// The same for a file that is open already.
pub(super) fn head_of(
    catalog: Catalog,
    path: &Path,
    open: &OpenFile,
    prompt: FirstPrompt,
) -> io::Result<ThreadHead> {
    let head = read(open, 0, open.size.min(HEAD_BYTES))?;
    let head_end = head.len() as u64;
    let tail_start = open.size.saturating_sub(TAIL_BYTES).max(head_end);
    let tail = read(open, tail_start, open.size.saturating_sub(tail_start))?;
    let tail = if tail_start > head_end {
        // The first line of the tail has no beginning.
        let first = memchr::memchr(b'\n', &tail).map_or(tail.len(), |at| at + 1);
        &tail[first..]
    } else {
        &tail[..]
    };
    let mut shown = Shown::default();
    for part in [&head[..], tail] {
        each_record(catalog, part, |record| shown.note(catalog, record));
    }
    let thread_id = match catalog {
        Catalog::Claude => path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned()),
        Catalog::Codex | Catalog::Openclaw => shown.thread_id,
    };
    let first_prompt = match prompt {
        FirstPrompt::Show => first_prompt(Source::of(catalog, path), &head),
        FirstPrompt::Hide => None,
    };
    Ok(ThreadHead {
        thread_id: thread_id.and_then(|id| ThreadId::parse(&id).ok()),
        cwd: shown.cwd,
        title: shown.title.or(shown.summary),
        first_prompt,
        size_bytes: open.size,
        updated_at: open.modified,
    })
}

fn read(open: &OpenFile, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let mut filled = 0;
    while filled < bytes.len() {
        let count = open
            .file
            .read_at(&mut bytes[filled..], from + filled as u64)?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn each_record(catalog: Catalog, part: &[u8], mut each: impl FnMut(&[u8])) {
    for line in part.split(|byte| *byte == b'\n') {
        for piece in pieces(Some(catalog), line) {
            if let Piece::Record { start, end } = piece {
                each(&line[start..end]);
            }
        }
    }
}

/// What the records of a file say about it; the last word counts, but for the id.
#[derive(Default)]
struct Shown {
    thread_id: Option<String>,
    cwd: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    /// The newest record ids, for telling whose summary a summary is.
    uuids: Vec<String>,
}

impl Shown {
    fn note(&mut self, catalog: Catalog, record: &[u8]) {
        let Some(object) = Value::of(record) else {
            return;
        };
        match catalog {
            Catalog::Claude => self.note_claude(object),
            Catalog::Codex => self.note_codex(object),
            Catalog::Openclaw => self.note_openclaw(object),
        }
    }

    fn note_claude(&mut self, object: Value<'_>) {
        self.note_cwd(object);
        self.uuids.extend(text_of(object, "uuid"));
        match text_of(object, "type").as_deref() {
            Some("custom-title") => self.note_title(text_of(object, "customTitle")),
            Some("ai-title") if self.title.is_none() => {
                self.note_title(text_of(object, "aiTitle"));
            }
            // Some versions collect the summaries of other sessions in a file.
            Some("summary") => {
                let leaf = text_of(object, "leafUuid");
                if leaf.is_some_and(|leaf| self.uuids.contains(&leaf)) {
                    self.summary = text_of(object, "summary").and_then(|text| one_line(&text));
                }
            }
            _ => {}
        }
    }

    fn note_codex(&mut self, object: Value<'_>) {
        let Some(payload) = object.get("payload") else {
            return;
        };
        match text_of(object, "type").as_deref() {
            Some("session_meta") if self.thread_id.is_none() => {
                self.thread_id = text_of(payload, "id");
                self.note_cwd(payload);
            }
            Some("turn_context") => self.note_cwd(payload),
            Some("event_msg") => self.note_title(text_of(payload, "thread_name")),
            _ => {}
        }
    }

    fn note_openclaw(&mut self, object: Value<'_>) {
        match text_of(object, "type").as_deref() {
            Some("session") if self.thread_id.is_none() => {
                self.thread_id = text_of(object, "id");
                self.note_cwd(object);
            }
            Some("session_info") => self.note_title(text_of(object, "name")),
            _ => {}
        }
    }

    fn note_cwd(&mut self, object: Value<'_>) {
        let cwd = text_of(object, "cwd").filter(|cwd| {
            !cwd.is_empty() && cwd.len() <= MAX_PATH_BYTES && !cwd.chars().any(char::is_control)
        });
        if cwd.is_some() {
            self.cwd = cwd;
        }
    }

    fn note_title(&mut self, title: Option<String>) {
        if let Some(title) = title.and_then(|title| one_line(&title)) {
            self.title = Some(title);
        }
    }
}

fn text_of(object: Value<'_>, name: &str) -> Option<String> {
    Some(object.get(name)?.text()?.into_owned())
}

fn one_line(text: &str) -> Option<String> {
    Summary::from_text(text).map(|line| line.as_str().to_owned())
}

/// The beginning of the first message that looks human.
fn first_prompt(source: Source, head: &[u8]) -> Option<String> {
    let mut carried = Carried::default();
    let mut found = None;
    each_record(source.catalog, head, |bytes| {
        if found.is_some() {
            return;
        }
        let record = Record {
            bytes,
            start: 0,
            end: bytes.len() as u64,
        };
        let judged = judge(source, record, &Nothing, &mut carried);
        let is_candidate = judged.left == Left::Waiting;
        if judged.ruling.verdict == Verdict::Human || is_candidate {
            found = one_line(judged.words.as_str());
        }
    });
    found
}

/// Nothing is remembered: every record is the first of its id.
struct Nothing;

impl Before for Nothing {
    fn knows(&self, _: &str) -> bool {
        false
    }

    fn catch_up(&self, _: &mut ThreadFacts) {}
}
