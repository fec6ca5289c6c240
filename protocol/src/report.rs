//! Upstream links as a node sees them, the reports a node sends on them, and the answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marker::{Marker, MarkerError};
use crate::{Catalog, EpochMs, ThreadId};

/// How many items (records judged human or unclassified) one report covers, at most.
pub const MAX_REPORT_ITEMS: usize = 50;
/// The longest path on the wire, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// The longest record id kept as evidence, in bytes; a longer one is cut.
pub const MAX_RECORD_ID_BYTES: usize = 128;
/// The longest rule name, in bytes.
pub const MAX_RULE_BYTES: usize = 48;
/// How many delivered texts a link remembers for telling echoes.
pub const MAX_ECHO_DIGESTS: usize = 10;

/// The id of an upstream link; it never returns.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct LinkId(pub u64);

/// One upstream link, as the gateway hands it to the node that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The link.
    pub link: LinkId,
    /// Raised by every applied report.
    pub revision: u64,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// Where the file was last seen.
    pub path: String,
    /// How far it has been recorded.
    pub marker: Marker,
    /// What tells the gateway's own deliveries from a human's words.
    pub echo: Echo,
    /// What the last applied report said of the file.
    #[serde(default)]
    pub last_look: Look,
}

/// What a report says of the file itself. A node that was started anew learns by it what its
/// predecessor told: the first good look after another is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// It is there, or nobody has reported yet.
    #[default]
    Good,
    /// It is gone.
    Missing,
    /// Nothing could be said, and why.
    Inconclusive(Inconclusive),
}

impl Look {
    /// What an outcome says of the file.
    #[must_use]
    pub fn by(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Activity(_) | Outcome::Quiet => Self::Good,
            Outcome::Missing => Self::Missing,
            Outcome::Inconclusive(reason) => Self::Inconclusive(*reason),
        }
    }
}

/// How a node recognises a text that the gateway itself delivered to a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The link's own key for HMAC-SHA-256.
    #[serde(with = "serde_bytes")]
    pub key: Vec<u8>,
    /// The newest deliveries, oldest first, at most [`MAX_ECHO_DIGESTS`].
    pub deliveries: Vec<Delivery>,
    /// What the gateway's clock showed when it told of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<EpochMs>,
}

impl Echo {
    /// As the gateway tells of it while its clock shows `now`.
    #[must_use]
    pub fn told_at(self, now: EpochMs) -> Self {
        Self {
            told_at: Some(now),
            ..self
        }
    }
}

/// One text that the gateway delivered. The same text delivered again is another delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The delivery.
    pub id: u64,
    /// HMAC-SHA-256 of the normalised text, first 16 bytes.
    #[serde(with = "serde_bytes")]
    pub digest: [u8; 16],
    /// When it was delivered, by the gateway's clock; it suppresses nothing older.
    pub at: EpochMs,
}

/// What a node found out about one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The link.
    pub link: LinkId,
    /// The revision the node read from; the report is applied only if it is still stored.
    pub revision: u64,
    /// How far the file is classified with this report.
    pub marker: Marker,
    /// Where the file is.
    pub path: String,
    /// How large the file was.
    pub size: u64,
    /// How many records of this report no rule knew.
    pub unclassified: u32,
    /// What was found.
    pub outcome: Outcome,
}

/// What a node found on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Somebody spoke.
    Activity(Activity),
    /// The file is there; nobody spoke.
    Quiet,
    /// The file is definitely gone.
    Missing,
    /// Nothing can be said now.
    Inconclusive(Inconclusive),
}

impl Outcome {
    /// The outcome's name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Activity(_) => "activity",
            Self::Quiet => "quiet",
            Self::Missing => "missing",
            Self::Inconclusive(_) => "inconclusive",
        }
    }
}

/// Human turns found on a link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// One entry per human turn, in file order, at most [`MAX_REPORT_ITEMS`].
    pub turns: Vec<Evidence>,
    /// The deliveries that were found as echoes (they are not turns).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub echoed: Vec<u64>,
}

impl Activity {
    /// The latest time of a turn.
    pub fn latest_at(&self) -> Option<EpochMs> {
        self.turns.iter().map(|turn| turn.at).max()
    }
}

/// Why a record counted as a human turn: enough to find and judge it again on its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Where the record begins in the file.
    pub byte_start: u64,
    /// Where it ends.
    pub byte_end: u64,
    /// The program's own id of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// The rule that judged it.
    pub rule: String,
    /// The record's time, else the file's.
    pub at: EpochMs,
}

/// Why nothing can be said about a file now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// The root is gone, unreadable, or not the directory it was.
    RootUnavailable,
    /// The file is not where it was and was never seen by this node.
    NeverSeen,
    /// The file may not be read.
    PermissionDenied,
    /// Reading failed.
    ReadFailed,
    /// The file system did not answer in time.
    TimedOut,
}

