//! Makes a small record of one that does not fit into memory.
//!
//! A push parser: it is fed a JSON object piece by piece and keeps only the members that
//! decide, long texts cut. What comes out is judged like any other record. Its size is
//! bounded whatever goes in: texts and blocks may take [`MAX_TEXT_BYTES`], everything else
//! [`MAX_OTHER_BYTES`].

mod keep;
mod scalar;
mod string;

use keep::{Class, Keep, Place};
use string::{Ended, Text};

pub(super) use scalar::Scalar;

/// Room for the texts of a record, as they are written: a message that a gateway can have
/// delivered (128 KiB) fits with every character escaped.
const MAX_TEXT_BYTES: usize = 768 * 1024;
/// Room for everything else: names, ids, times, flags.
const MAX_OTHER_BYTES: usize = 192 * 1024;
/// The longest text of a member that is no prompt: ids and names are shorter.
const MAX_NAME_BYTES: usize = 4 * 1024;
/// How deep brackets may nest: deeper than on any line that is held in memory. What programs
/// write stays below a hundred; a level costs four bytes.
const MAX_DEPTH: usize = 1024 * 1024;
const _: () = assert!(size_of::<Frame>() == 4);
/// The longest key that is looked at; all known ones are shorter, even with every letter
/// escaped.
const MAX_KEY_BYTES: usize = 384;
/// The longest number that is kept as it is written.
const MAX_SCALAR_BYTES: usize = 64;

/// What became of the bytes that were fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// All were taken; the value goes on.
    All,
    /// The value is complete behind this many bytes.
    Complete(usize),
    /// This is not JSON.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    /// Behind `[`: a value, or the end.
    FirstItem,
    /// Behind `{`: a key, or the end.
    FirstKey,
    Key,
    Colon,
    /// Behind a value.
    Next,
    Complete,
}

struct Frame {
    is_object: bool,
    /// Its brackets are kept.
    is_shown: bool,
    /// Where it stands, if its members are kept; none is inside a dropped one.
    place: Option<Place>,
    has_members: bool,
}

/// What is being read in the middle of a token.
enum Token {
    None,
    Key(Text),
    Text(Text),
    Scalar {
        scalar: Scalar,
        bytes: Vec<u8>,
        keep: Keep,
    },
}

/// Reduces one object, array or text.
pub(super) struct Reducer {
    out: Vec<u8>,
    stack: Vec<Frame>,
    state: State,
    token: Token,
    key: Vec<u8>,
    text_left: usize,
    other_left: usize,
}

impl Reducer {
    pub(super) fn new() -> Self {
        Self {
            out: Vec::new(),
            stack: Vec::new(),
            state: State::Value,
            token: Token::None,
            key: Vec::new(),
            text_left: MAX_TEXT_BYTES,
            other_left: MAX_OTHER_BYTES,
        }
    }

    /// The reduced object; `None` of an array or a text, which are no records.
    pub(super) fn into_record(self) -> Option<Vec<u8>> {
        // The first byte of the value is always kept.
        (self.out.first() == Some(&b'{')).then_some(self.out)
    }

