//! The newest part of a transcript, for somebody who asks for text: read from its end in
//! bounded windows, cut to bounded size, without secrets.

mod records;
mod redact;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::{memchr, memrchr};
use tidings_protocol::session_api::{HistoryItem, HistoryItems, MAX_HISTORY_BYTES};
use tidings_protocol::wire::messages::HistoryPage;

use crate::tail::{Places, TailError, open_inside};
use records::texts_of;

/// How much is read at a time. A longer line is passed over.
const WINDOW: u64 = 1024 * 1024;
/// How much one page reads, at most; the next goes on from there.
const MAX_READ: u64 = 8 * 1024 * 1024;
/// What an item weighs besides its text: its share of the frame.
const ITEM_BYTES: usize = 64;

/// A page of a transcript that is inside a root of its catalog.
pub fn page_inside(
    path: &Path,
    places: &dyn Places,
    wanted: &HistoryPage,
) -> Result<HistoryItems, TailError> {
    let open = open_inside(wanted.catalog, path, places)?;
    read_back(&open.file, open.size, wanted).map_err(|source| TailError::Io {
        path: path.into(),
        source,
    })
}

/// A page as it is filled, with the newest record first.
#[derive(Debug)]
pub struct Filling<'a> {
    wanted: &'a HistoryPage,
    items: Vec<HistoryItem>,
    bytes: usize,
}

