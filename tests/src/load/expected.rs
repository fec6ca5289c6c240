//! What must be in the database after an answer: of a signal, a watch, a turn.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{Notice, SignalsRecord};

use crate::audit::Snapshot;

/// A watcher and its target.
pub(super) type Pair = (SessionKey, SessionKey);

/// A signal that was asked for, and what became of it.
#[derive(Debug)]
pub(super) struct Signal {
    pub(super) asked: SignalsRecord,
    pub(super) end: SignalEnd,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalEnd {
    /// A row of its own.
    Recorded(u64),
    /// The row that it repeats.
    Repeat(u64),
    /// Nobody watches.
    Unwatched,
    /// Not answered: there is a row, or not.
    Unknown,
    /// Not answered, and not done: there must never be a row.
    NotDone,
}

impl Signal {
    /// What is wrong. What was open is decided from now on.
    pub(super) fn compare(&mut self, snapshot: &Snapshot) -> Option<String> {
        let run = self.asked.run_id.as_deref().expect("each has a run");
        let rows = snapshot.rows_of_run(run);
        let own = match (self.end, rows) {
            (SignalEnd::Unknown, []) => {
                self.end = SignalEnd::NotDone;
                return None;
            }
            (SignalEnd::Unknown, [only]) => {
                self.end = SignalEnd::Recorded(*only);
                *only
            }
            (SignalEnd::Recorded(answered), [only]) if answered == *only => answered,
            (SignalEnd::Repeat(first), []) => first,
            (SignalEnd::Unwatched | SignalEnd::NotDone, []) => return None,
            (end, rows) => return Some(format!("{run}: {end:?}, in the log as {rows:?}")),
        };
        let is_own = !matches!(self.end, SignalEnd::Repeat(_));
        let same = snapshot.signals.get(&own).is_some_and(|row| {
            row.session == self.asked.session.as_str()
                && row.dedupe_key == self.asked.dedupe_key
                && (!is_own
                    || row.kind == self.asked.kind.as_str() && row.actor == self.asked.actor)
        });
        let row = snapshot.signals.get(&own);
        (!same).then(|| {
            format!(
                "{:?} was answered {:?} and is {row:?}",
                self.asked, self.end
            )
        })
    }
}

/// A watch, as far as answers tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watch {
    pub(super) stands: Stands,
    /// What the watcher has seen at the least.
    pub(super) seen: u64,
}

/// Whether a watch stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stands {
    Yes,
    #[default]
    No,
    Unknown,
}

impl Watch {
    /// What is wrong. What was open is decided from now on.
    pub(super) fn compare(&mut self, pair: &Pair, snapshot: &Snapshot) -> Option<String> {
        let key = (pair.0.to_string(), pair.1.to_string());
        let cursor = snapshot.cursors.get(&key);
        let last_seen = cursor.map(|cursor| cursor.marks.0);
        match (self.stands, last_seen) {
            (Stands::No, None) => None,
            (Stands::Unknown, None) => {
                *self = Self::default();
                None
            }
            (Stands::Yes | Stands::Unknown, Some(seen)) if seen >= self.seen => {
                *self = Self {
                    stands: Stands::Yes,
                    seen,
                };
                None
            }
            _ => Some(format!("the watch {pair:?} is {self:?} and has {cursor:?}")),
        }
    }
}

/// A turn that holds notices.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    /// It holds these, and shows this token.
    Open {
        token: String,
        /// The targets, with the version that each notice names.
        holds: Vec<(SessionKey, u64)>,
        /// False once a request on it was not answered.
        sure: bool,
    },
    /// It may hold some, under a token that nobody knows.
    Lost,
}

impl Turn {
    pub(super) fn holding(token: &str, notices: &[Notice]) -> Self {
        let holds = |notice: &Notice| (notice.target.clone(), notice.changes_since);
        Self::Open {
            token: token.to_owned(),
            holds: notices.iter().map(holds).collect(),
            sure: true,
        }
    }

    pub(super) fn token(&self) -> Option<&str> {
        match self {
            Self::Open { token, .. } => Some(token),
            Self::Lost => None,
        }
    }

    pub(super) fn holds(&self) -> &[(SessionKey, u64)] {
        match self {
            Self::Open { holds, .. } => holds,
            Self::Lost => &[],
        }
    }

    /// True when it holds something for certain.
    pub(super) fn surely_open(&self) -> bool {
        matches!(self, Self::Open { holds, sure: true, .. } if !holds.is_empty())
    }

    pub(super) fn surely_holds(&self, target: &SessionKey) -> bool {
        self.surely_open() && self.holds().iter().any(|(held, _)| held == target)
    }

    /// True where settling it may apply to so many notices: all that it holds, or fewer
    /// where that is not certain.
    pub(super) fn may_settle(&self, notices: u64) -> bool {
        match self {
            Self::Open { holds, sure, .. } => {
                let held = holds.len() as u64;
                notices == held || !sure && notices < held
            }
            Self::Lost => false,
        }
    }

    pub(super) fn doubt(&mut self) {
        if let Self::Open { sure, .. } = self {
            *sure = false;
        }
    }

    /// It holds the notice of this target no longer; the version that it named.
    pub(super) fn give_up(&mut self, target: &SessionKey) -> Option<u64> {
        let Self::Open { holds, .. } = self else {
            return None;
        };
        let at = holds.iter().position(|(held, _)| held == target)?;
        Some(holds.remove(at).1)
    }
}
