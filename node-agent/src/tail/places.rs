//! What a tailer must know about the directories around its file. Discovery implements it;
//! tests use a fake.

use std::path::{Path, PathBuf};

use tidings_protocol::marker::FileHint;
use tidings_protocol::{Catalog, ThreadId};

/// Where transcripts may stand.
pub trait Places: Send + Sync {
    /// Every file in the catalog's roots, under a name that discovery accepts as a
    /// transcript, that has this thread id in its name or this inode; but for `not`.
    fn candidates(
        &self,
        catalog: Catalog,
        thread: &ThreadId,
        hint: FileHint,
        not: &Path,
    ) -> Vec<PathBuf>;

    /// True when `path`, all links resolved, is inside a root of the catalog.
    fn is_inside(&self, catalog: Catalog, path: &Path) -> bool;

    /// True when the root that `path` belongs to is readable and is the same directory
    /// (device and inode) as when a followed file was last found in it; false as well when
    /// no followed file ever was, or no root holds the path.
    fn root_is_as_last_seen(&self, catalog: Catalog, path: &Path) -> bool;

    /// A followed file was found in its place: the root is as it should be.
    fn found(&self, catalog: Catalog, path: &Path);

    /// True when something else shows that the thread is still there, though its file is
    /// not: a compressed sibling, an archived place.
    fn is_stored_otherwise(&self, catalog: Catalog, thread: &ThreadId, path: &Path) -> bool;
}
