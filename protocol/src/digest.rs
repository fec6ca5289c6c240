//! Digests as the protocol uses them: SHA-256, whole or cut, in lower-case hex where
//! people see it.

use ring::digest::{SHA256, digest};

/// The first eight bytes of a SHA-256: enough to tell 64 remembered records apart.
pub type ShortDigest = [u8; 8];

/// SHA-256 of `bytes`.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

/// The first eight bytes of the SHA-256 of `bytes`.
#[must_use]
pub fn short(bytes: &[u8]) -> ShortDigest {
    let mut out = [0; 8];
    out.copy_from_slice(&sha256(bytes)[..8]);
    out
}

/// Lower-case hex of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// The bytes that `text` spells in lower-case hex; `None` for anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes
        .chunks_exact(2)
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_and_back_is_the_same_and_upper_case_is_refused() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(unhex("001fff"), Some(vec![0, 0x1f, 0xff]));
        for bad in ["0", "0G", "FF", "+1"] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
