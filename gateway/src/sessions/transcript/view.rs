//! A page of what was said in a transcript of ours, along its active branch: the newest from
//! the end of the file alone, older ones by the index.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tidings_node::history::Filling;
use tidings_node::private_files::FileError;
use tidings_protocol::session_api::HistoryItems;
use tidings_protocol::wire::messages::HistoryPage;

use super::cache::Indexes;
use super::index::{EntryRef, Index};
use super::tail::{self, Wanted};
use crate::sessions::files::Files;

/// So much of the end is read for the newest page.
const NEWEST: Wanted = Wanted {
    entries: 400,
    bytes: 4 * 1024 * 1024,
};
/// A longer line is passed over, as in transcripts of other programs.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// What one page reads of lines that say nothing, at most, counted in entries.
const MAX_ENTRIES: usize = 20_000;

/// A page of a transcript; nothing where there is no such file. A page that precedes another
/// goes on along the branch of that one, whichever is active by now.
pub async fn page(
    files: &Files,
    indexes: &Indexes,
    path: &Path,
    wanted: HistoryPage,
) -> Result<HistoryItems, FileError> {
    let (opening, owned) = (files.clone(), path.to_owned());
    let (newest, wanted) = blocking(path, move || {
        let newest = match wanted.before {
            None => newest(&opening, &owned, &wanted)?,
            Some(_) => Newest::Unknown,
        };
        Ok((newest, wanted))
    })
    .await?;
    if let Newest::Page(page) = newest {
        return Ok(page);
    }
    let Some(index) = indexes.of(path).await? else {
        return Ok(HistoryItems::default());
    };
    let (files, owned) = (files.clone(), path.to_owned());
    blocking(path, move || {
        let Some(file) = files.open(&owned)? else {
            return Ok(HistoryItems::default());
        };
        by_index(&file, &index, &wanted).map_err(FileError::at("read", &owned))
    })
    .await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(FileError::at("read", path)(io::Error::other(error))),
    }
}

enum Newest {
    Page(HistoryItems),
    /// The end of the file alone does not tell.
    Unknown,
}

fn newest(files: &Files, path: &Path, wanted: &HistoryPage) -> Result<Newest, FileError> {
    let Some(file) = files.open(path)? else {
        return Ok(Newest::Page(HistoryItems::default()));
    };
    let size = files.seen(&file, path)?.size;
    let tail = tail::read(&file, size, NEWEST).map_err(FileError::at("read", path))?;
    if tail.is_guessed {
        return Ok(Newest::Unknown);
    }
    let mut filling = Filling::new(wanted);
    for entry in tail.entries.iter().rev() {
        if entry.length <= MAX_LINE_BYTES && !filling.take(entry.value.to_string().as_bytes()) {
            return Ok(Newest::Page(filling.page(entry.offset + entry.length)));
        }
    }
    Ok(if tail.has_more {
        Newest::Unknown
    } else {
        Newest::Page(filling.page(0))
    })
}

/// The branch that a page shows: the active one, or the one that ends where it was left.
fn branch_of(index: &Index, before: Option<u64>) -> Vec<EntryRef> {
    let Some(before) = before else {
        return index.active_branch();
    };
    if let Some(entry) = index.ending_at(before) {
        return index.branch(entry);
    }
    let mut branch = index.active_branch();
    let ends_before = |entry: &EntryRef| {
        let place = index.place(*entry);
        place.is_some_and(|place| place.offset + place.length <= before)
    };
    branch.retain(ends_before);
    branch
}

