//! Copies the files of another store's sessions, and says which are not taken and why.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::FileType;
use std::path::Path;

use tidings_node::private_files::FileError;

use super::{LeftOut, left_out};
use crate::sessions::artefacts::{Artefact, Kind, classify};
use crate::sessions::files::{Files, Listed};
use crate::sessions::names;
use crate::state::AgentId;

/// What was copied of one agent, and what was not.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) left_out: Vec<LeftOut>,
}

/// What must stand at a place to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Directory,
    File,
}

impl Wanted {
    /// Why what stands there is not that; `None` where it is. No link is followed: it may lead
    /// out of the tree.
    pub(super) fn but(self, kind: FileType) -> Option<&'static str> {
        match self {
            _ if kind.is_symlink() => Some("a link, which is not followed"),
            Self::Directory if !kind.is_dir() => Some("it is no directory"),
            Self::File if !kind.is_file() => Some("it is no regular file"),
            Self::Directory | Self::File => None,
        }
    }

    /// The same for an entry of a directory, whose name must be text too.
    pub(super) fn but_named(self, name: &OsStr, kind: FileType) -> Option<&'static str> {
        let is_text = name.to_str().is_some();
        self.but(kind)
            .or_else(|| (!is_text).then_some("its name is no UTF-8 text"))
    }
}

/// Copies what belongs to sessions, but not to the conversations in `others`, and names what
/// is not copied.
pub(super) fn copy_files(
    files: &Files,
    from: &Path,
    to: &Path,
    agent: &AgentId,
    others: &HashSet<String>,
) -> Result<Copied, FileError> {
    let mut copied = Copied::default();
    for (name, kind) in files.names(from)? {
        if let Some(reason) = Wanted::File.but_named(&name, kind) {
            let name = name.to_string_lossy();
            copied.left_out.push(left_out(agent, &name, reason));
        }
    }
    for file in files.list(from)? {
        let taken = match unwanted(&file.name, others) {
            Some(Unwanted::TheStore) => continue,
            Some(Unwanted::Because(reason)) => Err(reason.to_owned()),
            None => copy(files, &file, (from, to))?,
        };
        match taken {
            Ok(Some(bytes)) => {
                copied.files += 1;
                copied.bytes += bytes;
            }
            Ok(None) => {}
            Err(reason) => copied.left_out.push(left_out(agent, &file.name, &reason)),
        }
    }
    Ok(copied)
}

/// Why a file is not copied.
enum Unwanted {
    /// Its entries are taken instead.
    TheStore,
    Because(&'static str),
}

fn unwanted(name: &str, others: &HashSet<String>) -> Option<Unwanted> {
    let reason = match classify(name) {
        Artefact::Of(_, id) if others.contains(id) => {
            "its session stands here already, with another conversation"
        }
        Artefact::Of(Kind::Lock, _) => "a lock: the program that holds it may still write",
        Artefact::Of(Kind::Draft, _) => "a program left it half-way",
        Artefact::Of(..) => return None,
        Artefact::Ours if name == names::STORE => return Some(Unwanted::TheStore),
        Artefact::Ours | Artefact::Foreign => "it is neither a store nor a transcript",
    };
    Some(Unwanted::Because(reason))
}

/// Copies one file: its size, nothing where it stands here already, or why it cannot be.
fn copy(
    files: &Files,
    file: &Listed,
    (from, to): (&Path, &Path),
) -> Result<Result<Option<u64>, String>, FileError> {
    let target = to.join(&file.name);
    match files.look(&target)? {
        Some(seen) if seen.size == file.seen.size => return Ok(Ok(None)),
        Some(_) => return Ok(Err("another file of this name stands here".to_owned())),
        None => {}
    }
    files.create_dir(to)?;
    let copied = files.copy(&from.join(&file.name), &target);
    Ok(copied.map(Some).map_err(|error| error.to_string()))
}
