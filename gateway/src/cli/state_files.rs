//! The files of a state directory: whether only their owner may read what is secret.

use std::fs;
use std::path::{Path, PathBuf};

use tidings_node::held_dir::is_ours;
use tidings_node::open_files::Open;

use crate::sessions::files::Files;
use crate::sessions::names;
use crate::state::DATABASE_FILE;

/// The folders that hold keys: the authority's, and the embedded node agent's.
const KEY_FOLDERS: [&str; 2] = ["authority", "node"];
/// How many files of a folder are looked at: ours hold a dozen.
const MAX_FILES: usize = 1_000;

/// What is open to others: the directory itself, its folders of keys, the keys, and the
/// database. A missing file is not open.
pub(super) fn open_to_others(state_dir: &Path) -> Vec<Open> {
    // The directory itself may be named by a link: then what counts is where that leads.
    let Ok(state_dir) = fs::canonicalize(state_dir) else {
        return Vec::new();
    };
    if !is_ours(&state_dir) {
        return Vec::new();
    }
    let folders = KEY_FOLDERS.map(|folder| state_dir.join(folder));
    let mut open = vec![Open::at(state_dir.clone(), 0o700)];
    open.extend(folders.iter().map(|folder| Open::at(folder.clone(), 0o700)));
    open.extend(folders.iter().flat_map(|folder| {
        let keys = keys_of(folder).into_iter();
        keys.map(|key| Open::at(key, 0o600))
    }));
    open.push(Open::at(state_dir.join(DATABASE_FILE), 0o600));
    open.into_iter().flatten().collect()
}

/// What was set aside of the agents' stores: files that could not be taken, or not whole.
pub(super) fn rejected_stores(state_dir: &Path) -> Vec<PathBuf> {
    let files = Files::default();
    let agents = names::agents_dir(state_dir);
    // What cannot be listed is said of the directory, not of each store.
    let dirs = files.list_dirs(&agents).unwrap_or_default();
    let rejected = dirs.iter().flat_map(|agent| {
        let dir = agents.join(agent).join("sessions");
        let listed = files.list(&dir).unwrap_or_default().into_iter();
        listed
            .filter(|file| file.name.starts_with(names::REJECTED))
            .map(move |file| dir.join(file.name))
    });
    rejected.take(MAX_FILES).collect()
}

/// The key files of a folder, in order.
fn keys_of(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let files = entries.take(MAX_FILES).filter_map(Result::ok);
    let mut keys: Vec<PathBuf> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "key"))
        .collect();
    keys.sort();
    keys
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_may_read_is_found_and_closed_and_then_no_more() {
        let scratch = tempfile::tempdir().expect("scratch");
        let dir = scratch.path().canonicalize().expect("path").join("state");
        let file = |name: &str, mode| {
            let path = dir.join(name);
            fs::write(&path, "x").expect("write");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
        };
        let folder = |name: &str, mode| {
            let path = dir.join(name);
            fs::create_dir_all(&path).expect("folder");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
        };
        folder("", 0o755);
        folder("authority", 0o700);
        folder("node", 0o750);
        file("authority/ca.key", 0o640);
        file("authority/quic-ids.key", 0o600);
        file("authority/ca.crt", 0o644);
        file("node/node.key", 0o604);
        file(DATABASE_FILE, 0o644);
        std::os::unix::fs::symlink("/etc/passwd", dir.join("node/other.key")).expect("link");

        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).expect("link");

        let open = open_to_others(&link);

        let found: Vec<_> = open
            .iter()
            .map(|open| {
                let name = open.path.strip_prefix(&dir).expect("within");
                (name.to_str().expect("text"), open.mode, open.wanted)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("", 0o755, 0o700),
                ("node", 0o750, 0o700),
                ("authority/ca.key", 0o640, 0o600),
                ("node/node.key", 0o604, 0o600),
                (DATABASE_FILE, 0o644, 0o600),
            ]
        );
        for open in &open {
            open.close().expect("close");
        }
        assert_eq!(open_to_others(&dir), []);
    }

    #[test]
    fn a_directory_that_is_not_there_is_not_open() {
        let scratch = tempfile::tempdir().expect("scratch");
        assert_eq!(open_to_others(&scratch.path().join("none")), []);
    }
}
