//! How much of a model's window may be used, and what is due when it is. Pure.
//!
//! The window is a hard limit of the model. What the store says of a session's context is a
//! running figure beside it: the provider's of the last call, else an estimate.

use super::tokens::Figure;
use crate::config::{Compaction, WorkspaceAccess};

/// A model's window, and what of it is left free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    window: u64,
    reserve: u64,
}

/// Where the counters of a session stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cycle {
    /// How many automatic compactions have completed.
    pub compactions: i64,
    /// That number when notes were last written; `None` where they never were.
    pub flushed_at: Option<i64>,
}

/// Whose session it is, and what its agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The gateway runs its turns.
    Runner(WorkspaceAccess),
    /// Another agent program does: the session was adopted.
    OtherProgram,
}

/// What is due in a session, in the order in which it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// The silent turn in which notes are written.
    pub flush: bool,
    /// A compaction.
    pub compaction: bool,
}

impl Budget {
    /// The budget of a window under these settings. The reserve is what was configured, raised
    /// to the floor where it is lower, and never more than half the window.
    #[must_use]
    pub fn new(window: u64, settings: &Compaction) -> Self {
        let reserve = settings.reserve_tokens.max(settings.reserve_tokens_floor);
        Self {
            window,
            reserve: reserve.min(window / 2),
        }
    }

    /// How many tokens the model sees at most.
    #[must_use]
    pub fn window(self) -> u64 {
        self.window
    }

    /// How many of them are left free for prompts and the next output.
    #[must_use]
    pub fn reserve(self) -> u64 {
        self.reserve
    }

    /// A context above this is compacted.
    #[must_use]
    pub fn threshold(self) -> u64 {
        self.window - self.reserve
    }

    /// A context above this has notes written first.
    #[must_use]
    pub fn soft_threshold(self, settings: &Compaction) -> u64 {
        let soft = settings.memory_flush.soft_threshold_tokens;
        self.threshold().saturating_sub(soft)
    }

    /// True where the context is above the threshold.
    #[must_use]
    pub fn is_exceeded_by(self, context: Figure) -> bool {
        context.tokens() > self.threshold()
    }

    /// The largest piece of conversation that is summarised in one request: it stands there
    /// beside instructions, an earlier summary and the output, and is only estimated.
    #[must_use]
    pub fn chunk_target(self) -> u64 {
        (self.threshold() / 2).max(1)
    }

    /// A number just above what would have fitted, where a provider refused a prompt as too
    /// long and did not say how long it was.
    #[must_use]
    pub fn minimal_overrun(self) -> u64 {
        self.window.saturating_add(1)
    }
}

/// What is due after a successful turn, or before the next. Where a context jumps over both
/// thresholds at once, notes are still written first.
#[must_use]
pub fn due(
    context: Figure,
    budget: Budget,
    settings: &Compaction,
    (cycle, owner): (Cycle, Owner),
) -> Due {
    let Owner::Runner(access) = owner else {
        return Due::default();
    };
    let flush = &settings.memory_flush;
    let may_write = access == WorkspaceAccess::Rw;
    let is_first = cycle.flushed_at != Some(cycle.compactions);
    Due {
        flush: flush.enabled
            && settings.enabled
            && may_write
            && is_first
            && context.tokens() > budget.soft_threshold(settings),
        compaction: settings.enabled && budget.is_exceeded_by(context),
    }
}

