//! Conversations, and where they may be parted.

use proptest::prelude::*;

use super::*;

/// A conversation, one piece a word: `u` a person, `a` the model, `x` anything else, with its
/// tokens; `>1` calls, `<1` answers.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    text.split_whitespace().map(piece).collect()
}

fn piece(word: &str) -> Piece<'_> {
    let end = word.find(['>', '<']).unwrap_or(word.len());
    let (said, ids) = word.split_at(end);
    let mut piece = Piece {
        tokens: said[1..].parse().expect("tokens"),
        begins_turn: said.starts_with('u'),
        ..Piece::default()
    };
    for part in ids
        .split_inclusive(['>', '<'])
        .zip(ids.split(['>', '<']).skip(1))
    {
        if part.0.ends_with('>') {
            piece.calls.push(part.1);
        } else {
            piece.answers.push(part.1);
        }
    }
    piece
}

#[track_caller]
fn check_cut(text: &str, keep: u64, expected: usize) {
    let keep = Keep {
        tokens: keep,
        unseen_above: 1_000,
    };
    assert_eq!(cut(&pieces(text), keep), expected, "{text} {keep:?}");
}

#[test]
fn the_tail_keeps_what_its_budget_allows_and_no_call_without_its_results() {
    check_cut("", 10, 0);
    check_cut("u5 a5 u5 a5", 10, 2);
    check_cut("u5 a5 u5 a5", 9, 3);
    check_cut("u5 a5 u5 a5", 4, 4);
    check_cut("u5 a5 u5 a5", 0, 4);
    // The call and both results are one block of 15: all of it, or none.
    check_cut("u5 a5>1>2 x5<1 x5<2 a5", 19, 4);
    check_cut("u5 a5>1>2 x5<1 x5<2 a5", 20, 1);
    check_cut("u5 a5>1>2 x5<1 x5<2 a5", 24, 1);
    // Somebody spoke while a tool ran.
    check_cut("u1 a5>1 u1 x5<1 a5", 11, 4);
    check_cut("u1 a5>1 u1 x5<1 a5", 16, 1);
}

#[test]
fn something_is_summarised_while_more_than_one_turn_stands() {
    check_cut("u5 a5 u5 a5", 1_000, 2);
    check_cut("x5 u5 a5", 1_000, 1);
    check_cut("u5 a5", 1_000, 0);
    check_cut("u5 a5>1 x5<1", 1_000, 0);
    check_cut("a5 a5", 1_000, 0);
}

#[test]
fn results_that_have_not_come_hold_their_block_in_the_tail() {
    check_cut("u5 a5 u5 a50>1>2 x50<1", 10, 3);
    // Aborted calls, which wait for nothing, are no calls here; and nobody answers a call any
    // more after somebody has spoken.
    check_cut("u5 a5>1 u5 a5", 10, 2);
    check_cut("u5 a5>1 u5 a5", 14, 2);
    check_cut("u5 a5>1 u5 a5", 15, 1);
}

#[test]
fn results_that_the_model_has_not_seen_stay_where_no_chunk_could_take_them() {
    check_cut("u5 a5 u5 a5>1 x900<1", 10, 5);
    check_cut("u5 a5 u5 a5>1 x996<1", 10, 3);
    // Once it has seen them, they are conversation like any other.
    check_cut("u5 a5>1 x2000<1 a5", 10, 3);
}

#[test]
fn an_id_that_comes_again_belongs_to_the_call_before_it() {
    check_cut("u5 a5>1 x5<1 u5 a5>1 x5<1 a5", 20, 3);
    check_cut("u5 a5>1 x5<1 u5 a5>1 x5<1 a5", 15, 4);
    check_cut("u5 a5>1 x5<1 u5 a5>1 x5<1 a5", 14, 6);
}

#[track_caller]
fn check_chunks(text: &str, target: u64, expected: &[Range<usize>]) {
    let pieces = pieces(text);
    assert_eq!(chunks(&pieces, pieces.len(), target), expected, "{text}");
}

#[test]
fn a_split_that_would_part_a_call_from_its_results_moves_before_the_call() {
    check_chunks("u5 a5 u5 a5", 10, &[0..2, 2..4]);
    check_chunks("u5 a5>1 x5<1 a5", 10, &[0..1, 1..3, 3..4]);
    check_chunks("u5 a5>1 x5<1 a5", 15, &[0..3, 3..4]);
    check_chunks("u5 a5>1 x50<1 a5", 10, &[0..1, 1..3, 3..4]);
    check_chunks("u50 a5", 10, &[0..1, 1..2]);
    check_chunks("", 10, &[]);
}