fn by_index(file: &File, index: &Index, wanted: &HistoryPage) -> io::Result<HistoryItems> {
    let mut filling = Filling::new(wanted);
    let branch = branch_of(index, wanted.before);
    for (read, entry) in branch.iter().rev().enumerate() {
        let Some(place) = index.place(*entry) else {
            continue;
        };
        let end = place.offset + place.length;
        if read == MAX_ENTRIES {
            return Ok(filling.page(end));
        }
        if place.length > MAX_LINE_BYTES {
            continue;
        }
        let mut line = vec![0; usize::try_from(place.length).map_err(io::Error::other)?];
        file.read_exact_at(&mut line, place.offset)?;
        if !filling.take(&line) {
            return Ok(filling.page(end));
        }
    }
    Ok(filling.page(0))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use tidings_protocol::{Catalog, ThreadId};

    use super::*;

    fn wanted(limit: u32, before: Option<u64>) -> HistoryPage {
        HistoryPage {
            catalog: Catalog::Openclaw,
            thread_id: ThreadId::parse("t").expect("a thread"),
            limit,
            before,
            tools: false,
        }
    }

    /// Lines `<id> <parent or -> [bytes]`, each of which says its id.
    fn transcript(lines: &[&str]) -> tempfile::NamedTempFile {
        let mut text = "{\"type\":\"session\",\"id\":\"s\"}\n".to_owned();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let parent = match words[1] {
                "-" => "null".to_owned(),
                parent => format!("\"{parent}\""),
            };
            let pad = words
                .get(2)
                .map_or(0, |bytes| bytes.parse().expect("bytes"));
            writeln!(
                text,
                "{{\"type\":\"message\",\"id\":\"{0}\",\"parentId\":{parent},\
                 \"pad\":\"{1}\",\"message\":{{\"role\":\"user\",\"content\":\"{0}\"}}}}",
                words[0],
                "x".repeat(pad),
            )
            .expect("written");
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        file
    }

    /// All pages, the newest first, each as its texts.
    async fn pages(path: &Path, limit: u32) -> Vec<String> {
        let (files, indexes) = (Files::default(), Indexes::default());
        let (mut pages, mut before) = (Vec::new(), None);
        loop {
            let page = page(&files, &indexes, path, wanted(limit, before)).await;
            let page = page.expect("a page");
            let texts: Vec<String> = page.items.into_iter().map(|item| item.text.0).collect();
            pages.push(texts.join(" "));
            before = page.before;
            assert!(pages.len() < 100, "it goes on for ever");
            if before.is_none() {
                return pages;
            }
        }
    }

    const BRANCHED: [&str; 7] = ["a -", "b a", "left b", "left2 left", "c b", "d c", "e d"];

    #[tokio::test]
    async fn a_branch_that_was_left_is_not_shown_on_any_page() {
        let file = transcript(&BRANCHED);
        assert_eq!(pages(file.path(), 50).await, ["a b c d e"]);
        assert_eq!(pages(file.path(), 2).await, ["d e", "b c", "a"]);
    }

    #[tokio::test]
    async fn an_ancestor_far_behind_a_long_branch_that_was_left_is_found() {
        let left: Vec<String> = (0..8).map(|n| format!("left{n} b 900000")).collect();
        let mut lines = vec!["a -", "b a"];
        lines.extend(left.iter().map(String::as_str));
        lines.extend(["c b", "d c"]);
        let file = transcript(&lines);
        assert_eq!(pages(file.path(), 50).await, ["a b c d"]);
        assert_eq!(pages(file.path(), 1).await, ["d", "c", "b", "a"]);
    }

    #[tokio::test]
    async fn a_page_goes_on_along_its_branch_when_another_has_become_active() {
        let file = transcript(&BRANCHED);
        let (files, indexes) = (Files::default(), Indexes::default());
        let first = page(&files, &indexes, file.path(), wanted(2, None)).await;
        let before = first.expect("a page").before;
        let mut lines = BRANCHED.to_vec();
        lines.push("other left2");
        let text = std::fs::read(transcript(&lines).path()).expect("read");
        std::fs::write(file.path(), text).expect("written");
        let next = page(&files, &indexes, file.path(), wanted(2, before)).await;
        let texts = next
            .expect("a page")
            .items
            .into_iter()
            .map(|item| item.text.0);
        assert_eq!(texts.collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(pages(file.path(), 9).await, ["a b left left2 other"]);
    }

    #[tokio::test]
    async fn what_names_no_ancestor_or_one_that_is_not_there_follows_the_line_before() {
        let file = transcript(&["a -", "b gone", "c b"]);
        assert_eq!(pages(file.path(), 2).await, ["b c", "a"]);
        let missing = Path::new("/nonexistent/t.jsonl");
        assert_eq!(pages(missing, 2).await, [""]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_branch_goes_on_behind_it() {
        let file = transcript(&["a -", "b a 1100000", "c b"]);
        assert_eq!(pages(file.path(), 1).await, ["c", "a"]);
    }
}
