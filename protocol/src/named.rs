//! Whether a message says its fields by name. The decoder would take a list for a map, field
//! after field, and a number or bytes for a field's name: another encoding of the same message,
//! which nobody has agreed to.

use crate::nesting::{MAX_NESTING, next_value};

/// A map or list that is not at its end.
#[derive(Clone, Copy)]
struct Open {
    /// How many values are still to come.
    left: u64,
    is_map: bool,
}

/// True when the body of the message is a map, and every name in every map is a text. `body` is
/// one that decodes, so it is whole and not too deep.
pub(crate) fn says_names(body: &[u8]) -> bool {
    let mut open: Vec<Open> = Vec::with_capacity(MAX_NESTING);
    let mut rest = body;
    while let Some(header) = rest.first().copied() {
        let is_map = matches!(header, 0x80..=0x8f | 0xde | 0xdf);
        let is_text = matches!(header, 0xa0..=0xbf | 0xd9..=0xdb);
        let (depth, is_name) = match open.last_mut() {
            None => (0, false),
            Some(around) => {
                let is_name = around.is_map && around.left.is_multiple_of(2);
                around.left -= 1;
                (open.len(), is_name)
            }
        };
        if (is_name && !is_text) || (depth == 1 && !is_name && !is_map) {
            return false;
        }
        let Some(left) = next_value(&mut rest) else {
            return false;
        };
        if left > 0 {
            open.push(Open { left, is_map });
        }
        while open.last().is_some_and(|around| around.left == 0) {
            open.pop();
        }
        if open.is_empty() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_map_whose_names_are_texts_all_the_way_down() {
        for (body, says) in [
            // {"ping": {}}, {"a": {"b": [1, {"c": nil}]}}
            (&b"\x81\xa4ping\x80"[..], true),
            (b"\x81\xa1a\x81\xa1b\x92\x01\x81\xa1c\xc0", true),
            (
                b"\xde\x00\x01\xd9\x01a\xdf\x00\x00\x00\x01\xa1b\xc4\x01\x00",
                true,
            ),
            // The body is a list, a text, nothing.
            (b"\x81\xa1a\x91\x01", false),
            (b"\x81\xa1a\xa1b", false),
            (b"\x81\xa1a\xc0", false),
            // The message is a list, or its name is a number or bytes.
            (b"\x92\xa1a\x80", false),
            (b"\x81\x00\x80", false),
            (b"\x81\xc4\x01a\x80", false),
            // A field's name is a number, bytes, a map; at the end, and after another.
            (b"\x81\xa1a\x81\x00\xc0", false),
            (b"\x81\xa1a\x81\xc4\x01b\xc0", false),
            (b"\x81\xa1a\x81\x80\xc0", false),
            (b"\x81\xa1a\x82\xa1b\x91\x05\x01\xc0", false),
            (b"\x81\xa1a\x81\xa1b\x92\x01\x81\x02\xc0", false),
            // It breaks off.
            (b"\x81\xa1a", false),
            (b"", false),
        ] {
            assert_eq!(says_names(body), says, "{body:x?}");
        }
    }
}
