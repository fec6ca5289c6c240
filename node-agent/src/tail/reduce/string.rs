//! Strings, piece by piece.

use memchr::memchr2;

use super::keep::Class;

/// Whether the string is through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    No,
    Yes,
}

/// A string behind its opening quote.
pub(super) struct Text {
    class: Option<Class>,
    /// How many more bytes are kept; none once something was left out, so that what is
    /// kept is a beginning.
    room: usize,
    escape: Escape,
}

/// An escape that has begun.
struct Escape {
    bytes: [u8; 6],
    length: usize,
}

impl Text {
    /// A string of which `room` bytes are kept, if any class wants it.
    pub(super) fn new(class: Option<Class>, room: usize) -> Self {
        Self {
            class,
            room: if class.is_some() { room } else { 0 },
            escape: Escape {
                bytes: [0; 6],
                length: 0,
            },
        }
    }

    pub(super) fn class(&self) -> Option<Class> {
        self.class
    }

    /// Takes bytes of the string and keeps them in `out`, without the closing quote. `None`
    /// where this is no JSON string.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<(usize, Ended)> {
        if self.escape.length > 0 {
            self.escape_byte(bytes[0], out)?;
            return Some((1, Ended::No));
        }
        let stop = memchr2(b'"', b'\\', bytes);
        let run = &bytes[..stop.unwrap_or(bytes.len())];
        self.keep(run, out)?;
        let Some(stop) = stop else {
            return Some((bytes.len(), Ended::No));
        };
        if bytes[stop] == b'"' {
            return Some((stop + 1, Ended::Yes));
        }
        self.escape.bytes[0] = b'\\';
        self.escape.length = 1;
        Some((stop + 1, Ended::No))
    }

    fn escape_byte(&mut self, byte: u8, out: &mut Vec<u8>) -> Option<()> {
        let Escape { bytes, length } = &mut self.escape;
        let is_valid = if *length == 1 {
            b"\"\\/bfnrtu".contains(&byte)
        } else {
            byte.is_ascii_hexdigit()
        };
        if !is_valid {
            return None;
        }
        bytes[*length] = byte;
        *length += 1;
        if bytes[1] == b'u' && *length < 6 {
            return Some(());
        }
        let (whole, length) = (*bytes, std::mem::take(length));
        if length <= self.room {
            out.extend_from_slice(&whole[..length]);
            self.room -= length;
        } else {
            self.room = 0;
        }
        Some(())
    }

    /// Keeps what there is room for; a control character in it is no JSON.
    fn keep(&mut self, run: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if has_control_character(run) {
            return None;
        }
        let kept = &run[..run.len().min(self.room)];
        out.extend_from_slice(kept);
        self.room = if kept.len() < run.len() {
            0
        } else {
            self.room - kept.len()
        };
        Some(())
    }
}

fn has_control_character(run: &[u8]) -> bool {
    // Stretch by stretch without a branch in between, which is many times as fast.
    run.chunks(1024).any(|stretch| {
        let found = stretch
            .iter()
            .fold(0, |found, byte| found | u8::from(*byte < b' '));
        found != 0
    })
}
