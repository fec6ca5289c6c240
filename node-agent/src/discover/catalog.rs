//! Finds the threads of this machine, and opens one for being followed.

use std::fs::{self, Metadata};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidings_protocol::report::MAX_PATH_BYTES;
use tidings_protocol::session_api::{ApiError, ErrorType, HistoryItems};
use tidings_protocol::wire::messages::{HistoryPage, OpenThread, Thread, ThreadOpened};
use tidings_protocol::{Catalog, EpochMs, ThreadId};

use super::files::{name_has_thread, thread_in_name};
use super::header::thread_in_header;
use super::places::RootPlaces;
use super::walk::{Step, walk};
use crate::history;
use crate::tail::{self, FirstPrompt, Places, TailError, ThreadHead};

/// How many threads can be listed: the newest, twice as many as the largest home that is
/// measured. Bounds the memory of one listing to a few megabytes.
const MAX_LISTED: usize = 20_000;
/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// A transcript as its directory shows it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) catalog: Catalog,
    path: PathBuf,
    updated_at: EpochMs,
    size_bytes: u64,
}

/// Reads a thread up to its end and makes the marker for following it from there. Blocks
/// while it reads.
pub fn open(
    places: &RootPlaces,
    now: EpochMs,
    wanted: &OpenThread,
) -> Result<ThreadOpened, ApiError> {
    let OpenThread { catalog, thread_id } = wanted;
    let found =
        find(places, *catalog, thread_id).ok_or_else(|| not_found(places, *catalog, thread_id))?;
    let opened = tail::open_at_end(*catalog, thread_id, &found.path, places, now);
    let (marker, head) = opened.map_err(|error| cannot_open(&error))?;
    let thread = thread_row(thread_id.clone(), &found, Some(head));
    Ok(ThreadOpened { thread, marker })
}

/// A part of a thread's conversation. Blocks while it reads.
pub fn history(places: &RootPlaces, wanted: &HistoryPage) -> Result<HistoryItems, ApiError> {
    let (catalog, thread) = (wanted.catalog, &wanted.thread_id);
    let found = find(places, catalog, thread).ok_or_else(|| not_found(places, catalog, thread))?;
    history::page_inside(&found.path, places, wanted).map_err(|error| cannot_open(&error))
}

/// The newest file that is this thread: by its name if one is, else by its header.
fn find(places: &RootPlaces, catalog: Catalog, thread: &ThreadId) -> Option<Found> {
    let is_named =
        |path: &Path| file_name(path).is_some_and(|name| name_has_thread(catalog, name, thread));
    let is_it = |found: &Found| thread_of(found).is_some_and(|id| id == *thread);
    let only = Some(catalog);
    let named = newest_first(places, only, is_named).files;
    let mut found = named.into_iter().find(is_it);
    if found.is_none() && catalog != Catalog::Claude {
        let others = newest_first(places, only, |path| !is_named(path)).files;
        found = others.into_iter().find(is_it);
    }
    found
}

fn not_found(places: &RootPlaces, catalog: Catalog, thread: &ThreadId) -> ApiError {
    let (_, silent) = places.within_reach(catalog);
    if silent {
        let message = format!(
            "a directory of {catalog} on this machine does not answer, so {thread} cannot be looked for"
        );
        return ApiError::new(ErrorType::TryLater, message)
            .with_hint("tidings-node status shows which");
    }
    ApiError::new(
        ErrorType::NotFound,
        format!("no {catalog} thread there is called {thread}"),
    )
    .with_hint(format!(
        "tidings catalog list --catalog {catalog} shows what is there"
    ))
}

fn cannot_open(error: &TailError) -> ApiError {
    let (error_type, hint) = match error {
        TailError::Missing { .. } => (ErrorType::NotFound, "it went away just now: list again"),
        TailError::NotRegular { .. } => (ErrorType::InvalidData, "only regular files are followed"),
        TailError::OutsideRoots { .. } => (
            ErrorType::NotPermitted,
            "a node reads only below its roots: add one with --root <catalog>=<directory>",
        ),
        TailError::Io { .. } => (
            ErrorType::Unavailable,
            "the node agent's user must be able to read it",
        ),
    };
    ApiError::new(error_type, error.to_string()).with_hint(hint)
}

/// The newest files, and how many older ones there are.
#[derive(Debug, Default)]
pub(super) struct Newest {
    pub(super) files: Vec<Found>,
    pub(super) left_out: u64,
}

impl Newest {
    fn keep(&mut self) {
        self.files
            .sort_unstable_by(|a, b| (b.updated_at, &a.path).cmp(&(a.updated_at, &b.path)));
        self.left_out += self.files.len().saturating_sub(MAX_LISTED) as u64;
        self.files.truncate(MAX_LISTED);
    }
}

/// The transcripts within reach that `is_wanted`, newest first, but for the oldest beyond
/// [`MAX_LISTED`].
pub(super) fn newest_first(
    places: &RootPlaces,
    only: Option<Catalog>,
    is_wanted: impl Fn(&Path) -> bool,
) -> Newest {
    let mut newest = Newest::default();
    for catalog in Catalog::ALL {
        if only.is_some_and(|only| only != catalog) {
            continue;
        }
        for root in places.within_reach(catalog).0 {
            let _ = walk(root, &root.path, &mut |step| {
                if let Step::Transcript(file) = step
                    && is_wanted(file.path)
                {
                    newest.files.extend(regular(places, catalog, file.path));
                }
                if newest.files.len() >= 2 * MAX_LISTED {
                    newest.keep();
                }
                ControlFlow::Continue(())
            });
        }
    }
    newest.keep();
    newest
}

