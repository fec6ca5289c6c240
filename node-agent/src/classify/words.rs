//! What a human wrote, for as long as it takes to compare it with something.

use std::fmt;

use ring::hmac;
use tidings_protocol::digest::{ShortDigest, short};

/// How much of a text its short digest covers, in bytes. Enough to tell prompts apart, and
/// what the reader of very long lines is sure to keep.
const DIGEST_TEXT_BYTES: usize = 64 * 1024;

/// A normalised text: trimmed, every run of white space one space, case kept. It has no
/// `Debug` that shows it, and it goes nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Words(String);

impl Words {
    /// The words of several blocks, joined by one space.
    pub(crate) fn of<T: AsRef<str>>(blocks: &[T]) -> Self {
        let mut words = String::new();
        for word in blocks.iter().flat_map(|b| b.as_ref().split_whitespace()) {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        Self(words)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The normalised text itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A digest for matching the records of one prompt with each other.
    pub(crate) fn short_digest(&self) -> ShortDigest {
        let bytes = self.0.as_bytes();
        short(&bytes[..bytes.len().min(DIGEST_TEXT_BYTES)])
    }

    /// The digest a gateway keeps of a text it delivered.
    pub(crate) fn echo_digest(&self, key: &[u8]) -> [u8; 16] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let tag = hmac::sign(&key, self.0.as_bytes());
        let mut digest = [0; 16];
        digest.copy_from_slice(&tag.as_ref()[..16]);
        digest
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({} bytes)", self.0.len())
    }
}

/// HMAC-SHA-256 under a link's key over the normalised text of a message (its blocks joined
/// by one space), first 16 bytes: what a gateway keeps of a text it delivers, and what a
/// node compares a human-looking turn with.
#[must_use]
pub fn echo_digest<T: AsRef<str>>(key: &[u8], blocks: &[T]) -> [u8; 16] {
    Words::of(blocks).echo_digest(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_empty_blocks_do_not_matter_and_case_does() {
        let digest = |blocks: &[&str]| echo_digest(b"key", blocks);
        assert_eq!(digest(&["  a\n\tB ", "", " c"]), digest(&["a B c"]));
        assert_ne!(digest(&["a b"]), digest(&["A b"]));
        assert_ne!(echo_digest(b"other", &["a b"]), digest(&["a b"]));
        let hex = tidings_protocol::digest::hex(&digest(&["hello world"]));
        // echo -n 'hello world' | openssl dgst -sha256 -hmac key
        assert_eq!(hex, "0ba06f1f9a6300461e43454535dc3c42");
    }

    #[test]
    fn a_text_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", Words::of(&["secret"])), "Words(6 bytes)");
    }
}
