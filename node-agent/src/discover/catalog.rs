//! Lists the threads of this machine, newest first, and opens one for being followed.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidings_protocol::report::MAX_PATH_BYTES;
use tidings_protocol::session_api::{ApiError, ErrorType, HistoryItems};
use tidings_protocol::wire::messages::{
    CatalogPage, CatalogThreads, HistoryPage, MAX_CATALOG_PAGE, OpenThread, Thread, ThreadOpened,
};
use tidings_protocol::{Catalog, EpochMs, ThreadId};

use super::files::{name_has_thread, thread_in_name};
use super::header::thread_in_header;
use super::places::RootPlaces;
use super::walk::{Step, walk};
use crate::history;
use crate::tail::{self, FirstPrompt, Places, TailError, ThreadHead};

/// How large a page may become, encoded: a frame has 256 KiB, and a row's cost is an
/// estimate.
const MAX_PAGE_BYTES: usize = 192 * 1024;
/// What the field names and numbers of a row take, at most.
const ROW_OVERHEAD_BYTES: usize = 128;
/// How many threads can be listed: the newest, twice as many as the largest home that is
/// measured. Bounds the memory of one request to a few megabytes.
const MAX_LISTED: usize = 20_000;
/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// A transcript as its directory shows it.
struct Found {
    catalog: Catalog,
    path: PathBuf,
    updated_at: EpochMs,
    size_bytes: u64,
}

