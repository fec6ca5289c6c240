//! Frames: a 4-byte big-endian length, then one MessagePack value, at most 256 KiB.
//!
//! Maps carry field names, unknown fields are ignored, byte strings are bytes. The same
//! framing serves the QUIC streams and the local sockets.

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::named::says_names;
use crate::nesting::is_shallow;

/// The largest frame, in bytes, without its length.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;
/// The bytes of a frame's length.
pub const HEADER_BYTES: usize = 4;

/// Why a frame cannot be sent or read. The frame's content is never repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Larger than the limit: the connection ends.
    #[error("a frame of {bytes} bytes is over the limit of {limit}")]
    Oversized {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Not the MessagePack that was expected: the connection ends.
    #[error("a frame of {bytes} bytes cannot be decoded as a {expected}")]
    Undecodable {
        /// Its size.
        bytes: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// A well-formed message that this build does not know: answered `unsupported`.
    #[error("this build does not know the message {name}")]
    Unsupported {
        /// The message's name, cut to 64 characters.
        name: String,
    },
    /// Ours cannot be encoded.
    #[error("a {expected} cannot be encoded")]
    Unencodable {
        /// What it is.
        expected: &'static str,
    },
}

/// A set of messages that frames carry: an enum whose variants are its messages.
/// `frame_message!` implements it where the enum is, so that what reads and writes its
/// messages is compiled there and nowhere else: it is a large part of all code.
pub trait FrameMessage: Sized {
    /// What the set is called in errors.
    const EXPECTED: &'static str;
    /// The names of all its messages.
    const NAMES: &'static [&'static str];

    /// Adds it to a frame as MessagePack.
    fn write(&self, frame: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error>;

    /// Takes it from the front of what is unread.
    fn read(unread: &mut &[u8]) -> Result<Self, rmp_serde::decode::Error>;
}

/// Makes an enum a set of messages: what it is called, and the names of all of them.
macro_rules! frame_message {
    ($set:ty, $expected:literal, [$($name:literal),* $(,)?]) => {
        impl $crate::wire::frame::FrameMessage for $set {
            const EXPECTED: &'static str = $expected;
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn write(&self, frame: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
                let mut serializer = rmp_serde::Serializer::new(frame).with_struct_map();
                serde::Serialize::serialize(self, &mut serializer)
            }

            fn read(unread: &mut &[u8]) -> Result<Self, rmp_serde::decode::Error> {
                serde::Deserialize::deserialize(&mut rmp_serde::Deserializer::new(unread))
            }
        }
    };
}
pub(crate) use frame_message;

/// The whole frame of `message`, length included.
pub fn encode<M: FrameMessage>(message: &M) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; HEADER_BYTES];
    message
        .write(&mut frame)
        .map_err(|_| FrameError::Unencodable {
            expected: M::EXPECTED,
        })?;
    let bytes = frame.len() - HEADER_BYTES;
    let header = u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= MAX_FRAME_BYTES)
        .ok_or(FrameError::Oversized {
            bytes,
            limit: MAX_FRAME_BYTES,
        })?;
    frame[..HEADER_BYTES].copy_from_slice(&header.to_be_bytes());
    Ok(frame)
}

/// The length that a frame's header announces, if it is within `limit`.
pub fn body_length(header: [u8; HEADER_BYTES], limit: usize) -> Result<usize, FrameError> {
    let bytes = u32::from_be_bytes(header) as usize;
    if bytes > limit {
        return Err(FrameError::Oversized { bytes, limit });
    }
    Ok(bytes)
}

/// The message in a frame's body.
pub fn decode<M: FrameMessage>(body: &[u8]) -> Result<M, FrameError> {
    if !is_shallow(body) {
        return Err(undecodable::<M>(body));
    }
    let mut unread = body;
    match M::read(&mut unread) {
        Ok(message) if unread.is_empty() && says_names(body) => Ok(message),
        Ok(_) => Err(undecodable::<M>(body)),
        Err(_) => Err(match message_name(body) {
            Some(name) if !M::NAMES.contains(&name.as_str()) => FrameError::Unsupported { name },
            _ => undecodable::<M>(body),
        }),
    }
}

fn undecodable<M: FrameMessage>(body: &[u8]) -> FrameError {
    FrameError::Undecodable {
        bytes: body.len(),
        expected: M::EXPECTED,
    }
}

/// The one key of a body that is a map of one entry with a text key.
fn message_name(body: &[u8]) -> Option<String> {
    let OnlyKey(name) = rmp_serde::from_slice(body).ok()?;
    Some(name.chars().filter(|c| !c.is_control()).take(64).collect())
}

/// The key of a map of exactly one entry, whatever its value.
struct OnlyKey(String);

impl<'de> Deserialize<'de> for OnlyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneEntry;

        impl<'de> Visitor<'de> for OneEntry {
            type Value = OnlyKey;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of one entry")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OnlyKey, A::Error> {
                let missing = || serde::de::Error::custom("an empty map");
                let (name, IgnoredAny) = map.next_entry()?.ok_or_else(missing)?;
                match map.next_entry::<IgnoredAny, IgnoredAny>()? {
                    None => Ok(OnlyKey(name)),
                    Some(_) => Err(serde::de::Error::custom("more than one entry")),
                }
            }
        }

        deserializer.deserialize_map(OneEntry)
    }
}
