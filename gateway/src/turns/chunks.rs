//! Where a conversation may be parted: never between a call of a tool and its results. Pure.
//!
//! A conversation is a row of pieces. Pieces that must not be parted are a block: a call, its
//! results, and whatever stands between. A call whose results have not come, at the end, holds
//! its block open; one that was aborted or failed does not.

use std::collections::HashMap;
use std::ops::Range;

/// One message, as far as parting is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its tokens.
    pub tokens: u64,
    /// The calls in it that wait for results.
    pub calls: Vec<&'a str>,
    /// The calls that it gives results of.
    pub answers: Vec<&'a str>,
    /// True where a person speaks: a turn begins.
    pub begins_turn: bool,
}

/// How much of the newest conversation is kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// So many tokens at most.
    pub tokens: u64,
    /// Results at the end that the model has not seen, and that are larger than this, are kept
    /// whatever they take: a summary of them could not be asked for in one piece.
    pub unseen_above: u64,
}

/// Pieces that must not be parted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    pieces: Range<usize>,
    tokens: u64,
    begins_turn: bool,
    end: End,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a message.
    Said,
    /// With the results of all its calls.
    Answered,
    /// Results have not come yet.
    Open,
}

/// Where the kept tail begins: everything before is summarised. It keeps what its budget
/// allows, whole blocks only; a block whose results have not come is always kept. Where all
/// would be kept although more than one turn stands, only the last turn is.
#[must_use]
pub fn cut(pieces: &[Piece<'_>], keep: Keep) -> usize {
    let blocks = blocks(pieces);
    let mut first = blocks.len();
    let mut tokens: u64 = 0;
    for (at, block) in blocks.iter().enumerate().rev() {
        let is_last = at + 1 == blocks.len();
        let is_held = is_last
            && match block.end {
                End::Said => false,
                End::Answered => block.tokens > keep.unseen_above,
                End::Open => true,
            };
        tokens = tokens.saturating_add(block.tokens);
        if tokens > keep.tokens && !is_held {
            break;
        }
        first = at;
    }
    if first == 0 {
        let turns = blocks.iter().rposition(|block| block.begins_turn);
        first = turns.unwrap_or(0);
    }
    blocks
        .get(first)
        .map_or(pieces.len(), |block| block.pieces.start)
}

/// The chunks in which the first `upto` pieces are summarised, in order: each within `target`
/// tokens, except a block that is larger by itself.
#[must_use]
pub fn chunks(pieces: &[Piece<'_>], upto: usize, target: u64) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut tokens: u64 = 0;
    for block in blocks(&pieces[..upto]) {
        tokens = tokens.saturating_add(block.tokens);
        match chunks.last_mut() {
            Some(chunk) if tokens <= target => chunk.end = block.pieces.end,
            _ => {
                tokens = block.tokens;
                chunks.push(block.pieces);
            }
        }
    }
    chunks
}

/// The turn that a cut parts: where it begins. `None` where the cut stands between turns.
#[must_use]
pub fn split_turn(pieces: &[Piece<'_>], cut: usize) -> Option<usize> {
    let next = pieces.get(cut)?;
    if next.begins_turn {
        return None;
    }
    pieces[..cut].iter().rposition(|piece| piece.begins_turn)
}

/// The first place at or behind `from` where the conversation may be parted and `may_begin`
/// says yes to the piece behind it; the end where there is none.
#[must_use]
pub fn next_place(pieces: &[Piece<'_>], from: usize, may_begin: impl Fn(usize) -> bool) -> usize {
    blocks(pieces)
        .iter()
        .map(|block| block.pieces.start)
        .find(|start| *start >= from && may_begin(*start))
        .unwrap_or(pieces.len())
}

fn blocks(pieces: &[Piece<'_>]) -> Vec<Block> {
    let (ends, open_from) = ends(pieces);
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < pieces.len() {
        let mut last = start;
        let mut at = start;
        while at <= last {
            last = last.max(ends[at]);
            at += 1;
        }
        let range = start..last + 1;
        let end = if open_from.is_some_and(|open| range.contains(&open)) {
            End::Open
        } else if pieces[last].answers.is_empty() {
            End::Said
        } else {
            End::Answered
        };
        blocks.push(Block {
            tokens: pieces[range.clone()]
                .iter()
                .fold(0, |sum, piece| sum.saturating_add(piece.tokens)),
            begins_turn: pieces[start].begins_turn,
            pieces: range,
            end,
        });
        start = last + 1;
    }
    blocks
}

/// For each piece the last one that it must not be parted from; and the call at the end whose
/// results have not all come.
fn ends(pieces: &[Piece<'_>]) -> (Vec<usize>, Option<usize>) {
    let mut ends: Vec<usize> = (0..pieces.len()).collect();
    // An id may come again in a later call, which then is the one that is answered.
    let mut callers: HashMap<&str, (usize, bool)> = HashMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        for id in &piece.answers {
            if let Some((caller, is_answered)) = callers.get_mut(id) {
                ends[*caller] = at;
                *is_answered = true;
            }
        }
        for id in &piece.calls {
            callers.insert(id, (at, false));
        }
    }
    let waiting = callers.values().filter(|(_, is_answered)| !is_answered);
    let last_waiting = waiting.map(|(caller, _)| *caller).max();
    // Once somebody has spoken after a call, its results do not come any more.
    let open = last_waiting.filter(|caller| {
        let behind = &pieces[caller + 1..];
        behind
            .iter()
            .all(|piece| !piece.answers.is_empty() && !piece.begins_turn)
    });
    if let (Some(open), Some(last)) = (open, pieces.len().checked_sub(1)) {
        ends[open] = last;
    }
    (ends, open)
}

#[cfg(test)]
#[path = "chunks/tests.rs"]
mod tests;
