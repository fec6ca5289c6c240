//! The marker: how far an upstream file has been classified *and recorded*, with what the
//! classifier must remember to go on from there.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::EpochMs;
use crate::digest::ShortDigest;
use crate::nesting::is_shallow;

/// The largest encoded marker, in bytes.
pub const MAX_MARKER_BYTES: usize = 16 * 1024;
/// How many bytes before the offset the digest covers, at most.
pub const DIGEST_SPAN_BYTES: u64 = 1024;
/// How many record ids are remembered: of any type, and again of human records.
pub const MAX_REMEMBERED_IDS: usize = 64;
/// How many queue items can be open at once; beyond that the oldest is forgotten.
pub const MAX_QUEUE_ITEMS: usize = 256;
/// How many counted queue keys are remembered.
pub const MAX_COUNTED_KEYS: usize = 64;
/// How many records can wait for a decision at once.
pub const MAX_WAITING_RECORDS: usize = 32;
/// The longest program version kept, in bytes.
pub const MAX_VERSION_BYTES: usize = 32;

/// How far a file has been classified and recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// Everything before this byte has been classified and recorded.
    pub offset: u64,
    /// First 16 bytes of the SHA-256 of the up to [`DIGEST_SPAN_BYTES`] before `offset`.
    #[serde(with = "serde_bytes")]
    pub before: [u8; 16],
    /// The newest ids of records of any type, oldest first.
    pub records: Digests,
    /// The newest ids of human records, oldest first.
    pub human_records: Digests,
    /// The latest time that any recorded record carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_record_at: Option<EpochMs>,
    /// The node's clock at adoption.
    pub floor: EpochMs,
    /// Where the file was, for finding it again; never proof that it is the same.
    pub file: FileHint,
    /// What the classifier carries from one record to the next.
    pub carried: Carried,
    /// After a rewrite: what a record must pass before it counts as new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<Bar>,
}

/// Device and inode of a file as last seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHint {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

/// What a rewritten file must pass before its records count as new: a remembered id, or a
/// time later than any recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bar {
    /// Ids remembered before the rewrite.
    pub records: Digests,
    /// Newest record time before the rewrite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_record_at: Option<EpochMs>,
}

/// What a classifier carries from one record to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// Queued prompts whose fate is open, oldest first.
    pub queue: QueueItems,
    /// Keys of queued prompts that have been counted, oldest first.
    pub counted: Digests,
    /// Records that wait for what follows them, oldest first.
    pub waiting: Vec<WaitingRecord>,
    /// What the file has said about itself.
    pub facts: ThreadFacts,
}

/// A queued prompt whose fate is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueItem {
    /// Digest of its normalised text.
    pub text: ShortDigest,
    /// When it was queued.
    pub queued_at: EpochMs,
    /// Whether a human's words; the rest is held only so that its end finds it.
    pub human: bool,
    /// False for what was open already at adoption: it never counts.
    pub counts: bool,
}

/// A record that looks human and waits for what follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRecord {
    /// Digest of its normalised text.
    #[serde(with = "serde_bytes")]
    pub text: ShortDigest,
    /// Its time stamp, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<EpochMs>,
    /// Where it begins in the file.
    pub byte_start: u64,
    /// Where it ends.
    pub byte_end: u64,
    /// How many records have followed.
    pub followed_by: u8,
    /// False for what was waiting already at adoption: it never counts.
    pub counts: bool,
    /// The delivery that it matches, so that a late verdict is still an echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_of: Option<u64>,
    /// It says itself what its content is made of, so that a file's own events for user
    /// messages do not speak against it.
    #[serde(default)]
    pub has_kinds: bool,
}

/// Whose thread a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    /// A person's, or nothing says otherwise.
    #[default]
    Person,
    /// Another program's: nothing in it is human.
    Programmatic,
    /// A sub-agent's, reviewer's or other internal one: nothing in it is human.
    Subagent,
}

/// What a file has said about itself so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with its own name on the wire"
)]
pub struct ThreadFacts {
    /// The header (first `session_meta`, session line) has been read.
    pub headed: bool,
    /// Whose thread it is.
    pub kind: ThreadKind,
    /// The program's version in the last record that named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the thread says it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<EpochMs>,
    /// The thread began as a copy of another.
    pub forked: bool,
    /// The copy of the other thread's history is still going on.
    pub replaying: bool,
    /// The file has shown the program's own event for a user's message.
    pub user_events: bool,
    /// Digest of the last human text, for programs that write one again on a retry.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serde_bytes")]
    pub last_text: Option<ShortDigest>,
    /// An assistant's reply has followed that text.
    pub replied: bool,
}

