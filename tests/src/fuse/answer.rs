//! One request of the kernel and its answer: as much of FUSE 7.31 as reading takes.

use super::tree::{self, Tree};

const HEADER_BYTES: usize = 40;
const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;
/// Each read comes to us: the kernel keeps nothing of the file.
const DIRECT_IO: u32 = 1;

/// The answer; `None` where the kernel expects none.
pub(super) fn to(request: &[u8], tree: &Tree) -> Option<Vec<u8>> {
    let opcode = u32_at(request, 4);
    let (unique, node) = (u64_at(request, 8), u64_at(request, 16));
    let body = &request[HEADER_BYTES..];
    let answer = match opcode {
        // FORGET, INTERRUPT, BATCH_FORGET.
        2 | 36 | 42 => return None,
        // LOOKUP
        1 => match tree.find(node, body.strip_suffix(b"\0").unwrap_or(body)) {
            Some(found) => Ok(entry(found, tree)),
            None => Err(ENOENT),
        },
        // GETATTR
        3 => Ok([vec![0; 16], attributes(node, tree)].concat()),
        // OPEN, OPENDIR
        14 | 27 => Ok(Body::default().u64(0).u32(DIRECT_IO).u32(0).0),
        // READ
        15 => Ok(tree.read(u64_at(body, 8), u32_at(body, 16)).to_vec()),
        // STATFS
        17 => Ok(vec![0; 80]),
        // READDIR, which gives one entry and then nothing.
        28 if u64_at(body, 8) == 0 => Ok(listing(node, tree)),
        // READDIR behind it, RELEASE, FLUSH, RELEASEDIR, ACCESS, DESTROY
        28 | 18 | 25 | 29 | 34 | 38 => Ok(Vec::new()),
        // INIT
        26 => Ok(init()),
        _ => Err(ENOSYS),
    };
    let (error, body) = match answer {
        Ok(body) => (0, body),
        Err(error) => (-error, Vec::new()),
    };
    let length = u32::try_from(16 + body.len()).expect("a small answer");
    let header = Body::default().u32(length).u32(error.cast_unsigned());
    Some([header.u64(unique).0, body].concat())
}

fn init() -> Vec<u8> {
    let version = Body::default().u32(7).u32(31);
    // Read ahead, flags, background, write, and what later versions know: nothing of it.
    [version.u32(0).u32(0).u32(0).u32(4096).0, vec![0; 40]].concat()
}

fn entry(node: u64, tree: &Tree) -> Vec<u8> {
    // A generation, and no time for which the kernel may believe any of it.
    let head = Body::default().u64(node).u64(0).u64(0).u64(0).u64(0);
    [head.0, attributes(node, tree)].concat()
}

fn attributes(node: u64, tree: &Tree) -> Vec<u8> {
    let mode = if tree::is_folder(node) {
        0o040_755
    } else {
        0o100_644
    };
    let size = tree.size(node);
    let times = Body::default().u64(node).u64(size).u64(size.div_ceil(512));
    let times = times.u64(0).u64(size).u64(size).u32(0).u32(0).u32(0);
    times
        .u32(mode)
        .u32(1)
        .u32(0)
        .u32(0)
        .u32(0)
        .u32(4096)
        .u32(0)
        .0
}

fn listing(folder: u64, tree: &Tree) -> Vec<u8> {
    let Some((node, name)) = tree.entry(folder) else {
        return Vec::new();
    };
    let kind = if tree::is_folder(node) { 4 } else { 8 };
    let length = u32::try_from(name.len()).expect("a short name");
    let mut listing = Body::default().u64(node).u64(1).u32(length).u32(kind).0;
    listing.extend_from_slice(name.as_bytes());
    listing.resize(listing.len().next_multiple_of(8), 0);
    listing
}

/// Numbers as this machine writes them.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn u32(mut self, number: u32) -> Self {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    fn u64(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
    u32::from_ne_bytes(part.unwrap_or_default())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
    u64::from_ne_bytes(part.unwrap_or_default())
}
