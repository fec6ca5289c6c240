//! What is in the file system: a folder, and a file in it.

/// The root's node; the kernel knows it by this number.
pub(super) const ROOT: u64 = 1;
const FOLDER: u64 = 2;
const FILE: u64 = 3;

/// A root with a folder with a file.
#[derive(Debug)]
pub(super) struct Tree {
    folder: String,
    name: String,
    content: Vec<u8>,
}

impl Tree {
    pub(super) fn new(folder: &str, name: &str, content: Vec<u8>) -> Self {
        Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            content,
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
    }

    /// The entry of that name in a folder.
    pub(super) fn find(&self, folder: u64, name: &[u8]) -> Option<u64> {
        let (node, known) = self.entry(folder)?;
        (name == known.as_bytes()).then_some(node)
    }

    /// The only entry of a folder.
    pub(super) fn entry(&self, folder: u64) -> Option<(u64, &str)> {
        match folder {
            ROOT => Some((FOLDER, &self.folder)),
            FOLDER => Some((FILE, &self.name)),
            _ => None,
        }
    }

    pub(super) fn size(&self, node: u64) -> u64 {
        if is_folder(node) {
            0
        } else {
            self.content.len() as u64
        }
    }

    /// A part of the file.
    pub(super) fn read(&self, offset: u64, length: u32) -> &[u8] {
        let size = self.content.len();
        let start = usize::try_from(offset).unwrap_or(size).min(size);
        let end = size.min(start + usize::try_from(length).unwrap_or(0));
        &self.content[start..end]
    }
}

pub(super) fn is_folder(node: u64) -> bool {
    node != FILE
}