/// Why a marker cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerError {
    /// Larger than [`MAX_MARKER_BYTES`] when encoded.
    #[error("a marker has at most {MAX_MARKER_BYTES} bytes, this one {0}")]
    TooLarge(usize),
    /// A list is longer than its limit.
    #[error("a marker holds at most {limit} {what}")]
    TooMany {
        /// Which list.
        what: &'static str,
        /// Its limit.
        limit: usize,
    },
    /// Not a marker at all. What it is instead is not repeated: it may be anything.
    #[error("{bytes} bytes cannot be decoded as a marker")]
    Undecodable {
        /// How many they are.
        bytes: usize,
    },
    /// Ours cannot be encoded.
    #[error("a marker cannot be encoded")]
    Unencodable,
}

impl Marker {
    /// A marker at the beginning of a file that has never been read.
    #[must_use]
    pub fn at_start(floor: EpochMs) -> Self {
        Self {
            offset: 0,
            before: digest_before(&[]),
            records: Digests::default(),
            human_records: Digests::default(),
            newest_record_at: None,
            floor,
            file: FileHint::default(),
            carried: Carried::default(),
            bar: None,
        }
    }

    /// The marker as it stands in the database.
    pub fn encode(&self) -> Result<Vec<u8>, MarkerError> {
        self.check()?;
        let bytes = rmp_serde::to_vec_named(self).map_err(|_| MarkerError::Unencodable)?;
        if bytes.len() > MAX_MARKER_BYTES {
            return Err(MarkerError::TooLarge(bytes.len()));
        }
        Ok(bytes)
    }

    /// Reads what [`Marker::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, MarkerError> {
        if bytes.len() > MAX_MARKER_BYTES {
            return Err(MarkerError::TooLarge(bytes.len()));
        }
        let undecodable = || MarkerError::Undecodable { bytes: bytes.len() };
        if !is_shallow(bytes) {
            return Err(undecodable());
        }
        let marker: Self = rmp_serde::from_slice(bytes).map_err(|_| undecodable())?;
        marker.check()?;
        Ok(marker)
    }

    /// Checks every list against its limit.
    pub fn check(&self) -> Result<(), MarkerError> {
        let carried = &self.carried;
        let bar = self.bar.as_ref().map_or(0, |bar| bar.records.len());
        let lists = [
            ("record ids", self.records.len(), MAX_REMEMBERED_IDS),
            (
                "human record ids",
                self.human_records.len(),
                MAX_REMEMBERED_IDS,
            ),
            ("ids of a bar", bar, MAX_REMEMBERED_IDS),
            ("queue items", carried.queue.0.len(), MAX_QUEUE_ITEMS),
            (
                "counted queue keys",
                carried.counted.len(),
                MAX_COUNTED_KEYS,
            ),
            (
                "waiting records",
                carried.waiting.len(),
                MAX_WAITING_RECORDS,
            ),
            (
                "bytes of a version",
                carried.facts.version.as_ref().map_or(0, String::len),
                MAX_VERSION_BYTES,
            ),
        ];
        match lists.into_iter().find(|(_, length, limit)| length > limit) {
            Some((what, _, limit)) => Err(MarkerError::TooMany { what, limit }),
            None => Ok(()),
        }
    }
}

/// The digest of the bytes before an offset, as a marker keeps it.
#[must_use]
pub fn digest_before(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&crate::digest::sha256(bytes)[..16]);
    out
}

/// A bounded memory of short digests, oldest first; one byte string on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests(Vec<ShortDigest>);

impl Digests {
    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when `digest` is remembered.
    pub fn contains(&self, digest: ShortDigest) -> bool {
        self.0.contains(&digest)
    }

    /// Remembers `digest` as the newest and forgets the oldest beyond `limit`. One that is
    /// remembered already becomes the newest.
    pub fn remember(&mut self, digest: ShortDigest, limit: usize) {
        self.0.retain(|known| *known != digest);
        self.0.push(digest);
        let excess = self.0.len().saturating_sub(limit);
        self.0.drain(..excess);
    }

    /// The digests, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ShortDigest> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<ShortDigest> for Digests {
    fn from_iter<I: IntoIterator<Item = ShortDigest>>(digests: I) -> Self {
        Self(digests.into_iter().collect())
    }
}

impl Serialize for Digests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0.concat())
    }
}

impl<'de> Deserialize<'de> for Digests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = serde_bytes::ByteBuf::deserialize(deserializer)?;
        let (digests, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(serde::de::Error::custom("digests are 8 bytes each"));
        }
        Ok(Self(digests.to_vec()))
    }
}