#[test]
fn a_cut_within_a_turn_names_where_the_turn_began() {
    let pieces = pieces("u5 a5 u5 a5>1 x5<1 a5");
    for (at, expected) in [
        (0, None),
        (1, Some(0)),
        (2, None),
        (3, Some(2)),
        (5, Some(2)),
        (6, None),
    ] {
        assert_eq!(split_turn(&pieces, at), expected, "{at}");
    }
}

/// A conversation with calls, some answered at once, some late, some never.
fn conversation() -> impl Strategy<Value = Vec<(u64, Vec<u8>, Vec<u8>, bool)>> {
    let ids = || prop::collection::vec(0_u8..4, 0..3);
    let piece = (0_u64..40, 0_u8..4).prop_flat_map(move |(tokens, role)| {
        (ids(), Just((tokens, role))).prop_map(|(ids, (tokens, role))| match role {
            0 => (tokens, Vec::new(), Vec::new(), true),
            1 => (tokens, ids, Vec::new(), false),
            2 => (tokens, Vec::new(), ids, false),
            _ => (tokens, Vec::new(), Vec::new(), false),
        })
    });
    prop::collection::vec(piece, 0..24)
}

const IDS: [&str; 4] = ["0", "1", "2", "3"];

fn named(rows: &[(u64, Vec<u8>, Vec<u8>, bool)]) -> Vec<Piece<'static>> {
    let name = |ids: &[u8]| ids.iter().map(|id| IDS[usize::from(*id)]).collect();
    rows.iter()
        .map(|(tokens, calls, answers, begins_turn)| Piece {
            tokens: *tokens,
            calls: name(calls),
            answers: name(answers),
            begins_turn: *begins_turn,
        })
        .collect()
}

/// Each result with the call it belongs to.
fn pairs(pieces: &[Piece<'_>]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        for id in &piece.answers {
            let caller = pieces[..at]
                .iter()
                .rposition(|before| before.calls.contains(id));
            pairs.extend(caller.map(|caller| (caller, at)));
        }
    }
    pairs
}

fn tokens(pieces: &[Piece<'_>]) -> u64 {
    pieces.iter().map(|piece| piece.tokens).sum()
}

proptest! {
    #[test]
    fn nothing_is_parted_dropped_or_summarised_twice(
        rows in conversation(),
        keep in 0_u64..200,
        target in 1_u64..120,
    ) {
        let pieces = named(&rows);
        let at = cut(&pieces, Keep { tokens: keep, unseen_above: target });
        for (call, result) in pairs(&pieces) {
            prop_assert!((call < at) == (result < at), "{call} {result} {at}");
        }
        let chunks = chunks(&pieces, at, target);
        // Together they are everything before the cut, each piece once.
        let mut next = 0;
        for chunk in &chunks {
            prop_assert_eq!(chunk.start, next);
            prop_assert!(chunk.end > chunk.start);
            next = chunk.end;
        }
        prop_assert_eq!(next, at);
        for (call, result) in pairs(&pieces) {
            let in_chunk = |piece: usize| chunks.iter().position(|chunk| chunk.contains(&piece));
            prop_assert_eq!(in_chunk(call), in_chunk(result));
        }
        for chunk in chunks {
            let is_one_block = blocks(&pieces[..at]).iter().any(|block| block.pieces == chunk);
            prop_assert!(tokens(&pieces[chunk]) <= target || is_one_block);
        }
    }

    #[test]
    fn the_tail_is_within_its_budget_but_for_what_it_must_hold(
        rows in conversation(),
        keep in 0_u64..200,
    ) {
        let pieces = named(&rows);
        let at = cut(&pieces, Keep { tokens: keep, unseen_above: u64::MAX });
        let tail = &pieces[at..];
        let held = blocks(&pieces).pop().filter(|block| block.end == End::Open);
        let is_all_held = held.is_some_and(|block| block.pieces.start == at);
        prop_assert!(tokens(tail) <= keep || is_all_held, "{at}");
    }

    #[test]
    fn there_is_progress_while_more_than_one_turn_stands(
        rows in conversation(),
        keep in 0_u64..2_000,
    ) {
        let pieces = named(&rows);
        let at = cut(&pieces, Keep { tokens: keep, unseen_above: u64::MAX });
        let blocks = blocks(&pieces);
        let turns = blocks.iter().skip(1).filter(|block| block.begins_turn).count();
        prop_assert!(turns == 0 || at > 0);
    }
}
