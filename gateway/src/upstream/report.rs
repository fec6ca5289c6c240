//! What a report does to the stored link.

use tidings_protocol::EpochMs;
use tidings_protocol::report::{Outcome, Report};

use super::missing::{Misses, Presence};

/// The largest file there is: offsets are signed in every file system.
const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// The part of a stored link that decides about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredLink {
    /// Raised by every applied report.
    pub revision: u64,
    /// The misses so far.
    pub misses: Misses,
}

/// What a report does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: it was read from a state of the link that is not the stored one.
    Stale,
    /// It advances the link.
    Advance {
        /// The misses from now on.
        misses: Misses,
        /// The human turns to tell of, where there are any.
        turns: Option<Turns>,
    },
    /// It ends the link: the file is gone for good.
    Unlink,
}

/// Human turns of one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// How many.
    pub count: u32,
    /// When the latest was said.
    pub latest_at: EpochMs,
}

/// Decides what a report does to the link it names.
#[must_use]
pub fn decide(stored: &StoredLink, report: &Report, now: EpochMs) -> Decision {
    if report.revision != stored.revision {
        return Decision::Stale;
    }
    match stored.misses.after(&report.outcome, now) {
        Presence::Gone => Decision::Unlink,
        Presence::Counting(misses) => Decision::Advance {
            misses,
            turns: turns(&report.outcome),
        },
    }
}

/// Checks what a report says; answers the marker as it is stored, or what is wrong.
pub fn content(report: &Report) -> Result<Vec<u8>, String> {
    report.check().map_err(|error| error.to_string())?;
    let turns = match &report.outcome {
        Outcome::Activity(activity) => activity.turns.as_slice(),
        _ => &[],
    };
    let ends = turns.iter().map(|turn| turn.byte_end);
    let largest = ends.chain([report.marker.offset, report.size]).max();
    if largest > Some(MAX_FILE_BYTES) {
        return Err("a report names a place that no file reaches".to_owned());
    }
    report.marker.encode().map_err(|error| error.to_string())
}

fn turns(outcome: &Outcome) -> Option<Turns> {
    let Outcome::Activity(activity) = outcome else {
        return None;
    };
    let latest_at = activity.latest_at()?;
    Some(Turns {
        count: u32::try_from(activity.turns.len()).unwrap_or(u32::MAX),
        latest_at,
    })
}

#[cfg(test)]
mod tests {
    use tidings_protocol::Marker;
    use tidings_protocol::report::{Activity, Evidence, Inconclusive, LinkId};

    use super::*;

    fn report(revision: u64, outcome: Outcome) -> Report {
        Report {
            link: LinkId(1),
            revision,
            marker: Marker::at_start(0),
            path: "/t.jsonl".to_owned(),
            size: 0,
            unclassified: 0,
            outcome,
        }
    }

    fn spoken(times: &[EpochMs], echoed: Vec<u64>) -> Outcome {
        let turn = |&at| Evidence {
            byte_start: 0,
            byte_end: 1,
            record_id: None,
            rule: "typed-prompt".to_owned(),
            at,
        };
        Outcome::Activity(Activity {
            turns: times.iter().map(turn).collect(),
            echoed,
        })
    }

    #[test]
    fn a_report_that_cannot_be_stored_says_why() {
        let beyond = MAX_FILE_BYTES + 1;
        let mut far = report(7, Outcome::Quiet);
        far.marker.offset = beyond;
        let mut large = report(7, Outcome::Quiet);
        large.size = beyond;
        for (report, wrong) in [
            (far, Some("no file reaches")),
            (large, Some("no file reaches")),
            (report(7, spoken(&[], vec![])), Some("without a turn")),
            (report(7, spoken(&[1; 51], vec![])), Some("at most 50")),
            (report(7, spoken(&[1], vec![])), None),
        ] {
            let error = content(&report).err();
            assert_eq!(error.is_some(), wrong.is_some(), "{report:?}");
            let wrong = wrong.unwrap_or_default();
            assert!(error.unwrap_or_default().contains(wrong), "{report:?}");
        }
        let marker = content(&report(7, Outcome::Quiet)).expect("sound");
        assert_eq!(Marker::decode(&marker), Ok(Marker::at_start(0)));
    }

    #[test]
    fn a_report_is_applied_to_the_revision_it_was_read_from_and_to_no_other() {
        let missed = Misses {
            count: 2,
            last_at: Some(0),
        };
        let none = Misses::default();
        let advance = |misses, turns| Decision::Advance { misses, turns };
        let turns = |count, latest_at| Some(Turns { count, latest_at });
        for (misses, report, decision) in [
            (none, report(6, Outcome::Quiet), Decision::Stale),
            (none, report(8, Outcome::Missing), Decision::Stale),
            (missed, report(7, Outcome::Quiet), advance(none, None)),
            (
                missed,
                report(7, spoken(&[5, 9, 7], vec![])),
                advance(none, turns(3, 9)),
            ),
            (missed, report(7, spoken(&[], vec![4])), advance(none, None)),
            (
                missed,
                report(7, Outcome::Inconclusive(Inconclusive::TimedOut)),
                advance(missed, None),
            ),
            (missed, report(7, Outcome::Missing), Decision::Unlink),
        ] {
            let stored = StoredLink {
                revision: 7,
                misses,
            };
            assert_eq!(decide(&stored, &report, 100_000), decision, "{report:?}");
        }
    }
}
