//! A session's turn: what it takes, and what becomes of that; and the wakes that say that
//! there is something to take.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Notice;
use crate::{EpochMs, SessionKey};

/// Shows the lease of a turn, to confirm or release what the turn took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseRef {
    /// The token of `turn_begin`.
    pub token: String,
}

/// What a turn took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnBegun {
    /// The lease over all of it, lower-case hex; none where nothing was handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The notices, by target.
    pub notices: Vec<Notice>,
    /// The messages, in the order they were sent.
    pub messages: Vec<TurnMessage>,
}

/// A message for a session's turn.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnMessage {
    /// Its id: handed out again under the same one.
    pub id: u64,
    /// The session that sent it; none for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<SessionKey>,
    /// What it says.
    pub body: String,
    /// When it was sent.
    pub sent_at: EpochMs,
}

impl fmt::Debug for TurnMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnMessage")
            .field("id", &self.id)
            .field("sender", &self.sender)
            .field("sent_at", &self.sent_at)
            .finish_non_exhaustive()
    }
}

/// How much of what a turn took was confirmed or released: nothing where the lease has
/// ended, or all of it was handed out again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSettled {
    /// Notices.
    pub notices: u64,
    /// Messages.
    pub messages: u64,
}

/// Whether a turn was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// False when none was running.
    pub ended: bool,
}

/// Notices that became available.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wakes {
    /// One for each. The first answer has one per notice available now, perhaps none; a
    /// wake may come twice, and then the second finds nothing to take.
    pub wakes: Vec<Wake>,
}

/// One watcher has a notice to take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wake {
    /// The session to wake.
    pub watcher: SessionKey,
    /// The session that changed.
    pub target: SessionKey,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_api::Reply;

    #[test]
    fn what_a_message_says_is_not_in_its_debug_output() {
        let reply = Reply::Part(Box::new(Reply::TurnBegin(TurnBegun {
            token: None,
            notices: Vec::new(),
            messages: vec![TurnMessage {
                id: 7,
                sender: None,
                body: "as it was typed".to_owned(),
                sent_at: 0,
            }],
        })));
        let debug = format!("{reply:?} {reply:#?}");
        assert!(debug.contains("id: 7"), "{debug}");
        assert!(!debug.contains("typed"), "{debug}");
    }
}
