//! A watcher's cursor on its target, and what moves it.
//!
//! A cursor is (l, n, m): last seen, notified, material, with l ≤ n ≤ m. A notice is
//! pending exactly when n > l: it is read off the cursor and stored nowhere, so it cannot
//! be lost, overflow or be replayed.

use tidings_protocol::SignalKind;

/// How far a watcher has seen its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    last_seen: u64,
    notified: u64,
    material: u64,
}

/// Why three numbers are no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has last seen ≤ notified ≤ material, this one {0}, {1}, {2}")]
pub struct CursorError(u64, u64, u64);

/// Whose doing an event is, as seen from one watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The watcher's own: it is never told of those.
    Watcher,
    /// Somebody else's.
    Other,
}

impl Cursor {
    /// A cursor that has seen everything up to `version`.
    #[must_use]
    pub fn at(version: u64) -> Self {
        Self {
            last_seen: version,
            notified: version,
            material: version,
        }
    }

    /// The cursor of these three numbers.
    pub fn new(last_seen: u64, notified: u64, material: u64) -> Result<Self, CursorError> {
        if last_seen <= notified && notified <= material {
            Ok(Self {
                last_seen,
                notified,
                material,
            })
        } else {
            Err(CursorError(last_seen, notified, material))
        }
    }

    /// What the watcher has seen.
    pub fn last_seen(self) -> u64 {
        self.last_seen
    }

    /// What it has been told of; frozen while a notice is pending.
    pub fn notified(self) -> u64 {
        self.notified
    }

    /// The newest event that matters to it.
    pub fn material(self) -> u64 {
        self.material
    }

    /// True while a notice is pending.
    pub fn is_pending(self) -> bool {
        self.notified > self.last_seen
    }

    /// The cursor after an event on its target; `None` where the event does not move it.
    pub fn after_event(self, sequence: u64, kind: SignalKind, cause: Cause) -> Option<Self> {
        if !kind.notifies() || cause == Cause::Watcher {
            return None;
        }
        let notified = if self.is_pending() {
            self.notified
        } else {
            sequence
        };
        Some(Self {
            notified,
            material: sequence,
            ..self
        })
    }

    /// The cursor of a parent after its child was spawned at `sequence`; `None` where the
    /// one it has stays, because something is pending there.
    pub fn seeded(existing: Option<Self>, sequence: u64) -> Option<Self> {
        match existing {
            Some(cursor) if cursor.is_pending() => None,
            _ => Some(Self::at(sequence)),
        }
    }

    /// The cursor after its watcher took the notice that was handed out at
    /// `handed_out`; `None` where that notice is not the pending one any more.
    ///
    /// It moves to what the notice spoke of and never to the head: what came in between
    /// is pending anew, in one notice.
    pub fn confirmed(self, handed_out: u64) -> Option<Self> {
        (self.is_pending() && self.notified == handed_out).then_some(Self {
            last_seen: self.notified,
            notified: self.material,
            material: self.material,
        })
    }

    /// The cursor of a watcher whose conversation was rolled over: the new one has no
    /// stale assumptions.
    #[must_use]
    pub fn rolled_over(self) -> Self {
        Self::at(self.material)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(numbers: (u64, u64, u64)) -> Cursor {
        Cursor::new(numbers.0, numbers.1, numbers.2).expect("a cursor")
    }

    fn numbers(cursor: Cursor) -> (u64, u64, u64) {
        (cursor.last_seen, cursor.notified, cursor.material)
    }

    #[test]
    fn numbers_out_of_order_are_no_cursor() {
        for (l, n, m) in [(2, 1, 3), (1, 3, 2), (3, 2, 1)] {
            assert_eq!(Cursor::new(l, n, m), Err(CursorError(l, n, m)));
        }
        assert_eq!(numbers(Cursor::at(4)), (4, 4, 4));
    }

    #[test]
    fn the_first_event_opens_a_notice_and_the_next_ones_leave_its_mark_frozen() {
        use Cause::{Other, Watcher};
        use SignalKind::{
            Adopted, ChildSpawned, Compacted, GoalChanged, HumanDirectMessage, RunCompleted,
            RunFailed, UpstreamMissing,
        };
        for (before, kind, cause, after) in [
            ((3, 3, 3), HumanDirectMessage, Other, Some((3, 9, 9))),
            ((3, 3, 3), UpstreamMissing, Other, Some((3, 9, 9))),
            ((3, 3, 3), GoalChanged, Other, Some((3, 9, 9))),
            ((3, 5, 5), GoalChanged, Other, Some((3, 5, 9))),
            ((3, 5, 8), HumanDirectMessage, Other, Some((3, 5, 9))),
            ((0, 0, 0), GoalChanged, Other, Some((0, 9, 9))),
            ((3, 3, 3), GoalChanged, Watcher, None),
            ((3, 5, 8), GoalChanged, Watcher, None),
            ((3, 3, 3), ChildSpawned, Other, None),
            ((3, 3, 3), RunCompleted, Other, None),
            ((3, 3, 3), RunFailed, Other, None),
            ((3, 5, 8), Compacted, Other, None),
            ((3, 5, 8), Adopted, Other, None),
        ] {
            let moved = cursor(before).after_event(9, kind, cause);
            assert_eq!(moved.map(numbers), after, "{before:?} {kind} {cause:?}");
        }
    }

    #[test]
    fn a_spawn_seeds_the_parent_but_drops_nothing_that_is_pending() {
        for (before, after) in [
            (None, Some((9, 9, 9))),
            (Some((3, 3, 3)), Some((9, 9, 9))),
            (Some((3, 5, 5)), None),
            (Some((3, 5, 8)), None),
        ] {
            let seeded = Cursor::seeded(before.map(cursor), 9);
            assert_eq!(seeded.map(numbers), after, "{before:?}");
        }
    }

    #[test]
    fn a_confirm_moves_to_what_was_handed_out_and_opens_one_notice_for_the_rest() {
        for (before, handed_out, after) in [
            ((3, 5, 5), 5, Some((5, 5, 5))),
            ((3, 5, 8), 5, Some((5, 8, 8))),
            ((5, 8, 8), 5, None),
            ((5, 5, 5), 5, None),
            ((3, 5, 8), 8, None),
        ] {
            let moved = cursor(before).confirmed(handed_out);
            assert_eq!(moved.map(numbers), after, "{before:?} {handed_out}");
        }
    }

    #[test]
    fn a_roll_over_drops_what_is_pending() {
        for (before, after) in [((3, 5, 8), (8, 8, 8)), ((3, 3, 3), (3, 3, 3))] {
            assert_eq!(numbers(cursor(before).rolled_over()), after);
        }
    }
}
