//! Requests about a session's turn.

use tidings_protocol::session_api::{
    ApiError, ErrorType, LeaseRef, SpeakerRef, TurnBegun, TurnEnded, TurnMessage, TurnSettled,
};

use super::Service;
use super::origin::named;
use crate::state::{self, QueuedMessage, SessionAddress, TurnToken};

impl Service {
    pub(super) async fn turn_begin(&self, speaker: SpeakerRef) -> Result<TurnBegun, ApiError> {
        let speaker = self.speaker(speaker)?;
        Ok(taken(self.nodes.state.turn_begin(speaker).await?))
    }

    pub(super) async fn turn_confirm(&self, lease: &LeaseRef) -> Result<TurnSettled, ApiError> {
        let settled = self.nodes.state.turn_confirm(token(lease)?).await?;
        Ok(counts(settled))
    }

    pub(super) async fn turn_release(&self, lease: &LeaseRef) -> Result<TurnSettled, ApiError> {
        let settled = self.nodes.state.turn_release(token(lease)?).await?;
        Ok(counts(settled))
    }

    pub(super) async fn turn_end(&self, speaker: SpeakerRef) -> Result<TurnEnded, ApiError> {
        let ended = self.nodes.state.turn_end(self.speaker(speaker)?).await?;
        Ok(TurnEnded { ended })
    }

    pub(super) fn speaker(&self, speaker: SpeakerRef) -> Result<SessionAddress, ApiError> {
        self.address(named(speaker.session_key)?, speaker.agent.as_deref())
    }
}

/// A token that could never have been handed out is refused; one that is merely unknown
/// settles nothing, because its lease may have ended.
fn token(lease: &LeaseRef) -> Result<TurnToken, ApiError> {
    TurnToken::parse(&lease.token).ok_or_else(|| {
        ApiError::new(ErrorType::InvalidRequest, "this is no token of a turn")
            .with_hint("give the token that turn_begin answered, as it was")
    })
}

/// What a turn took, as the doors answer it.
pub(super) fn taken(begun: state::TurnBegun) -> TurnBegun {
    TurnBegun {
        token: begun.token.map(|token| token.to_string()),
        notices: begun.notices,
        messages: begun.messages.into_iter().map(message).collect(),
    }
}

fn message(message: QueuedMessage) -> TurnMessage {
    TurnMessage {
        id: message.id,
        sender: message.sender,
        body: message.body,
        sent_at: message.sent_at,
    }
}

fn counts(settled: state::TurnSettled) -> TurnSettled {
    TurnSettled {
        notices: settled.notices,
        messages: settled.messages,
    }
}