/// The file, if it is a regular one or a link to one inside the roots.
fn regular(places: &RootPlaces, catalog: Catalog, path: &Path) -> Option<Found> {
    let mut metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() && places.is_inside(catalog, path) {
        metadata = fs::metadata(path).ok()?;
    }
    metadata.is_file().then(|| Found {
        catalog,
        path: path.to_owned(),
        updated_at: modified_ms(&metadata),
        size_bytes: metadata.len(),
    })
}

fn modified_ms(metadata: &Metadata) -> EpochMs {
    metadata
        .mtime()
        .saturating_mul(1000)
        .saturating_add(metadata.mtime_nsec() / 1_000_000)
}

/// The thread that a file is. Codex names it twice, and the header decides.
pub(super) fn thread_of(found: &Found) -> Option<ThreadId> {
    let in_name = file_name(&found.path).and_then(|name| thread_in_name(found.catalog, name));
    match found.catalog {
        Catalog::Claude => in_name,
        Catalog::Codex | Catalog::Openclaw => thread_in_header(found.catalog, &found.path)
            .ok()
            .flatten()
            .or(in_name),
    }
}

/// The row of a thread; `None` when its file has gone meanwhile.
pub(super) fn row(
    places: &RootPlaces,
    thread: ThreadId,
    found: &Found,
    prompt: FirstPrompt,
) -> Option<Thread> {
    let mut head = match tail::thread_head(found.catalog, &found.path, places, prompt) {
        Ok(head) => Some(head),
        Err(TailError::Missing { .. }) => return None,
        // It is there, though nothing can be said about it.
        Err(_) => None,
    };
    let title = head
        .as_mut()
        .and_then(|head| head.title.take().or(head.first_prompt.take()));
    Some(Thread {
        title: title.as_deref().and_then(one_line),
        ..thread_row(thread, found, head)
    })
}

fn thread_row(thread_id: ThreadId, found: &Found, head: Option<ThreadHead>) -> Thread {
    let cwd = head.and_then(|head| head.cwd);
    Thread {
        catalog: found.catalog,
        thread_id,
        path: found.path.to_string_lossy().into_owned(),
        cwd: cwd.filter(|cwd| cwd.len() <= MAX_PATH_BYTES && !cwd.chars().any(char::is_control)),
        title: None,
        updated_at: found.updated_at,
        size_bytes: found.size_bytes,
    }
}

/// The text on one line, cut to length; `None` where nothing is left.
fn one_line(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * MAX_TITLE_CHARS {
            break;
        }
    }
    let line: String = line.chars().take(MAX_TITLE_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::scratch::{Scratch, openclaw};

    #[test]
    fn a_thread_that_is_not_there_is_named_with_a_way_on() {
        let scratch = Scratch::new();
        scratch.write("claude/p/agent-x.jsonl", 1, "");
        let wanted = OpenThread {
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse("agent-x").expect("a thread"),
        };
        let error = open(&scratch.places, 0, &wanted).expect_err("not a thread");
        assert_eq!(error.error_type, ErrorType::NotFound);
        assert!(error.message.contains("agent-x"), "{error}");
        assert!(error.hint.is_some());
        scratch.places.leave_out(0);
        let error = open(&scratch.places, 0, &wanted).expect_err("no answer");
        assert_eq!(error.error_type, ErrorType::TryLater);
    }

    #[test]
    fn a_thread_is_found_by_its_header_where_its_name_says_something_else() {
        let scratch = Scratch::new();
        let expected = scratch.write("openclaw/p/odd.jsonl", 1, &openclaw("s1"));
        scratch.write("openclaw/p/s1.jsonl", 2, &openclaw("other"));
        let thread = ThreadId::parse("s1").expect("a thread");
        let found = find(&scratch.places, Catalog::Openclaw, &thread).expect("found");
        assert_eq!(found.path, expected);
    }

    #[test]
    fn what_is_too_old_to_be_listed_is_counted() {
        let mut newest = Newest::default();
        for at in 0..3 * MAX_LISTED {
            newest.files.push(Found {
                catalog: Catalog::Claude,
                path: PathBuf::from(format!("/{at}")),
                updated_at: at.try_into().expect("small"),
                size_bytes: 0,
            });
            if newest.files.len() >= 2 * MAX_LISTED {
                newest.keep();
            }
        }
        newest.keep();
        assert_eq!(newest.files.len(), MAX_LISTED);
        assert_eq!(newest.left_out, 2 * MAX_LISTED as u64);
        let oldest = newest.files.last().expect("the oldest");
        let newest_left_out = EpochMs::try_from(2 * MAX_LISTED - 1).expect("small");
        assert_eq!(oldest.updated_at, newest_left_out + 1);
    }

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        for (text, line) in [("a\n b\u{7}\t c", Some("a b c")), (" \n", None), ("", None)] {
            assert_eq!(one_line(text).as_deref(), line);
        }
        let long = one_line(&"ü ".repeat(5_000)).expect("a title");
        assert_eq!(long.chars().count(), MAX_TITLE_CHARS);
        let long = one_line(&"w".repeat(5_000)).expect("a title");
        assert_eq!(long.chars().count(), MAX_TITLE_CHARS);
    }
}
