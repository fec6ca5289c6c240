//! What the log must count of one thread. Pure: places in a file, and nothing else.
//!
//! A turn that stays in the file counts exactly once, wherever it stood when it was read. One
//! that was taken out of the file before anybody was seen to have counted it may have been
//! read in time or not: it counts at most once. One that was counted stays counted.

use std::collections::BTreeMap;

use crate::audit::EvidenceRow;

/// The turns of one thread.
#[derive(Debug, Default)]
pub(super) struct Expected(Vec<Turn>);

#[derive(Debug)]
struct Turn {
    /// Where it stands: a program may write one turn twice, and either stands for it.
    now: Vec<EvidenceRow>,
    /// Where it stood before the file was rewritten.
    before: Vec<EvidenceRow>,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// In the file, and not seen in the log yet.
    Counts,
    /// Taken out of the file before it was seen in the log.
    MayCount,
    /// Seen in the log.
    Counted,
}

impl Expected {
    /// Somebody typed one turn, which stands there.
    pub(super) fn typed(&mut self, places: Vec<EvidenceRow>) {
        self.0.push(Turn {
            now: places,
            before: Vec::new(),
            fate: Fate::Counts,
        });
    }

    /// How many turns there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The file ends here now.
    pub(super) fn cut(&mut self, end: u64) {
        for turn in self.in_the_file() {
            if turn.now.iter().any(|place| place.end > end) {
                turn.fate = Fate::MayCount;
            }
        }
    }

    /// So many bytes stand in front of all now.
    pub(super) fn shifted(&mut self, by: u64) {
        for turn in self.in_the_file() {
            turn.before.extend(turn.now.clone());
            for place in &mut turn.now {
                place.start += by;
                place.end += by;
            }
        }
    }

    /// Takes in what the log counts by now. What is wrong with it, one line each.
    pub(super) fn counted(&mut self, counted: &[EvidenceRow]) -> Vec<String> {
        let mut left: BTreeMap<EvidenceRow, usize> = BTreeMap::new();
        for place in counted {
            *left.entry(place.clone()).or_default() += 1;
        }
        let mut wrong = Vec::new();
        for turn in self.0.iter().filter(|turn| turn.fate == Fate::Counted) {
            if claim(turn, &mut left).is_none() {
                wrong.push(format!("it was counted and is not any more: {turn:?}"));
            }
        }
        for fate in [Fate::Counts, Fate::MayCount] {
            for turn in self.0.iter_mut().filter(|turn| turn.fate == fate) {
                if let Some(place) = claim(turn, &mut left) {
                    turn.now = vec![place];
                    turn.before = Vec::new();
                    turn.fate = Fate::Counted;
                }
            }
        }
        let left = left.into_iter().filter(|(_, times)| *times > 0);
        wrong.extend(left.map(|(place, times)| {
            let known = self
                .0
                .iter()
                .any(|turn| turn.places().any(|known| *known == place));
            let what = if known {
                "counted again"
            } else {
                "typed by nobody"
            };
            format!("{what}, {times} times: {place:?}")
        }));
        wrong
    }

    /// Takes in what the log counts in the end. What is wrong with it, one line each.
    pub(super) fn counted_in_the_end(&mut self, counted: &[EvidenceRow]) -> Vec<String> {
        let mut wrong = self.counted(counted);
        let missed = self.in_the_file();
        wrong.extend(missed.map(|turn| format!("not counted: {:?}", turn.now)));
        wrong
    }

    fn in_the_file(&mut self) -> impl Iterator<Item = &mut Turn> {
        self.0.iter_mut().filter(|turn| turn.fate == Fate::Counts)
    }
}

impl Turn {
    fn places(&self) -> impl Iterator<Item = &EvidenceRow> {
        self.now.iter().chain(&self.before)
    }
}

/// Takes one of the turn's places out of what is left.
fn claim(turn: &Turn, left: &mut BTreeMap<EvidenceRow, usize>) -> Option<EvidenceRow> {
    let place = turn
        .places()
        .find(|place| left.get(place).is_some_and(|times| *times > 0))?;
    *left.get_mut(place)? -= 1;
    Some(place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(start: u64) -> EvidenceRow {
        EvidenceRow {
            start,
            end: start + 5,
        }
    }

    fn typed(starts: &[u64]) -> Expected {
        let mut expected = Expected::default();
        for start in starts {
            expected.typed(vec![place(*start)]);
        }
        expected
    }

    #[test]
    fn each_turn_of_the_file_counts_exactly_once() {
        let none: Vec<String> = Vec::new();
        assert_eq!(
            typed(&[0, 10]).counted_in_the_end(&[place(0), place(10)]),
            none
        );
        for counted in [
            &[place(0)][..],
            &[place(0), place(10), place(10)],
            &[place(0), place(10), place(20)],
        ] {
            let wrong = typed(&[0, 10]).counted_in_the_end(counted);
            assert_eq!(wrong.len(), 1, "{counted:?}: {wrong:?}");
        }
    }

    #[test]
    fn a_turn_that_was_cut_off_may_have_been_counted_and_one_that_was_counted_stays_so() {
        for counted in [&[place(0)][..], &[place(0), place(10)]] {
            let mut expected = typed(&[0, 10]);
            expected.cut(9);
            assert!(expected.counted_in_the_end(counted).is_empty());
        }
        let mut expected = typed(&[0, 10]);
        assert!(expected.counted(&[place(0), place(10)]).is_empty());
        expected.cut(9);
        assert_eq!(expected.counted_in_the_end(&[place(0)]).len(), 1);
    }

    #[test]
    fn a_turn_of_a_rewritten_file_counts_where_it_stood_or_where_it_stands() {
        for counted in [[place(0), place(17)], [place(7), place(17)]] {
            let mut expected = typed(&[0, 10]);
            expected.shifted(7);
            assert!(expected.counted_in_the_end(&counted).is_empty());
        }
        let mut expected = typed(&[0]);
        expected.shifted(7);
        assert_eq!(expected.counted_in_the_end(&[place(0), place(7)]).len(), 1);
    }

    #[test]
    fn a_turn_that_is_written_twice_counts_once() {
        let typed = || {
            let mut expected = Expected::default();
            expected.typed(vec![place(0), place(10)]);
            expected
        };
        for counted in [place(0), place(10)] {
            assert!(typed().counted_in_the_end(&[counted]).is_empty());
        }
        assert_eq!(typed().counted_in_the_end(&[place(0), place(10)]).len(), 1);
    }

    #[test]
    fn what_stands_in_the_place_of_a_turn_that_was_cut_off_counts_for_itself() {
        let mut expected = typed(&[0]);
        expected.cut(0);
        expected.typed(vec![place(0)]);
        assert!(expected.counted(&[place(0)]).is_empty());
        assert!(
            expected
                .counted_in_the_end(&[place(0), place(0)])
                .is_empty()
        );
    }
}
