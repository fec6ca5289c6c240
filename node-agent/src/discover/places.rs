//! What a tailer may know about the directories around its file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_protocol::marker::FileHint;
use tidings_protocol::{Catalog, ThreadId};

use super::files::{name_has_thread, thread_in_name};
use super::roots::{Root, RootSet};
use super::seen::{Identity, SeenDirectories};
use super::walk::{Step, walk};
use crate::tail::Places;

/// How many places a moved file is looked for in, at most: each is opened and compared.
const MAX_CANDIDATES: usize = 16;

/// The directories of a set of roots.
#[derive(Debug)]
pub struct RootPlaces {
    roots: Arc<RootSet>,
    /// Roots that do not answer: nobody walks into them.
    hung: Vec<AtomicBool>,
    /// What each directory was when a followed file was last found in it.
    seen: Mutex<SeenDirectories>,
    /// The roots with all links resolved, where known.
    resolved: Mutex<Vec<Option<PathBuf>>>,
}

impl RootPlaces {
    /// The directories of `roots`; no followed file has been seen in any.
    #[must_use]
    pub fn new(roots: Arc<RootSet>) -> Self {
        Self::with(roots, SeenDirectories::default())
    }

    /// The same, with what an agent before this one has seen, as `file` remembers it.
    #[must_use]
    pub fn remembering(roots: Arc<RootSet>, file: PathBuf) -> Self {
        Self::with(roots, SeenDirectories::remembered_in(file))
    }

    fn with(roots: Arc<RootSet>, seen: SeenDirectories) -> Self {
        let count = roots.all().len();
        Self {
            roots,
            hung: (0..count).map(|_| AtomicBool::new(false)).collect(),
            seen: Mutex::new(seen),
            resolved: Mutex::new(vec![None; count]),
        }
    }

    /// The roots.
    pub fn roots(&self) -> &Arc<RootSet> {
        &self.roots
    }

    /// The root does not answer: it is left out of every search until it does.
    pub fn leave_out(&self, root: usize) {
        self.hung[root].store(true, Ordering::Relaxed);
    }

    /// The root answers.
    pub fn take_in(&self, root: usize) {
        self.hung[root].store(false, Ordering::Relaxed);
    }

    /// The roots of a catalog that answer, and whether one does not.
    pub(super) fn within_reach(&self, catalog: Catalog) -> (Vec<&Root>, bool) {
        let mut answering = Vec::new();
        let mut silent = false;
        for (root, hung) in self.roots.all().iter().zip(&self.hung) {
            if root.catalog != catalog {
                continue;
            }
            if hung.load(Ordering::Relaxed) {
                silent = true;
            } else {
                answering.push(root);
            }
        }
        (answering, silent)
    }

    /// The directory whose vanishing says nothing about the files in it: the root, or the
    /// agent's part of it.
    fn directory_of(&self, catalog: Catalog, path: &Path) -> Option<PathBuf> {
        let root = &self.roots.all()[self.roots.holding(catalog, path)?];
        let relative = path.strip_prefix(&root.path).ok()?;
        let parts = relative.components().take(root.layout.root_depth());
        Some(root.path.join(parts.collect::<PathBuf>()))
    }

    /// True when every directory of every root of the catalog can be searched. A root that is
    /// absent counts as searched as long as no followed file was ever seen in it.
    fn can_search_everywhere(&self, catalog: Catalog) -> bool {
        let (roots, silent) = self.within_reach(catalog);
        !silent
            && roots
                .into_iter()
                .all(|root| match fs::read_dir(&root.path) {
                    Ok(_) => is_readable_throughout(root),
                    Err(error) => {
                        error.kind() == io::ErrorKind::NotFound
                            && !self.seen().any_below(&root.path)
                    }
                })
    }

    fn is_below_a_resolved_root(&self, catalog: Catalog, resolved_path: &Path) -> bool {
        let resolved = lock(&self.resolved);
        self.roots
            .all()
            .iter()
            .zip(resolved.iter())
            .any(|(root, resolved)| {
                root.catalog == catalog
                    && resolved
                        .as_ref()
                        .is_some_and(|resolved| resolved_path.starts_with(resolved))
            })
    }

