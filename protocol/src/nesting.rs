//! How deep a MessagePack value is nested, looked at before it is decoded: the decoder
//! recurses, so a frame of nothing but opening brackets would cost a process its stack.

/// How many maps and lists may stand inside each other. The deepest value that is ours has
/// nine; each level costs the decoder a few kilobytes of stack.
pub(crate) const MAX_NESTING: usize = 32;

/// True when no value of `body` stands inside more than [`MAX_NESTING`] maps and lists. A
/// body that breaks off or is no MessagePack is shallow up to there: what is wrong with it,
/// the decoder says.
pub(crate) fn is_shallow(body: &[u8]) -> bool {
    // How many values each open map or list still expects, outermost first.
    let mut open = [0_u64; MAX_NESTING];
    let mut depth = 0;
    let mut rest = body;
    loop {
        let Some(children) = next_value(&mut rest) else {
            return true;
        };
        if children > 0 {
            if depth == MAX_NESTING {
                return false;
            }
            open[depth] = children;
            depth += 1;
            continue;
        }
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            return true;
        }
    }
}

/// Takes one value off the front, or the header of a map or list; how many values follow
/// inside it.
pub(crate) fn next_value(rest: &mut &[u8]) -> Option<u64> {
    let header = take_number(rest, 1)?;
    let skipped = match header {
        0x80..=0x8f => return Some(2 * (header & 0x0f)),
        0x90..=0x9f => return Some(header & 0x0f),
        0xdc => return take_number(rest, 2),
        0xdd => return take_number(rest, 4),
        0xde => return take_number(rest, 2).map(|entries| 2 * entries),
        0xdf => return take_number(rest, 4).map(|entries| 2 * entries),
        0xa0..=0xbf => header & 0x1f,
        0xc4 | 0xd9 => take_number(rest, 1)?,
        0xc5 | 0xda => take_number(rest, 2)?,
        0xc6 | 0xdb => take_number(rest, 4)?,
        0xc7 => take_number(rest, 1)? + 1,
        0xc8 => take_number(rest, 2)? + 1,
        0xc9 => take_number(rest, 4)? + 1,
        0xcc | 0xd0 => 1,
        0xcd | 0xd1 | 0xd4 => 2,
        0xd5 => 3,
        0xca | 0xce | 0xd2 => 4,
        0xd6 => 5,
        0xcb | 0xcf | 0xd3 => 8,
        0xd7 => 9,
        0xd8 => 17,
        _ => 0,
    };
    *rest = rest.get(usize::try_from(skipped).ok()?..)?;
    Some(0)
}

/// Takes a big-endian number of `bytes` bytes off the front.
fn take_number(rest: &mut &[u8], bytes: usize) -> Option<u64> {
    let (number, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    Some(number.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shallow_up_to_the_limit_whatever_brackets_it_is_made_of() {
        for bracket in [
            &b"\x91"[..],
            b"\x92\xc3",
            b"\x81\xa1k",
            b"\x82\xa1k\xc0\xa1l",
            b"\xdc\x00\x01",
            b"\xdd\x00\x00\x00\x01",
            b"\xde\x00\x01\xd9\x01k",
            b"\xdf\x00\x00\x00\x01\x07",
        ] {
            let nested = |depth: usize| [&bracket.repeat(depth), &b"\xc0"[..]].concat();
            assert!(is_shallow(&nested(MAX_NESTING)), "{bracket:x?}");
            assert!(!is_shallow(&nested(MAX_NESTING + 1)), "{bracket:x?}");
            assert!(!is_shallow(&nested(100_000)), "{bracket:x?}");
        }
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        let pair = b"\x92\x91\xc0\x80".repeat(10_000);
        let list = [&b"\xdc\x27\x10"[..], &pair].concat();
        assert!(is_shallow(&list));
        let deep = [&list[..], &b"\x91".repeat(100)].concat();
        assert!(is_shallow(&deep), "what follows the value is not of it");
    }

    #[test]
    fn brackets_inside_texts_and_bytes_are_none() {
        let inside = [0x91; 255];
        for header in [
            &b"\xd9\xff"[..],
            b"\xda\x00\xff",
            b"\xdb\x00\x00\x00\xff",
            b"\xc4\xff",
            b"\xc5\x00\xff",
            b"\xc6\x00\x00\x00\xff",
            b"\xc7\xff\x01",
            b"\xc8\x00\xff\x01",
            b"\xc9\x00\x00\x00\xff\x01",
        ] {
            let body = [b"\x92", header, &inside, b"\x91\xc0"].concat();
            assert!(is_shallow(&body), "{header:x?}");
            let body = [b"\x92", header, &inside, &b"\x91".repeat(40)].concat();
            assert!(!is_shallow(&body), "{header:x?}");
        }
    }

    #[test]
    fn a_body_that_breaks_off_is_shallow_up_to_there() {
        let whole = b"\x93\xcf\x00\x00\x00\x00\x00\x00\x00\x01\x81\xa3key\xd7\x00--------\xca----";
        for cut in 0..=whole.len() {
            assert!(is_shallow(&whole[..cut]), "{cut}");
        }
        for huge in [&b"\xdf\xff\xff\xff\xff"[..], b"\xdb\xff\xff\xff\xff", b""] {
            assert!(is_shallow(huge));
        }
    }
}
