//! Listings of the threads of this machine, newest first: one walk through the directories
//! serves all pages of one.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_protocol::wire::messages::{CatalogPage, CatalogThreads, MAX_CATALOG_PAGE, Thread};
use tidings_protocol::{Catalog, ThreadId};

use super::catalog::{Found, Newest, newest_first, row, thread_of};
use super::places::RootPlaces;
use crate::tail::FirstPrompt;

/// How many listings are kept for their next page, at most: each takes a few megabytes. The one
/// that has waited longest goes first.
const MAX_LISTINGS: usize = 4;
/// How long one is kept: who goes through the pages asks for the next at once.
const KEPT_FOR: Duration = Duration::from_mins(1);
/// How large a page may become, encoded: a frame has 256 KiB, and a row's cost is an
/// estimate.
const MAX_PAGE_BYTES: usize = 192 * 1024;
/// What the field names and numbers of a row take, at most.
const ROW_OVERHEAD_BYTES: usize = 128;

/// The first page of a listing that nobody goes on with. Blocks while it reads.
#[must_use]
pub fn first_page(places: &RootPlaces, page: &CatalogPage) -> CatalogThreads {
    Listing::of(places, page.catalog).page(places, page)
}

/// Listings whose next page may be asked for.
#[derive(Debug, Default)]
pub struct Listings {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the newest listing; none is given twice.
    newest: u64,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    since: Duration,
    listing: Listing,
}

impl Listings {
    /// A page of the listing that it names, where that is still kept, else of a new one. Blocks
    /// while it reads.
    pub fn page(&self, places: &RootPlaces, page: &CatalogPage, now: Duration) -> CatalogThreads {
        self.forget_old(now);
        let kept = page.listing.and_then(|id| self.take(id, page.catalog));
        let mut listing = kept.unwrap_or_else(|| Listing::of(places, page.catalog));
        let mut threads = listing.page(places, page);
        if threads.more {
            threads.listing = Some(self.keep(listing, now));
        }
        threads
    }

    /// Forgets listings whose next page nobody has asked for.
    pub fn forget_old(&self, now: Duration) {
        let is_young = |waiting: &Waiting| now.saturating_sub(waiting.since) < KEPT_FOR;
        self.lock().waiting.retain(is_young);
    }

    fn take(&self, id: u64, catalog: Option<Catalog>) -> Option<Listing> {
        let mut kept = self.lock();
        let is_it = |waiting: &Waiting| waiting.id == id && waiting.listing.catalog == catalog;
        let at = kept.waiting.iter().position(is_it)?;
        Some(kept.waiting.remove(at).listing)
    }