/// One page of the threads on this machine, newest first. A thread that stands in several
/// files is listed once, with the newest. Blocks while it reads.
#[must_use]
pub fn list(places: &RootPlaces, page: &CatalogPage) -> CatalogThreads {
    let prompt = if page.titles {
        FirstPrompt::Show
    } else {
        FirstPrompt::Hide
    };
    let limit = page.limit.min(MAX_CATALOG_PAGE) as usize;
    let mut listed = HashSet::new();
    let rest = newest_first(places, page.catalog)
        .into_iter()
        .filter_map(|found| Some((thread_of(&found)?, found)))
        .filter(|(thread, found)| listed.insert((found.catalog, thread.clone())))
        .skip(page.offset as usize);
    let mut threads = Vec::new();
    let mut bytes = 0;
    for (thread, found) in rest {
        if threads.len() == limit {
            return CatalogThreads {
                threads,
                more: true,
            };
        }
        let Some(row) = row(places, thread, &found, prompt) else {
            continue;
        };
        bytes += row_bytes(&row);
        if bytes > MAX_PAGE_BYTES {
            return CatalogThreads {
                threads,
                more: true,
            };
        }
        threads.push(row);
    }
    CatalogThreads {
        threads,
        more: false,
    }
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
    let (named, others): (Vec<Found>, Vec<Found>) = newest_first(places, Some(catalog))
        .into_iter()
        .partition(|found| {
            file_name(&found.path).is_some_and(|name| name_has_thread(catalog, name, thread))
        });
    let is_it = |found: &Found| thread_of(found).is_some_and(|id| id == *thread);
    let mut found = named.into_iter().find(is_it);
    if found.is_none() && catalog != Catalog::Claude {
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

/// Every transcript within reach, newest first, but for the oldest beyond [`MAX_LISTED`].
fn newest_first(places: &RootPlaces, only: Option<Catalog>) -> Vec<Found> {
    let mut files = Vec::new();
    for catalog in Catalog::ALL {
        if only.is_some_and(|only| only != catalog) {
            continue;
        }
        for root in places.within_reach(catalog).0 {
            let _ = walk(root, &root.path, &mut |step| {
                if let Step::Transcript(file) = step {
                    files.extend(regular(places, catalog, file.path));
                }
                if files.len() >= 2 * MAX_LISTED {
                    keep_newest(&mut files);
                }
                ControlFlow::Continue(())
            });
        }
    }
    keep_newest(&mut files);
    files
}

fn keep_newest(files: &mut Vec<Found>) {
    files.sort_unstable_by(|a, b| (b.updated_at, &a.path).cmp(&(a.updated_at, &b.path)));
    files.truncate(MAX_LISTED);
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
fn thread_of(found: &Found) -> Option<ThreadId> {
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
fn row(
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

fn row_bytes(row: &Thread) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    ROW_OVERHEAD_BYTES
        + row.path.len()
        + row.thread_id.as_str().len()
        + optional(&row.cwd)
        + optional(&row.title)
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use tidings_protocol::wire::Message;
    use tidings_protocol::wire::frame::encode;

    use super::*;
    use crate::discover::{RootSet, Surroundings};

    const UUID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a5";

    struct Scratch {
        directory: tempfile::TempDir,
        places: RootPlaces,
    }

    impl Scratch {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let given: Vec<_> = ["claude", "codex", "openclaw"]
                .iter()
                .map(|catalog| {
                    let path = directory.path().join(catalog);
                    fs::create_dir_all(&path).expect("a directory");
                    format!("{catalog}={}", path.display())
                        .parse()
                        .expect("a root")
                })
                .collect();
            let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
            Self {
                places: RootPlaces::new(Arc::new(roots)),
                directory,
            }
        }

        /// Writes a file that was changed `at` seconds after 1970.
        fn write(&self, path: &str, at: u64, text: &str) -> PathBuf {
            let path = self.directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(&path, text).expect("write");
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
            let file = File::options().append(true).open(&path).expect("open");
            file.set_modified(changed).expect("a time");
            path
        }

        fn ids(&self, page: &CatalogPage) -> (Vec<String>, bool) {
            let page = list(&self.places, page);
            let ids = page.threads.iter().map(|row| row.thread_id.to_string());
            (ids.collect(), page.more)
        }
    }

    fn page(offset: u32, limit: u32) -> CatalogPage {
        CatalogPage {
            offset,
            limit,
            ..CatalogPage::default()
        }
    }

    fn openclaw(id: &str) -> String {
        format!("{{\"type\":\"session\",\"id\":\"{id}\"}}\n")
    }

    #[test]
    fn threads_of_all_catalogs_come_newest_first_and_once() {
        let scratch = Scratch::new();
        scratch.write("claude/p/a.jsonl", 40, "");
        scratch.write("claude/q/a.jsonl", 10, "");
        scratch.write("claude/p/agent-x.jsonl", 99, "");
        scratch.write(&format!("codex/2026/rollout-1-{UUID}1.jsonl"), 30, "");
        let meta = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"own-id\"}}\n";
        scratch.write(&format!("codex/rollout-1-{UUID}2.jsonl"), 20, meta);
        scratch.write("openclaw/s.jsonl", 50, &openclaw("header-id"));
        scratch.write("openclaw/no-header.jsonl", 60, "{}\n");
        let expected = [
            "header-id".to_owned(),
            "a".to_owned(),
            format!("{UUID}1"),
            "own-id".to_owned(),
        ];
        assert_eq!(scratch.ids(&page(0, 10)), (expected.to_vec(), false));
        assert_eq!(scratch.ids(&page(0, 2)), (expected[..2].to_vec(), true));
        assert_eq!(scratch.ids(&page(2, 2)), (expected[2..].to_vec(), false));
        assert_eq!(scratch.ids(&page(9, 2)), (Vec::new(), false));
        let only = CatalogPage {
            catalog: Some(Catalog::Codex),
            ..page(0, 10)
        };
        assert_eq!(scratch.ids(&only), (expected[2..].to_vec(), false));
    }

    #[test]
    fn a_title_is_the_programs_own_and_a_prompt_only_where_it_was_asked_for() {
        let scratch = Scratch::new();
        let said = r#""message":{"role":"user","content":"a secret wish"}"#;
        let claude = format!("{{\"type\":\"user\",\"uuid\":\"1\",\"cwd\":\"/c\",{said}}}\n");
        let own = "{\"type\":\"ai-title\",\"aiTitle\":\"Claude's\"}\n";
        scratch.write("claude/p/a.jsonl", 60, &(claude.clone() + own));
        scratch.write("claude/p/b.jsonl", 50, &claude);
        let meta = r#"{"type":"session_meta","payload":{"id":"c","cwd":"/x"}}"#;
        let codex = format!(
            "{meta}\n{}\n",
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"a secret wish"}}"#
        );
        let own = r#"{"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"Codex's"}}"#;
        scratch.write(
            &format!("codex/rollout-1-{UUID}1.jsonl"),
            40,
            &(codex.clone() + own + "\n"),
        );
        scratch.write(
            &format!("codex/rollout-1-{UUID}2.jsonl"),
            30,
            &codex.replace("\"c\"", "\"d\""),
        );
        let pi = openclaw("e") + &format!("{{\"type\":\"message\",{said}}}\n");
        let own = "{\"type\":\"session_info\",\"name\":\"Pi's\"}\n";
        scratch.write("openclaw/e.jsonl", 20, &(pi.clone() + own));
        scratch.write("openclaw/f.jsonl", 10, &pi.replace("\"e\"", "\"f\""));
        let titles = |titles| {
            let asked = CatalogPage {
                titles,
                ..page(0, 10)
            };
            let listed = list(&scratch.places, &asked).threads.into_iter();
            listed.map(|row| row.title).collect::<Vec<_>>()
        };
        let some = |title: &str| Some(title.to_owned());
        let own = ["Claude's", "Codex's", "Pi's"].map(some);
        let [claude, codex, pi] = own;
        assert_eq!(
            titles(false),
            [claude.clone(), None, codex.clone(), None, pi.clone(), None]
        );
        let wish = some("a secret wish");
        let all = [claude, wish.clone(), codex, wish.clone(), pi, wish];
        assert_eq!(titles(true), all);
    }

    #[test]
    fn a_page_never_outgrows_a_frame_and_paging_reaches_everything() {
        let scratch = Scratch::new();
        let project = "p".repeat(250);
        let stem = "s".repeat(240);
        for n in 0..450 {
            scratch.write(
                &format!("claude/{project}/{stem}{n:03}.jsonl"),
                1000 - n,
                "",
            );
        }
        let mut offset = 0;
        let mut seen = Vec::new();
        loop {
            let page = list(&scratch.places, &page(offset, 1000));
            assert!(page.threads.len() <= MAX_CATALOG_PAGE as usize);
            seen.extend(page.threads.iter().map(|row| row.thread_id.to_string()));
            offset = u32::try_from(seen.len()).expect("few");
            let more = page.more;
            encode(&Message::CatalogThreads(page)).expect("fits a frame");
            if !more {
                break;
            }
        }
        let expected: Vec<String> = (0..450).map(|n| format!("{stem}{n:03}")).collect();
        assert!(seen == expected, "{} of {}", seen.len(), expected.len());
    }

    #[test]
    fn what_is_no_regular_file_inside_the_roots_is_not_listed() {
        let scratch = Scratch::new();
        let inside = scratch.write("claude/p/a.jsonl", 1, "");
        let outside = scratch.write("elsewhere/b.jsonl", 2, "");
        let project = scratch.directory.path().join("claude/p");
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, project.join(name)).expect("a link");
        };
        link(&outside, "b.jsonl");
        link(&inside, "c.jsonl");
        link(Path::new("nowhere"), "d.jsonl");
        fs::create_dir(project.join("e.jsonl")).expect("a directory");
        let (mut ids, _) = scratch.ids(&page(0, 10));
        ids.sort();
        assert_eq!(ids, ["a", "c"]);
    }

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