impl<'a> Filling<'a> {
    /// An empty page.
    #[must_use]
    pub fn new(wanted: &'a HistoryPage) -> Self {
        Self {
            wanted,
            items: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes the texts of one record; false where the page has no room for them. A record
    /// that has more than a whole page keeps the newest.
    pub fn take(&mut self, line: &[u8]) -> bool {
        let mut texts = texts_of(self.wanted.catalog, line, self.wanted.tools);
        let limit = self.wanted.limit as usize;
        if texts.len() > limit {
            texts.drain(..texts.len() - limit);
        }
        let bytes: usize = texts
            .iter()
            .map(|item| item.text.0.len() + ITEM_BYTES)
            .sum();
        let fits =
            self.items.len() + texts.len() <= limit && self.bytes + bytes <= MAX_HISTORY_BYTES;
        if fits {
            self.bytes += bytes;
            self.items.extend(texts.into_iter().rev());
        } else if self.items.is_empty() {
            // Alone it is too much: what fits of its end.
            self.keep_the_end(texts);
            return true;
        }
        fits
    }

    fn keep_the_end(&mut self, texts: Vec<HistoryItem>) {
        for item in texts.into_iter().rev() {
            self.bytes += item.text.0.len() + ITEM_BYTES;
            if self.bytes > MAX_HISTORY_BYTES {
                return;
            }
            self.items.push(item);
        }
    }

    /// The page, which goes on before this place; 0 where there is nothing more.
    #[must_use]
    pub fn page(mut self, before: u64) -> HistoryItems {
        self.items.reverse();
        HistoryItems {
            items: self.items,
            before: (before > 0).then_some(before),
        }
    }
}

/// Reads lines backwards until the page is full or enough was read.
fn read_back(file: &File, size: u64, wanted: &HistoryPage) -> io::Result<HistoryItems> {
    let mut found = Filling::new(wanted);
    let mut end = wanted.before.map_or(size, |before| before.min(size));
    let mut read = 0;
    // False while what ends at `end` is the beginning of a line that is too long.
    let mut is_whole = true;
    while end > 0 && read < MAX_READ {
        let from = end.saturating_sub(WINDOW);
        let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut bytes, from)?;
        read += end - from;
        if !is_whole {
            let Some(newline) = memrchr(b'\n', &bytes) else {
                end = from;
                continue;
            };
            bytes.truncate(newline + 1);
            is_whole = true;
        }
        let Some(first) = first_line(from, &bytes) else {
            end = from;
            is_whole = false;
            continue;
        };
        for (line, line_end) in lines_back(&bytes[first..]) {
            if !found.take(line) {
                return Ok(found.page(from + (first + line_end) as u64));
            }
        }
        end = from + first as u64;
    }
    Ok(found.page(end))
}

/// Where the first whole line of a window begins; `None` where none does.
fn first_line(from: u64, bytes: &[u8]) -> Option<usize> {
    if from == 0 {
        return Some(0);
    }
    let before_last = &bytes[..bytes.len().saturating_sub(1)];
    memchr(b'\n', before_last).map(|newline| newline + 1)
}

/// The lines of these bytes, the last first, each with where it ends.
fn lines_back(bytes: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut end = bytes.len();
    std::iter::from_fn(move || {
        if end == 0 {
            return None;
        }
        let line_end = end;
        let text_end = line_end - usize::from(bytes[line_end - 1] == b'\n');
        let start = memrchr(b'\n', &bytes[..text_end]).map_or(0, |newline| newline + 1);
        end = start;
        Some((&bytes[start..text_end], line_end))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

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

    fn said(text: &str) -> String {
        format!(r#"{{"type":"message","id":"x","message":{{"role":"user","content":"{text}"}}}}"#)
    }

    fn file_of(lines: &[String]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        for line in lines {
            writeln!(file, "{line}").expect("written");
        }
        file
    }

    fn page_of(path: &Path, wanted: &HistoryPage) -> HistoryItems {
        let file = File::open(path).expect("a file");
        let size = file.metadata().expect("metadata").len();
        read_back(&file, size, wanted).expect("a page")
    }

    /// All pages from the end on, each as its texts.
    fn pages(file: &Path, limit: u32) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut before = None;
        loop {
            let page = page_of(file, &wanted(limit, before));
            let texts = page.items.into_iter().map(|item| item.text.0);
            pages.push(texts.collect());
            before = page.before;
            if before.is_none() {
                return pages;
            }
            assert!(pages.len() < 1_000, "it goes on for ever");
        }
    }

    #[test]
    fn pages_go_back_from_the_newest_and_nothing_is_twice_or_missing() {
        let lines: Vec<String> = (0..7).map(|n| said(&n.to_string())).collect();
        let file = file_of(&lines);
        assert_eq!(
            pages(file.path(), 3),
            [vec!["4", "5", "6"], vec!["1", "2", "3"], vec!["0"]]
        );
    }

    #[test]
    fn a_line_longer_than_a_window_is_passed_over_wherever_it_stands() {
        let long = said(&"l".repeat(3 * 1024 * 1024));
        for place in 0..3 {
            let mut lines = vec![said("a"), said("b")];
            lines.insert(place, long.clone());
            let file = file_of(&lines);
            let found: Vec<String> = pages(file.path(), 50).into_iter().rev().flatten().collect();
            assert_eq!(found, ["a", "b"], "{place}");
        }
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let mut file = file_of(&[
            said("a"),
            "null".to_owned(),
            String::new(),
            "{\"type\":\"message\"".to_owned(),
            "\u{feff}".to_owned(),
            said("b"),
        ]);
        write!(file, "{{\"type\":\"message\",\"torn").expect("written");
        assert_eq!(pages(file.path(), 50), [["a", "b"]]);
        let empty = file_of(&[]);
        assert_eq!(pages(empty.path(), 50), [Vec::<String>::new()]);
    }

    #[test]
    fn a_page_has_a_bounded_size_and_the_rest_is_on_the_next() {
        let lines: Vec<String> = (0..40).map(|_| said(&"x".repeat(3_900))).collect();
        let file = file_of(&lines);
        let pages = pages(file.path(), 50);
        assert!(pages.len() > 1);
        for page in &pages {
            let bytes: usize = page.iter().map(String::len).sum();
            assert!(bytes <= MAX_HISTORY_BYTES, "{bytes}");
        }
        assert_eq!(pages.iter().map(Vec::len).sum::<usize>(), 40);
    }

    #[test]
    fn a_place_beyond_the_end_is_the_end() {
        let file = file_of(&[said("a")]);
        let page = page_of(file.path(), &wanted(50, Some(u64::MAX)));
        assert_eq!(page.items.len(), 1);
    }
}
