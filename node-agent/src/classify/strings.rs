//! Where a JSON string ends.
//!
//! A transcript is mostly long strings, many of them full of escaped quotes; stopping at
//! each of those costs more than reading what is between. So names are searched eight bytes
//! at a time, what is longer from quote to quote, and where quotes stand close, by whole
//! blocks, of which only those are looked into that hold a quote without exactly one
//! backslash before it.

use memchr::memchr;

/// Names, ids and times end within this many bytes.
const NAME_BYTES: usize = 48;
const BLOCK_BYTES: usize = 64;
/// Quotes closer than this cost less by blocks than one by one.
const NEAR_BYTES: usize = 384;
/// After so much by blocks it is seen whether quotes still stand close.
const STRETCH_BYTES: usize = 4096;

/// Splits what follows an opening quote: the inside of the string, and what is behind its
/// closing quote.
#[inline]
pub(super) fn split_end(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = end(text)?;
    let (inner, behind) = text.split_at(end);
    Some((inner, &behind[1..]))
}

#[inline]
fn end(text: &[u8]) -> Option<usize> {
    let name = &text[..text.len().min(NAME_BYTES)];
    let mut at = 0;
    while let Some(quote) = next_quote(name, at) {
        if !is_escaped(text, quote) {
            return Some(quote);
        }
        at = quote + 1;
    }
    end_of_long(text, name.len())
}

fn end_of_long(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let quote = at + memchr(b'"', text.get(at..)?)?;
        if !is_escaped(text, quote) {
            return Some(quote);
        }
        let gap = quote - at;
        at = quote + 1;
        if gap < NEAR_BYTES {
            at = skip_blocks(text, at);
        }
    }
}

/// Passes over blocks in which the string cannot end, up to [`STRETCH_BYTES`].
fn skip_blocks(text: &[u8], mut at: usize) -> usize {
    let until = at + STRETCH_BYTES;
    // Two bytes more, to see what stands before a block's first quote.
    while at < until
        && let Some(block) = text.get(at - 2..).and_then(<[u8]>::first_chunk)
        && !may_end(block)
    {
        at += BLOCK_BYTES;
    }
    at
}

/// True for a block with a quote that is not behind exactly one backslash. The loop has no
/// branch, so that the compiler makes vector code of it.
#[inline]
fn may_end(block: &[u8; BLOCK_BYTES + 2]) -> bool {
    let mut found = 0;
    for at in 0..BLOCK_BYTES {
        let is_quote = u8::from(block[at + 2] == b'"');
        let is_bare = u8::from(block[at + 1] != b'\\');
        let is_behind_two = u8::from(block[at] == b'\\');
        found |= is_quote & (is_bare | is_behind_two);
    }
    found != 0
}

/// The next quote of a short text.
#[inline]
fn next_quote(text: &[u8], mut at: usize) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTES: u64 = 0x2222_2222_2222_2222;
    let mut rest = text.get(at..)?;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let other = u64::from_le_bytes(*word) ^ QUOTES;
        // The lowest high bit is exact, whatever the borrow does to those above it.
        let found = other.wrapping_sub(LOW) & !other & HIGH;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
        rest = behind;
    }
    let found = rest.iter().position(|byte| *byte == b'"')?;
    Some(at + found)
}

/// True when the quote at `quote` belongs to the string.
#[inline]
fn is_escaped(text: &[u8], quote: usize) -> bool {
    if quote == 0 || text[quote - 1] != b'\\' {
        return false;
    }
    let before = text[..quote].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Byte by byte.
    fn plain_end(bytes: &[u8]) -> Option<usize> {
        let mut is_escape = false;
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' if !is_escape => return Some(at),
                b'\\' => is_escape = !is_escape,
                _ => is_escape = false,
            }
        }
        None
    }

    proptest! {
        #[test]
        fn a_string_ends_at_its_first_bare_quote(
            runs in prop::collection::vec(
                (prop_oneof![Just("\\\""), Just("\\\\"), Just("\""), Just("\\"), Just("x")], prop_oneof![0..90_usize, 0..3_000_usize]),
                0..12,
            ),
        ) {
            let mut text = String::new();
            for (token, gap) in runs {
                text.push_str(&"y".repeat(gap));
                text.push_str(token);
            }
            let bytes = text.as_bytes();
            prop_assert_eq!(end(bytes), plain_end(bytes));
        }
    }
}