/// Open queue items, oldest first; one byte string of 17 bytes each on the wire: text
/// digest, time (big endian), flags (1 human, 2 counts).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueItems(pub Vec<QueueItem>);

const QUEUE_ITEM_BYTES: usize = 17;
const FLAG_HUMAN: u8 = 1;
const FLAG_COUNTS: u8 = 2;

impl Serialize for QueueItems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(self.0.len() * QUEUE_ITEM_BYTES);
        for item in &self.0 {
            bytes.extend_from_slice(&item.text);
            bytes.extend_from_slice(&item.queued_at.to_be_bytes());
            let human = if item.human { FLAG_HUMAN } else { 0 };
            let counts = if item.counts { FLAG_COUNTS } else { 0 };
            bytes.push(human | counts);
        }
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for QueueItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = serde_bytes::ByteBuf::deserialize(deserializer)?;
        let (items, rest) = bytes.as_chunks::<QUEUE_ITEM_BYTES>();
        if !rest.is_empty() {
            return Err(serde::de::Error::custom("queue items are 17 bytes each"));
        }
        let item = |bytes: &[u8; QUEUE_ITEM_BYTES]| {
            let mut text = [0; 8];
            text.copy_from_slice(&bytes[..8]);
            let mut queued_at = [0; 8];
            queued_at.copy_from_slice(&bytes[8..16]);
            QueueItem {
                text,
                queued_at: EpochMs::from_be_bytes(queued_at),
                human: bytes[16] & FLAG_HUMAN != 0,
                counts: bytes[16] & FLAG_COUNTS != 0,
            }
        };
        Ok(Self(items.iter().map(item).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A marker with every list at its limit and every optional field present.
    fn full() -> Marker {
        let digests = |n: usize| -> Digests {
            (0..n)
                .map(|i| crate::digest::short(&i.to_be_bytes()))
                .collect()
        };
        let waiting = WaitingRecord {
            text: [255; 8],
            at: Some(EpochMs::MAX),
            byte_start: u64::MAX,
            byte_end: u64::MAX,
            followed_by: 255,
            counts: true,
            echo_of: Some(u64::MAX),
            has_kinds: true,
        };
        let item = QueueItem {
            text: [1; 8],
            queued_at: EpochMs::MIN,
            human: true,
            counts: false,
        };
        Marker {
            offset: u64::MAX,
            before: [255; 16],
            records: digests(MAX_REMEMBERED_IDS),
            human_records: digests(MAX_REMEMBERED_IDS),
            newest_record_at: Some(EpochMs::MAX),
            floor: EpochMs::MAX,
            file: FileHint {
                device: u64::MAX,
                inode: u64::MAX,
            },
            carried: Carried {
                queue: QueueItems(vec![item; MAX_QUEUE_ITEMS]),
                counted: digests(MAX_COUNTED_KEYS),
                waiting: vec![waiting; MAX_WAITING_RECORDS],
                facts: ThreadFacts {
                    headed: true,
                    kind: ThreadKind::Programmatic,
                    version: Some("v".repeat(MAX_VERSION_BYTES)),
                    created_at: Some(EpochMs::MAX),
                    forked: true,
                    replaying: true,
                    user_events: true,
                    last_text: Some([2; 8]),
                    replied: true,
                },
            },
            bar: Some(Bar {
                records: digests(MAX_REMEMBERED_IDS),
                newest_record_at: Some(EpochMs::MAX),
            }),
        }
    }

    #[test]
    fn a_marker_with_every_list_full_fits_its_limit_and_reads_back() {
        let marker = full();
        let bytes = marker.encode().expect("fits");
        assert!(bytes.len() <= MAX_MARKER_BYTES, "{}", bytes.len());
        assert_eq!(Marker::decode(&bytes), Ok(marker));
    }

    #[test]
    fn a_list_beyond_its_limit_is_refused_on_both_sides() {
        let mut marker = full();
        marker.carried.queue.0.push(marker.carried.queue.0[0]);
        let error = MarkerError::TooMany {
            what: "queue items",
            limit: MAX_QUEUE_ITEMS,
        };
        assert_eq!(marker.encode(), Err(error.clone()));
        let bytes = rmp_serde::to_vec_named(&marker).expect("encode");
        assert_eq!(Marker::decode(&bytes), Err(error));
    }

    #[test]
    fn the_oldest_digest_is_forgotten_first_and_a_repeat_becomes_the_newest() {
        let mut digests = Digests::default();
        for n in [1u8, 2, 3, 1, 4] {
            digests.remember([n; 8], 3);
        }
        let order: Vec<_> = digests.iter().map(|digest| digest[0]).collect();
        assert_eq!(order, [3, 1, 4]);
    }
}
