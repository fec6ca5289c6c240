//! Small steps away from what is known.

use tidings_tests::Dice;

/// The longest input that is made: more than a frame.
const MAX_BYTES: usize = 300 * 1024;
/// Bytes that mean something to MessagePack, and lengths that lie.
const TOKENS: [&[u8]; 16] = [
    b"\xc0",
    b"\xc1",
    b"\xff",
    b"\x00",
    b"\x80",
    b"\x81",
    b"\x90",
    b"\x91",
    b"\xa0",
    b"\xdf\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
];

/// One input of the corpus with one to eight changes.
pub(crate) fn mutated(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = dice.pick(corpus).clone();
    for _ in 0..=dice.below(8) {
        change(&mut bytes, corpus, dice);
        bytes.truncate(MAX_BYTES);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], dice: &mut Dice) {
    let at = below(dice, bytes.len() + 1);
    let to = at + below(dice, bytes.len() - at + 1);
    let token: &[u8] = TOKENS[below(dice, TOKENS.len())];
    match dice.below(9) {
        0 => flip_a_bit(bytes, at, dice),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..to)),
        3 => drop(bytes.splice(at..at, token.iter().copied())),
        4 => overwrite(bytes, at, token),
        5 => bytes.insert(at, byte(dice)),
        6 => {
            let again = bytes[at..to].to_vec();
            for _ in 0..=dice.below(3) {
                drop(bytes.splice(at..at, again.iter().copied()));
            }
        }
        7 => {
            // The beginning of this one, and the end of another.
            let other = dice.pick(corpus);
            let from = below(dice, other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => overwrite(bytes, at, &[byte(dice)]),
    }
}

fn flip_a_bit(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    for (byte, new) in bytes.iter_mut().skip(at).zip(with) {
        *byte = *new;
    }
}

fn byte(dice: &mut Dice) -> u8 {
    u8::try_from(dice.below(256)).expect("a byte")
}

fn below(dice: &mut Dice, limit: usize) -> usize {
    let limit = u64::try_from(limit).expect("a small number");
    usize::try_from(dice.below(limit)).expect("a small number")
}