    /// Takes the next bytes of the value.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut at = 0;
        while at < bytes.len() {
            let Some(used) = self.step(&bytes[at..]) else {
                return Fed::Broken;
            };
            at += used;
            if self.state == State::Complete {
                return Fed::Complete(at);
            }
        }
        Fed::All
    }

    /// Takes at least one byte, or ends a token; `None` where it is not JSON.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        match &mut self.token {
            Token::None => self.structure(bytes[0]).map(|()| 1),
            Token::Key(text) => {
                let (used, ended) = text.feed(bytes, &mut self.key)?;
                if ended == Ended::Yes {
                    self.token = Token::None;
                    self.state = State::Colon;
                }
                Some(used)
            }
            Token::Text(text) => {
                let before = self.out.len();
                let (used, ended) = text.feed(bytes, &mut self.out)?;
                let class = text.class();
                let grown = self.out.len() - before;
                self.charge(class, grown);
                if ended == Ended::Yes {
                    if class.is_some() {
                        self.out.push(b'"');
                    }
                    self.token = Token::None;
                    self.state = self.behind_value();
                }
                Some(used)
            }
            Token::Scalar { .. } => self.scalar(bytes),
        }
    }

    /// Takes one byte between tokens.
    fn structure(&mut self, byte: u8) -> Option<()> {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Some(());
        }
        match (self.state, byte) {
            (State::FirstKey, b'}') | (State::FirstItem, b']') | (State::Next, b'}' | b']') => {
                self.close(byte)
            }
            (State::FirstKey | State::Key, b'"') => {
                self.key.clear();
                self.token = Token::Key(Text::new(Some(Class::Name), MAX_KEY_BYTES));
                Some(())
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Some(())
            }
            (State::Value | State::FirstItem, _) => self.value(byte),
            (State::Next, b',') => {
                let is_object = self.stack.last()?.is_object;
                self.state = if is_object { State::Key } else { State::Value };
                Some(())
            }
            _ => None,
        }
    }

    /// A value begins.
    fn value(&mut self, byte: u8) -> Option<()> {
        let keep = self.keep(byte);
        if let Some(parent) = self.stack.last_mut() {
            parent.has_members |= parent.place.is_none() || keep != Keep::Nothing;
        }
        match byte {
            b'{' | b'[' => self.open(byte, keep),
            b'"' => {
                let class = keep.class();
                let room = match class {
                    Some(Class::Text) => self.text_left,
                    Some(Class::Name) => self.other_left.min(MAX_NAME_BYTES),
                    None => 0,
                };
                if class.is_some() {
                    self.out.push(b'"');
                }
                self.token = Token::Text(Text::new(class, room));
                Some(())
            }
            _ => {
                self.token = Token::Scalar {
                    scalar: Scalar::begin(byte)?,
                    bytes: vec![byte],
                    keep,
                };
                Some(())
            }
        }
    }

    /// Decides about the value that begins, and writes what stands before it.
    fn keep(&mut self, byte: u8) -> Keep {
        let Some(parent) = self.stack.last() else {
            return Keep::Inside(Place::Record);
        };
        let Some(place) = parent.place else {
            return Keep::Nothing;
        };
        let (is_object, has_members) = (parent.is_object, parent.has_members);
        let key = crate::classify::unescaped(&self.key);
        let key = if is_object { &*key } else { "" };
        let keep = keep::decide(place, key, byte, self.stack.len());
        let class = place.class();
        let needed = key.len() + 8;
        let room = match class {
            Class::Text => self.text_left,
            Class::Name => self.other_left,
        };
        if keep == Keep::Nothing || room < needed {
            return Keep::Nothing;
        }
        let before = self.out.len();
        if has_members {
            self.out.push(b',');
        }
        if is_object {
            self.out.push(b'"');
            self.out.extend_from_slice(key.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
        let grown = self.out.len() - before;
        self.charge(Some(class), grown);
        keep
    }

    fn open(&mut self, byte: u8, keep: Keep) -> Option<()> {
        if self.stack.len() >= MAX_DEPTH {
            return None;
        }
        let is_object = byte == b'{';
        let place = match keep {
            Keep::Inside(place) => Some(place),
            Keep::Nothing | Keep::Presence | Keep::Scalar(_) => None,
        };
        let is_shown = place.is_some() || keep == Keep::Presence;
        if is_shown {
            self.out.push(byte);
        }
        self.stack.push(Frame {
            is_object,
            is_shown,
            place,
            has_members: false,
        });
        self.state = if is_object {
            State::FirstKey
        } else {
            State::FirstItem
        };
        Some(())
    }

    fn close(&mut self, byte: u8) -> Option<()> {
        let frame = self.stack.pop()?;
        if frame.is_object != (byte == b'}') {
            return None;
        }
        if frame.is_shown {
            // Of an array that is only shown, it matters whether it is empty.
            if frame.place.is_none() && !frame.is_object && frame.has_members {
                self.out.push(b'0');
            }
            self.out.push(byte);
        }
        self.state = self.behind_value();
        Some(())
    }

    fn behind_value(&self) -> State {
        if self.stack.is_empty() {
            State::Complete
        } else {
            State::Next
        }
    }

    /// Goes on with a number or literal.
    fn scalar(&mut self, input: &[u8]) -> Option<usize> {
        let Token::Scalar {
            scalar,
            bytes,
            keep,
        } = &mut self.token
        else {
            return None;
        };
        let is_part = |byte: &&u8| Scalar::may_go_on_with(**byte);
        let length = input.iter().take_while(is_part).count();
        let part = &input[..length];
        *scalar = part
            .iter()
            .try_fold(*scalar, |so_far, byte| so_far.then(*byte))?;
        let room = MAX_SCALAR_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(&part[..length.min(room)]);
        if length == input.len() {
            return Some(length);
        }
        if !scalar.is_whole() {
            return None;
        }
        if let Some(class) = keep.class() {
            let is_kept = bytes.len() < MAX_SCALAR_BYTES;
            let written: &[u8] = if is_kept { bytes } else { b"0" };
            self.out.extend_from_slice(written);
            let grown = written.len();
            self.charge(Some(class), grown);
        }
        self.token = Token::None;
        self.state = State::Next;
        Some(length)
    }

    fn charge(&mut self, class: Option<Class>, bytes: usize) {
        match class {
            Some(Class::Text) => self.text_left = self.text_left.saturating_sub(bytes),
            Some(Class::Name) => self.other_left = self.other_left.saturating_sub(bytes),
            None => {}
        }
    }
}

impl std::fmt::Debug for Reducer {
    /// What it holds is what somebody wrote.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reducer").finish_non_exhaustive()
    }
}