/// True where a transcript of so many bytes is compacted before a turn: only where its
/// conversation can go on in a smaller one.
#[must_use]
pub fn is_too_large(transcript_bytes: u64, settings: &Compaction) -> bool {
    let limit = settings.max_active_transcript_bytes.value();
    settings.enabled
        && settings.truncate_after_compaction
        && limit.is_some_and(|limit| transcript_bytes >= limit.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Size, Switch};

    fn settings(reserve: u64, floor: u64) -> Compaction {
        Compaction {
            reserve_tokens: reserve,
            reserve_tokens_floor: floor,
            ..Compaction::default()
        }
    }

    #[test]
    fn a_reserve_below_the_floor_is_raised_a_higher_one_stays_and_none_is_half_the_window() {
        for (window, reserve, floor, expected) in [
            (200_000, 16_384, 20_000, 20_000),
            (200_000, 20_000, 20_000, 20_000),
            (200_000, 40_000, 20_000, 40_000),
            (200_000, 16_384, 0, 16_384),
            (200_000, 0, 0, 0),
            (200_000, 150_000, 20_000, 100_000),
            (8_192, 16_384, 20_000, 4_096),
            (1, 16_384, 20_000, 0),
        ] {
            let budget = Budget::new(window, &settings(reserve, floor));
            assert_eq!(budget.reserve(), expected, "{window} {reserve} {floor}");
            assert_eq!(budget.threshold(), window - expected);
            assert!(budget.chunk_target() >= 1 && budget.minimal_overrun() > window);
        }
    }

    #[test]
    fn a_context_is_compacted_above_the_threshold_and_not_at_it() {
        let budget = Budget::new(100_000, &Compaction::default());
        let runner = (Cycle::default(), Owner::Runner(WorkspaceAccess::None));
        for (tokens, expected) in [
            (0, false),
            (80_000, false),
            (80_001, true),
            (u64::MAX, true),
        ] {
            for figure in [Figure::Counted(tokens), Figure::Estimated(tokens)] {
                let due = due(figure, budget, &Compaction::default(), runner);
                assert_eq!(due.compaction, expected, "{tokens}");
                assert!(!due.flush);
            }
        }
        let off = Compaction {
            enabled: false,
            ..Compaction::default()
        };
        let runner = (Cycle::default(), Owner::Runner(WorkspaceAccess::Rw));
        assert_eq!(
            due(Figure::Counted(99_999), budget, &off, runner),
            Due::default()
        );
    }

    #[test]
    fn notes_are_written_once_a_cycle_before_the_threshold_and_where_the_agent_may_write() {
        let budget = Budget::new(100_000, &Compaction::default());
        let rw = Owner::Runner(WorkspaceAccess::Rw);
        for (tokens, compactions, flushed_at, owner, flush, compaction) in [
            (76_000, 0, None, rw, false, false),
            (76_001, 0, None, rw, true, false),
            (76_001, 0, Some(0), rw, false, false),
            (76_001, 1, Some(0), rw, true, false),
            // Over both at once: first the notes.
            (95_000, 0, None, rw, true, true),
            (95_000, 3, Some(3), rw, false, true),
            (
                95_000,
                0,
                None,
                Owner::Runner(WorkspaceAccess::Ro),
                false,
                true,
            ),
            (
                95_000,
                0,
                None,
                Owner::Runner(WorkspaceAccess::None),
                false,
                true,
            ),
            (95_000, 0, None, Owner::OtherProgram, false, false),
        ] {
            let cycle = Cycle {
                compactions,
                flushed_at,
            };
            let found = due(
                Figure::Counted(tokens),
                budget,
                &Compaction::default(),
                (cycle, owner),
            );
            let expected = Due { flush, compaction };
            assert_eq!(found, expected, "{tokens} {cycle:?} {owner:?}");
        }
    }

    #[test]
    fn notes_are_not_written_where_they_are_switched_off() {
        let budget = Budget::new(100_000, &Compaction::default());
        let mut settings = Compaction::default();
        settings.memory_flush.enabled = false;
        let runner = (Cycle::default(), Owner::Runner(WorkspaceAccess::Rw));
        let found = due(Figure::Counted(95_000), budget, &settings, runner);
        assert_eq!(
            found,
            Due {
                flush: false,
                compaction: true
            }
        );
    }

    #[test]
    fn a_large_transcript_is_compacted_only_where_it_can_become_smaller() {
        let settings = |limit, truncates, enabled| Compaction {
            max_active_transcript_bytes: limit,
            truncate_after_compaction: truncates,
            enabled,
            ..Compaction::default()
        };
        let on = Switch::On(Size(100));
        for (bytes, settings, expected) in [
            (99, settings(on, true, true), false),
            (100, settings(on, true, true), true),
            (100, settings(on, false, true), false),
            (100, settings(on, true, false), false),
            (u64::MAX, settings(Switch::Off, true, true), false),
        ] {
            assert_eq!(is_too_large(bytes, &settings), expected, "{bytes}");
        }
    }
}