    fn resolve_roots(&self, catalog: Catalog) {
        let (answering, _) = self.within_reach(catalog);
        for root in answering {
            let resolved = fs::canonicalize(&root.path).ok();
            let at = self.roots.all().iter().position(|known| known == root);
            if let Some(at) = at {
                lock(&self.resolved)[at] = resolved;
            }
        }
    }

    fn seen(&self) -> MutexGuard<'_, SeenDirectories> {
        lock(&self.seen)
    }
}

impl Places for RootPlaces {
    fn candidates(
        &self,
        catalog: Catalog,
        thread: &ThreadId,
        hint: FileHint,
        not: &Path,
    ) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for root in self.within_reach(catalog).0 {
            let _ = walk(root, &root.path, &mut |step| {
                let Step::Transcript(file) = step else {
                    return ControlFlow::Continue(());
                };
                let same_name =
                    file_name(file.path).is_some_and(|name| name_has_thread(catalog, name, thread));
                let same_file = hint.inode != 0
                    && file.inode == hint.inode
                    && fs::symlink_metadata(file.path).is_ok_and(|meta| meta.dev() == hint.device);
                if (same_name || same_file) && file.path != not {
                    found.push(file.path.to_owned());
                }
                if found.len() < MAX_CANDIDATES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        }
        found.truncate(MAX_CANDIDATES);
        found
    }

    fn is_inside(&self, catalog: Catalog, path: &Path) -> bool {
        let Ok(resolved_path) = fs::canonicalize(path) else {
            return false;
        };
        // Roots seldom move: they are resolved again only when the answer would be no.
        self.is_below_a_resolved_root(catalog, &resolved_path) || {
            self.resolve_roots(catalog);
            self.is_below_a_resolved_root(catalog, &resolved_path)
        }
    }

    fn root_is_as_last_seen(&self, catalog: Catalog, path: &Path) -> bool {
        let Some(directory) = self.directory_of(catalog, path) else {
            return false;
        };
        let Some(last_seen) = self.seen().get(&directory) else {
            return false;
        };
        self.can_search_everywhere(catalog)
            && identity(&directory) == Some(last_seen)
            && fs::read_dir(&directory).is_ok()
    }

    fn found(&self, catalog: Catalog, path: &Path) {
        let Some(directory) = self.directory_of(catalog, path) else {
            return;
        };
        if let Some(identity) = identity(&directory) {
            self.seen().found(directory, identity);
        }
    }

    fn is_stored_otherwise(&self, catalog: Catalog, thread: &ThreadId, path: &Path) -> bool {
        if exists(&with_zst(path)) {
            return true;
        }
        if catalog != Catalog::Codex {
            return false;
        }
        self.within_reach(catalog)
            .0
            .into_iter()
            .any(|root| is_archived(root, path) || holds_compressed(root, thread))
    }
}

/// False when something below the root cannot be read: anything may stand there.
fn is_readable_throughout(root: &Root) -> bool {
    let end = walk(root, &root.path, &mut |step| match step {
        Step::Unreadable(_, error) if error.kind() != io::ErrorKind::NotFound => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    end.is_continue()
}

/// Codex archives by moving a file, under its name, to a directory beside `sessions`; that
/// may be none of the configured roots.
fn is_archived(root: &Root, path: &Path) -> bool {
    let (Some(home), Some(name)) = (root.path.parent(), path.file_name()) else {
        return false;
    };
    let archived = home.join("archived_sessions").join(name);
    archived != path && (exists(&archived) || exists(&with_zst(&archived)))
}

fn holds_compressed(root: &Root, thread: &ThreadId) -> bool {
    let end = walk(root, &root.path, &mut |step| {
        let compressed = match step {
            Step::Other(path) => file_name(path)
                .and_then(|name| name.strip_suffix(".zst"))
                .and_then(|name| thread_in_name(Catalog::Codex, name)),
            _ => None,
        };
        if compressed.is_some_and(|compressed| compressed == *thread) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    end.is_break()
}

fn with_zst(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".zst");
    PathBuf::from(name)
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn identity(directory: &Path) -> Option<Identity> {
    let metadata = fs::metadata(directory).ok()?;
    metadata.is_dir().then(|| (metadata.dev(), metadata.ino()))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is whole after every statement, whoever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Surroundings;

    const UUID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

    struct Scratch {
        directory: tempfile::TempDir,
        places: RootPlaces,
    }

    impl Scratch {
        fn new(roots: &[&str]) -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            let given: Vec<_> = roots
                .iter()
                .map(|root| {
                    let (catalog, path) = root.split_once('=').expect("a root");
                    let path = directory.path().join(path);
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

        fn path(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn write(&self, path: &str) -> PathBuf {
            let path = self.path(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(&path, "x\n").expect("write");
            path
        }
    }

    fn thread(id: &str) -> ThreadId {
        ThreadId::parse(id).expect("a thread")
    }

    #[test]
    fn a_moved_file_is_found_by_its_name_and_by_its_inode() {
        let scratch = Scratch::new(&["claude=projects"]);
        let same_name = scratch.write("projects/q/s1.jsonl");
        let same_inode = scratch.write("projects/q/renamed.jsonl");
        scratch.write("projects/q/other.jsonl");
        scratch.write("projects/q/s1.jsonl.old");
        let meta = fs::metadata(&same_inode).expect("metadata");
        let hint = FileHint {
            device: meta.dev(),
            inode: meta.ino(),
        };
        let candidates = |hint| {
            let gone = scratch.path("projects/p/s1.jsonl");
            let mut found = scratch
                .places
                .candidates(Catalog::Claude, &thread("s1"), hint, &gone);
            found.sort();
            found
        };
        let by_name = candidates(FileHint::default());
        assert_eq!(by_name, std::slice::from_ref(&same_name));
        assert_eq!(candidates(hint), [same_inode, same_name]);
        scratch.places.leave_out(0);
        assert!(candidates(hint).is_empty());
    }

    #[test]
    fn a_link_that_leads_out_of_the_roots_is_outside() {
        let scratch = Scratch::new(&["claude=projects", "codex=elsewhere"]);
        let secret = scratch.write("elsewhere/secret.jsonl");
        let inside = scratch.write("projects/p/s1.jsonl");
        let led_out = scratch.path("projects/p/out.jsonl");
        let led_in = scratch.path("projects/p/in.jsonl");
        std::os::unix::fs::symlink(&secret, &led_out).expect("a link");
        std::os::unix::fs::symlink(&inside, &led_in).expect("a link");
        let is_inside = |path: &Path| scratch.places.is_inside(Catalog::Claude, path);
        assert!(is_inside(&inside));
        assert!(is_inside(&led_in));
        assert!(!is_inside(&led_out));
        assert!(!is_inside(&secret));
        assert!(!is_inside(&scratch.path("projects/p/absent.jsonl")));
    }

    #[test]
    fn a_root_that_is_a_link_may_point_elsewhere_later() {
        let scratch = Scratch::new(&["claude=projects"]);
        let root = scratch.path("projects");
        for target in ["one", "two"] {
            let file = scratch.write(&format!("{target}/p/s1.jsonl"));
            let _ = fs::remove_dir(&root);
            let _ = fs::remove_file(&root);
            std::os::unix::fs::symlink(scratch.path(target), &root).expect("a link");
            let as_configured = root.join("p/s1.jsonl");
            assert!(scratch.places.is_inside(Catalog::Claude, &as_configured));
            assert!(scratch.places.is_inside(Catalog::Claude, &file));
        }
        let before = scratch.path("one/p/s1.jsonl");
        assert!(!scratch.places.is_inside(Catalog::Claude, &before));
    }

    #[test]
    fn a_root_is_as_last_seen_only_while_it_is_the_same_directory() {
        let scratch = Scratch::new(&["claude=projects"]);
        let file = scratch.write("projects/p/s1.jsonl");
        let as_last_seen = || scratch.places.root_is_as_last_seen(Catalog::Claude, &file);
        assert!(!as_last_seen(), "nothing was seen yet");
        scratch.places.found(Catalog::Claude, &file);
        fs::remove_file(&file).expect("remove");
        assert!(as_last_seen());
        fs::rename(scratch.path("projects"), scratch.path("away")).expect("rename");
        assert!(!as_last_seen(), "the root is gone");
        fs::create_dir_all(scratch.path("projects/p")).expect("directories");
        assert!(!as_last_seen(), "another directory");
        fs::remove_dir_all(scratch.path("projects")).expect("remove");
        fs::rename(scratch.path("away"), scratch.path("projects")).expect("rename");
        assert!(as_last_seen(), "the same again");
        let outside = scratch.path("elsewhere/s1.jsonl");
        assert!(
            !scratch
                .places
                .root_is_as_last_seen(Catalog::Claude, &outside)
        );
    }

    #[test]
    fn nothing_is_gone_for_good_while_another_root_of_the_catalog_cannot_be_searched() {
        let scratch = Scratch::new(&["codex=sessions", "codex=archive"]);
        let file = scratch.write(&format!("sessions/rollout-1-{UUID}.jsonl"));
        let as_last_seen = || scratch.places.root_is_as_last_seen(Catalog::Codex, &file);
        scratch.places.found(Catalog::Codex, &file);
        assert!(as_last_seen());
        scratch.places.leave_out(1);
        assert!(!as_last_seen(), "it does not answer");
        scratch.places.take_in(1);
        fs::remove_dir(scratch.path("archive")).expect("remove");
        assert!(as_last_seen(), "never used, so nothing can be in it");
        let archived = scratch.write(&format!("archive/rollout-2-{UUID}.jsonl"));
        scratch.places.found(Catalog::Codex, &archived);
        fs::remove_dir_all(scratch.path("archive")).expect("remove");
        assert!(!as_last_seen(), "a followed file was in it");
    }

    #[test]
    fn each_agents_directory_is_a_root_of_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let surroundings = Surroundings {
            home: Some(directory.path().to_owned()),
            ..Surroundings::default()
        };
        let roots = RootSet::new(&surroundings, &[]).expect("roots");
        let places = RootPlaces::new(Arc::new(roots));
        let scratch = Scratch { directory, places };
        let ada = scratch.write(".openclaw/agents/ada/sessions/s1.jsonl");
        let bob = scratch.write(".openclaw/agents/bob/sessions/s2.jsonl");
        for file in [&ada, &bob] {
            scratch.places.found(Catalog::Openclaw, file);
        }
        fs::remove_dir_all(scratch.path(".openclaw/agents/ada")).expect("remove");
        let as_last_seen =
            |file: &Path| scratch.places.root_is_as_last_seen(Catalog::Openclaw, file);
        assert!(!as_last_seen(&ada));
        assert!(as_last_seen(&bob));
    }

    #[test]
    fn a_compressed_or_archived_thread_is_stored_otherwise() {
        let scratch = Scratch::new(&["codex=home/sessions"]);
        let name = format!("rollout-1-{UUID}.jsonl");
        let gone = scratch.path(&format!("home/sessions/2026/01/02/{name}"));
        let stored = || {
            scratch
                .places
                .is_stored_otherwise(Catalog::Codex, &thread(UUID), &gone)
        };
        assert!(!stored());
        for place in [
            format!("home/sessions/2026/01/02/{name}.zst"),
            format!("home/sessions/2026/03/{name}.zst"),
            format!("home/archived_sessions/{name}"),
            format!("home/archived_sessions/{name}.zst"),
        ] {
            let file = scratch.write(&place);
            assert!(stored(), "{place}");
            fs::remove_file(file).expect("remove");
            assert!(!stored(), "{place}");
        }
    }
}
