//! Which links a changed file may belong to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tidings_protocol::report::LinkId;
use tidings_protocol::{Catalog, ThreadId};

use crate::discover::files::possible_threads;

/// The followed links by place and by thread: a file that moves is found by its name, and
/// one whose name says nothing by its place.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_path: HashMap<PathBuf, Vec<LinkId>>,
    by_thread: HashMap<(Catalog, ThreadId), Vec<LinkId>>,
}

impl Index {
    pub(super) fn add(&mut self, link: LinkId, thread: (Catalog, ThreadId), path: PathBuf) {
        self.by_thread.entry(thread).or_default().push(link);
        self.by_path.entry(path).or_default().push(link);
    }

    pub(super) fn remove(&mut self, link: LinkId, thread: &(Catalog, ThreadId), path: &Path) {
        take_out(&mut self.by_thread, thread, link);
        take_out(&mut self.by_path, path, link);
    }

    /// The link's file is at another place.
    pub(super) fn moved(&mut self, link: LinkId, from: &Path, to: PathBuf) {
        take_out(&mut self.by_path, from, link);
        self.by_path.entry(to).or_default().push(link);
    }

    /// The links on this thread.
    pub(super) fn of(&self, thread: &(Catalog, ThreadId)) -> Vec<LinkId> {
        self.by_thread.get(thread).cloned().unwrap_or_default()
    }

    /// The links that the file at `path` may belong to.
    pub(super) fn at(&self, path: &Path) -> Vec<LinkId> {
        let mut links = self.by_path.get(path).cloned().unwrap_or_default();
        let name = path.file_name().and_then(|name| name.to_str());
        for thread in name.into_iter().flat_map(possible_threads) {
            for link in self.by_thread.get(&thread).into_iter().flatten() {
                if !links.contains(link) {
                    links.push(*link);
                }
            }
        }
        links
    }
}

fn take_out<K, Q>(map: &mut HashMap<K, Vec<LinkId>>, key: &Q, link: LinkId)
where
    K: std::hash::Hash + Eq + std::borrow::Borrow<Q>,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if let Some(links) = map.get_mut(key) {
        links.retain(|known| *known != link);
        if links.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_leads_to_its_links_by_place_and_by_name() {
        let mut index = Index::default();
        let thread = |id: &str| (Catalog::Claude, ThreadId::parse(id).expect("a thread"));
        index.add(LinkId(1), thread("a"), "/r/p/a.jsonl".into());
        index.add(LinkId(2), thread("a"), "/r/p/a.jsonl".into());
        index.add(LinkId(3), thread("odd"), "/r/p/b.jsonl".into());
        let at = |index: &Index, path: &str| index.at(Path::new(path));
        assert_eq!(at(&index, "/r/p/a.jsonl"), [LinkId(1), LinkId(2)]);
        assert_eq!(at(&index, "/r/q/a.jsonl"), [LinkId(1), LinkId(2)]);
        assert_eq!(at(&index, "/r/p/b.jsonl"), [LinkId(3)]);
        assert_eq!(at(&index, "/r/q/b.jsonl"), []);
        assert_eq!(index.of(&thread("a")), [LinkId(1), LinkId(2)]);
        assert_eq!(index.of(&thread("b")), []);
        index.moved(LinkId(3), Path::new("/r/p/b.jsonl"), "/r/q/b.jsonl".into());
        assert_eq!(at(&index, "/r/p/b.jsonl"), []);
        assert_eq!(at(&index, "/r/q/b.jsonl"), [LinkId(3)]);
        index.remove(LinkId(1), &thread("a"), Path::new("/r/p/a.jsonl"));
        assert_eq!(at(&index, "/r/p/a.jsonl"), [LinkId(2)]);
    }
}