    fn keep(&self, listing: Listing, since: Duration) -> u64 {
        let mut kept = self.lock();
        kept.newest += 1;
        let id = kept.newest;
        if kept.waiting.len() >= MAX_LISTINGS {
            kept.waiting.remove(0);
        }
        kept.waiting.push(Waiting { id, since, listing });
        id
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // It is whole after every statement.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one walk has found, and how far its pages have come.
#[derive(Debug)]
struct Listing {
    catalog: Option<Catalog>,
    newest: Newest,
    /// How many of the files are done with.
    next: usize,
    /// How many threads were in the pages so far.
    passed: u32,
    /// A thread that stands in several files is listed once, with the newest.
    listed: HashSet<(Catalog, ThreadId)>,
}

impl Listing {
    fn of(places: &RootPlaces, catalog: Option<Catalog>) -> Self {
        Self {
            catalog,
            newest: newest_first(places, catalog, |_| true),
            next: 0,
            passed: 0,
            listed: HashSet::new(),
        }
    }

    fn page(&mut self, places: &RootPlaces, page: &CatalogPage) -> CatalogThreads {
        self.go_to(page.offset);
        let prompt = if page.titles {
            FirstPrompt::Show
        } else {
            FirstPrompt::Hide
        };
        let limit = page.limit.min(MAX_CATALOG_PAGE) as usize;
        let mut answer = CatalogThreads {
            left_out: self.newest.left_out,
            ..CatalogThreads::default()
        };
        let mut bytes = 0;
        while let Some((thread, found)) = self.candidate() {
            if answer.threads.len() >= limit {
                answer.more = true;
                break;
            }
            let Some(row) = row(places, thread.clone(), found, prompt) else {
                self.next += 1;
                continue;
            };
            bytes += row_bytes(&row);
            if bytes > MAX_PAGE_BYTES {
                answer.more = true;
                break;
            }
            answer.threads.push(row);
            self.pass(thread);
        }
        answer
    }

    /// Goes to where so many threads are passed over.
    fn go_to(&mut self, offset: u32) {
        if offset < self.passed {
            self.next = 0;
            self.passed = 0;
            self.listed.clear();
        }
        while self.passed < offset
            && let Some((thread, _)) = self.candidate()
        {
            self.pass(thread);
        }
    }

    /// The next file of a thread that was not in a page yet.
    fn candidate(&mut self) -> Option<(ThreadId, &Found)> {
        loop {
            let found = self.newest.files.get(self.next)?;
            let thread = thread_of(found);
            let fresh = thread.filter(|id| !self.listed.contains(&(found.catalog, id.clone())));
            if let Some(thread) = fresh {
                return Some((thread, &self.newest.files[self.next]));
            }
            self.next += 1;
        }
    }

    /// The next file is done with: it is this thread's.
    fn pass(&mut self, thread: ThreadId) {
        if let Some(found) = self.newest.files.get(self.next) {
            self.listed.insert((found.catalog, thread));
        }
        self.next += 1;
        self.passed += 1;
    }
}

fn row_bytes(row: &Thread) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    ROW_OVERHEAD_BYTES
        + row.path.len()
        + row.thread_id.as_str().len()
        + optional(&row.cwd)
        + optional(&row.title)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tidings_protocol::wire::Message;
    use tidings_protocol::wire::frame::encode;

    use super::*;
    use crate::discover::scratch::{Scratch, openclaw};

    const UUID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a5";
    const NOW: Duration = Duration::from_secs(100);

    fn ids_of(page: &CatalogThreads) -> Vec<String> {
        let ids = page.threads.iter().map(|row| row.thread_id.to_string());
        ids.collect()
    }

    impl Scratch {
        fn ids(&self, page: &CatalogPage) -> (Vec<String>, bool) {
            let page = first_page(&self.places, page);
            (ids_of(&page), page.more)
        }

        /// Threads `0` to `count`, the first of them the newest.
        fn threads(&self, count: u64) {
            for n in 0..count {
                self.write(&format!("claude/p/{n}.jsonl"), 1_000 - n, "");
            }
        }
    }

    fn page(offset: u32, limit: u32) -> CatalogPage {
        CatalogPage {
            offset,
            limit,
            ..CatalogPage::default()
        }
    }

    /// The page of a listing that follows `before`.
    fn after(before: &CatalogThreads, offset: u32) -> CatalogPage {
        CatalogPage {
            listing: before.listing,
            ..page(offset, 2)
        }
    }

    #[test]
    fn what_happens_between_two_pages_of_a_listing_moves_nothing_in_it() {
        let scratch = Scratch::new();
        scratch.threads(6);
        let listings = Listings::default();
        let first = listings.page(&scratch.places, &page(0, 2), NOW);
        assert_eq!(
            (ids_of(&first), first.more),
            (vec!["0".into(), "1".into()], true)
        );
        // A walk would find this one in front.
        scratch.write("claude/p/new.jsonl", 2_000, "");
        let second = listings.page(&scratch.places, &after(&first, 2), NOW);
        assert_eq!(ids_of(&second), ["2", "3"]);
        // Asked for once more, as after an answer that was lost: the listing has gone on.
        let again = listings.page(&scratch.places, &after(&second, 2), NOW);
        assert_eq!(ids_of(&again), ["2", "3"]);
        let last = listings.page(&scratch.places, &after(&again, 4), NOW);
        assert_eq!(ids_of(&last), ["4", "5"]);
        assert_eq!((last.more, last.listing), (false, None));
    }

    #[test]
    fn a_listing_is_kept_for_a_minute_and_for_its_own_catalog() {
        let scratch = Scratch::new();
        scratch.threads(4);
        let listings = Listings::default();
        let first = listings.page(&scratch.places, &page(0, 2), NOW);
        scratch.write("claude/p/new.jsonl", 2_000, "");
        let elsewhere = CatalogPage {
            catalog: Some(Catalog::Codex),
            ..after(&first, 2)
        };
        assert!(
            listings
                .page(&scratch.places, &elsewhere, NOW)
                .threads
                .is_empty()
        );
        let late = listings.page(&scratch.places, &after(&first, 2), NOW + KEPT_FOR);
        assert_eq!(ids_of(&late), ["1", "2"], "found anew");
        assert_eq!(listings.lock().waiting.len(), 1);
        listings.forget_old(NOW + 2 * KEPT_FOR);
        assert!(listings.lock().waiting.is_empty());
    }

    #[test]
    fn no_more_listings_are_kept_than_may() {
        let scratch = Scratch::new();
        scratch.threads(3);
        let listings = Listings::default();
        let begun: Vec<_> = (0..2 * MAX_LISTINGS)
            .map(|_| listings.page(&scratch.places, &page(0, 2), NOW))
            .collect();
        assert_eq!(listings.lock().waiting.len(), MAX_LISTINGS);
        // Whoever lost his place gets the same page all the same.
        for first in [&begun[0], &begun[2 * MAX_LISTINGS - 1]] {
            let rest = listings.page(&scratch.places, &after(first, 2), NOW);
            assert_eq!(ids_of(&rest), ["2"]);
        }
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
            let listed = first_page(&scratch.places, &asked).threads.into_iter();
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
            let page = first_page(&scratch.places, &page(offset, 1000));
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
}
