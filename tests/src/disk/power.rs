//! Power cuts. A process that is killed leaves all it has written to the kernel; a machine
//! that loses its power leaves what was synced, and of the rest whatever it likes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Disk;
use crate::dice::Dice;

/// The size of a record's head in the undo file; its layout is in `shim/disk.c`.
const HEAD_BYTES: usize = 40;
/// What a disk writes in one piece.
const SECTOR_BYTES: u64 = 512;

/// What became of the writes that were not synced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// They reached the disk all the same.
    pub kept: u64,
    /// They did not.
    pub lost: u64,
    /// A part of them did.
    pub torn: u64,
}

/// A change of a file.
#[derive(Debug)]
struct Change<'a> {
    /// Where it stands in the undo file.
    place: u64,
    kind: u8,
    at: u64,
    old_size: u64,
    old: &'a [u8],
    new: &'a [u8],
}

/// A record of the undo file.
struct Record<'a> {
    path: &'a str,
    change: Change<'a>,
}

impl Disk {
    /// From the next start on it is kept what a power cut would lose.
    pub fn keep_for_power_cuts(&self) {
        fs::write(self.folder.join("undo"), b"").expect("an empty undo file");
    }

    /// Cuts the power of a gateway that has been killed just now: every write that was not
    /// synced is lost, kept or torn, as the dice decide.
    pub fn cut_power(&self, state_dir: &Path, dice: &mut Dice) -> Cut {
        let undo = fs::read(self.folder.join("undo")).expect("an undo file");
        let mut cut = Cut::default();
        // Sometimes nothing of it has reached the disk: the worst for whoever relied on it.
        let chance = 1 + dice.below(3);
        for (path, changes) in unsynced(&undo) {
            // A file that was removed has taken its changes with it.
            if changes.is_empty() || !Path::new(path).exists() {
                continue;
            }
            undo_all(path.as_ref(), &changes);
            if chance > 1 {
                redo_some(path.as_ref(), &changes, chance, dice, &mut cut);
            } else {
                cut.lost += changes.len() as u64;
            }
        }
        // It lives in memory only. Whoever comes next makes it anew.
        let _ = fs::remove_file(state_dir.join("state.sqlite-shm"));
        self.keep_for_power_cuts();
        cut
    }
}

/// The changes of each file that no sync covers, in the order they were made.
fn unsynced(undo: &[u8]) -> BTreeMap<&str, Vec<Change<'_>>> {
    let mut files: BTreeMap<&str, Vec<Change<'_>>> = BTreeMap::new();
    let mut rest = undo;
    while let Some(record) = take_record(&mut rest, undo.len()) {
        let changes = files.entry(record.path).or_default();
        if record.change.kind == b'S' {
            // It covers what had been written when it began.
            changes.retain(|change| change.place >= record.change.at);
        } else {
            changes.push(record.change);
        }
    }
    files
}

/// The next whole record. One that was being written when the process was killed had not
/// been followed by its write.
fn take_record<'a>(rest: &mut &'a [u8], total: usize) -> Option<Record<'a>> {
    let place = (total - rest.len()) as u64;
    let head = rest.get(..HEAD_BYTES)?;
    let number = |at: usize| {
        let bytes = head[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let path_size = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    let size = |at| usize::try_from(number(at)).expect("a size that was in memory");
    let (old_size, new_size) = (size(24), size(32));
    let body = rest.get(HEAD_BYTES..HEAD_BYTES + path_size + old_size + new_size)?;
    let (path, bytes) = body.split_at(path_size);
    let (old, new) = bytes.split_at(old_size);
    *rest = &rest[HEAD_BYTES + body.len()..];
    Some(Record {
        path: std::str::from_utf8(path).expect("a path"),
        change: Change {
            place,
            kind: head[0],
            at: number(8),
            old_size: number(16),
            old,
            new,
        },
    })
}

fn open(path: &Path) -> File {
    let file = OpenOptions::new().write(true).open(path);
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn undo_all(path: &Path, changes: &[Change<'_>]) {
    let file = open(path);
    for change in changes.iter().rev() {
        file.write_all_at(change.old, change.at).expect("old bytes");
        file.set_len(change.old_size).expect("the old size");
    }
}

/// Brings back some of the changes: a disk writes in whatever order it likes, and a write
/// that was going on when the power went ends somewhere.
fn redo_some(path: &Path, changes: &[Change<'_>], chance: u64, dice: &mut Dice, cut: &mut Cut) {
    let file = open(path);
    for change in changes {
        if dice.once_in(chance) {
            cut.lost += 1;
            continue;
        }
        if change.kind == b'T' {
            file.set_len(change.at).expect("the new size");
            cut.kept += 1;
            continue;
        }
        let sectors = (change.new.len() as u64).div_ceil(SECTOR_BYTES);
        let whole = !dice.once_in(4);
        let written = if whole { sectors } else { dice.below(sectors) } * SECTOR_BYTES;
        let written = usize::try_from(written).expect("a size that was in memory");
        let written = written.min(change.new.len());
        let bytes = &change.new[..written];
        file.write_all_at(bytes, change.at).expect("new bytes");
        if whole {
            cut.kept += 1;
        } else {
            cut.torn += 1;
        }
    }
}