impl Inconclusive {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::RootUnavailable,
        Self::NeverSeen,
        Self::PermissionDenied,
        Self::ReadFailed,
        Self::TimedOut,
    ];

    /// The reason of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RootUnavailable => "root_unavailable",
            Self::NeverSeen => "never_seen",
            Self::PermissionDenied => "permission_denied",
            Self::ReadFailed => "read_failed",
            Self::TimedOut => "timed_out",
        }
    }
}

/// What the gateway did with a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportAnswer {
    /// The link of the report.
    pub link: LinkId,
    /// What became of it.
    pub verdict: ReportVerdict,
}

/// What became of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportVerdict {
    /// Recorded; the link has this revision now.
    Applied {
        /// The link's new revision.
        revision: u64,
    },
    /// Recorded, and the link is gone with it: the file is missing for good.
    Unlinked,
    /// Not recorded: the link has moved on. Go on from here, or stop where there is none.
    Stale {
        /// The link as it is stored.
        current: Option<Box<Link>>,
    },
    /// Not recorded, for what it says. Shown to the operator; tried again with back-off.
    Rejected {
        /// What is wrong with it.
        reason: String,
    },
}

/// Why a report cannot be applied, whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// Too many turns.
    #[error("a report has at most {MAX_REPORT_ITEMS} turns, this one {0}")]
    TooManyTurns(usize),
    /// Activity without a turn or an echo.
    #[error("activity without a turn or an echo")]
    EmptyActivity,
    /// A text is too long or has control characters.
    #[error("the {0} of a report is too long or has control characters")]
    Text(&'static str),
    /// A byte range ends before it begins.
    #[error("a byte range of a report ends before it begins")]
    Range,
    /// The marker is not one.
    #[error(transparent)]
    Marker(#[from] MarkerError),
}

impl Report {
    /// Checks everything about a report that does not need the stored link.
    pub fn check(&self) -> Result<(), ReportError> {
        self.marker.encode()?;
        check_text("path", &self.path, MAX_PATH_BYTES)?;
        let Outcome::Activity(activity) = &self.outcome else {
            return Ok(());
        };
        if activity.turns.len() > MAX_REPORT_ITEMS {
            return Err(ReportError::TooManyTurns(activity.turns.len()));
        }
        if activity.turns.is_empty() && activity.echoed.is_empty() {
            return Err(ReportError::EmptyActivity);
        }
        for turn in &activity.turns {
            check_text("rule", &turn.rule, MAX_RULE_BYTES)?;
            if let Some(id) = &turn.record_id {
                check_text("record id", id, MAX_RECORD_ID_BYTES)?;
            }
            if turn.byte_end < turn.byte_start {
                return Err(ReportError::Range);
            }
        }
        Ok(())
    }
}

fn check_text(what: &'static str, text: &str, limit: usize) -> Result<(), ReportError> {
    if text.len() > limit || text.chars().any(char::is_control) {
        return Err(ReportError::Text(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome) -> Report {
        Report {
            link: LinkId(1),
            revision: 1,
            marker: Marker::at_start(0),
            path: "/t.jsonl".to_owned(),
            size: 0,
            unclassified: 0,
            outcome,
        }
    }

    fn turn() -> Evidence {
        Evidence {
            byte_start: 0,
            byte_end: 1,
            record_id: Some("id".to_owned()),
            rule: "typed-prompt".to_owned(),
            at: 5,
        }
    }

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        for reason in Inconclusive::ALL {
            assert_eq!(Inconclusive::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(Inconclusive::parse("quiet"), None);
    }

    #[test]
    fn a_report_is_refused_for_what_it_says_and_the_error_names_it() {
        let activity = |turns, echoed| Outcome::Activity(Activity { turns, echoed });
        let with = |change: fn(&mut Evidence)| {
            let mut turn = turn();
            change(&mut turn);
            activity(vec![turn], vec![])
        };
        for (outcome, expected) in [
            (Outcome::Quiet, Ok(())),
            (activity(vec![turn(); 50], vec![]), Ok(())),
            (activity(vec![], vec![3]), Ok(())),
            (
                activity(vec![turn(); 51], vec![]),
                Err(ReportError::TooManyTurns(51)),
            ),
            (activity(vec![], vec![]), Err(ReportError::EmptyActivity)),
            (
                with(|t| t.rule = "a\nb".to_owned()),
                Err(ReportError::Text("rule")),
            ),
            (
                with(|t| t.record_id = Some("x".repeat(129))),
                Err(ReportError::Text("record id")),
            ),
            (with(|t| t.byte_end = 0), Ok(())),
            (with(|t| t.byte_start = 2), Err(ReportError::Range)),
        ] {
            assert_eq!(report(outcome).check(), expected);
        }
    }
}
