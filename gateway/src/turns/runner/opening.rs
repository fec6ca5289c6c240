//! How a turn begins: what it takes, and what becomes of that.

use serde_json::json;
use tidings_protocol::session_api::{LeaseRef, Reply, Request, SpeakerRef, TurnBegun};

use super::Runner;
use super::error::TurnError;
use super::job::News;
use super::prompt;
use super::turn::{Turn, TurnDone};
use crate::config::Config;
use crate::state::SessionAddress;
use crate::turns::message;
use crate::turns::models::ModelError;
use crate::turns::view::MESSAGE_IDS;

/// What a turn is begun for, beside what waits for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening<'a> {
    /// A person says this.
    Said(&'a str),
    /// Nothing else.
    Waiting,
    /// What was taken before, where it has no answer yet.
    Unanswered,
}

/// Whether a turn has anything new to say to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompt {
    Written,
    Nothing,
}

impl Runner {
    /// Runs a turn with what waits for the session, and what a person says. `None` where there
    /// was nothing.
    pub(super) async fn turn(
        &self,
        session: &SessionAddress,
        opening: Opening<'_>,
        news: &News,
    ) -> Result<Option<TurnDone>, TurnError> {
        let speaker = || SpeakerRef::default();
        let begun = match self.ask(session, Request::TurnBegin(speaker())).await? {
            Reply::TurnBegin(begun) => begun,
            _ => TurnBegun::default(),
        };
        let done = Box::pin(self.taken(session, begun, opening, news)).await;
        if let Err(error) = self.ask(session, Request::TurnEnd(speaker())).await {
            tracing::warn!(%session, %error, "a turn was not ended");
        }
        done
    }

    async fn taken(
        &self,
        session: &SessionAddress,
        begun: TurnBegun,
        opening: Opening<'_>,
        news: &News,
    ) -> Result<Option<TurnDone>, TurnError> {
        let said = match opening {
            Opening::Said(said) => Some(said),
            Opening::Waiting | Opening::Unanswered => None,
        };
        if opening == Opening::Waiting && begun.notices.is_empty() && begun.messages.is_empty() {
            return Ok(None);
        }
        let lease = begun.token.clone().map(|token| LeaseRef { token });
        let config = self.config();
        let opened = self.opened(session, begun, said, (&config, news)).await;
        let (turn, prompt) = match (opened, lease) {
            (Ok(opened), None) => opened,
            (Ok(opened), Some(lease)) => {
                self.ask(session, Request::TurnConfirm(lease)).await?;
                opened
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(lease)) => {
                self.ask(session, Request::TurnRelease(lease)).await?;
                return Err(error);
            }
        };
        if prompt == Prompt::Nothing && !turn.is_waited_for().await? {
            return Ok(None);
        }
        turn.run().await.map(Some)
    }

    /// A turn whose prompt stands in the transcript. A message that stands there already, from
    /// a turn that was cut off before it was confirmed, is not said again.
    async fn opened<'a>(
        &'a self,
        session: &SessionAddress,
        mut begun: TurnBegun,
        said: Option<&str>,
        (config, news): (&'a Config, &'a News),
    ) -> Result<(Turn<'a>, Prompt), TurnError> {
        self.own(session).await?;
        let mut turn = Turn::open(self, session, config, news).await?;
        turn.before_prompt().await;
        if news.is_gone() {
            return Err(ModelError::Unwanted.into());
        }
        if !begun.messages.is_empty() {
            let said_before = turn.conversation.view().await?.message_ids();
            begun
                .messages
                .retain(|message| !said_before.contains(&message.id));
        }
        let Some(prompt) = prompt::opening(&begun, said) else {
            return Ok((turn, Prompt::Nothing));
        };
        let mut entry = message::to_entry(&prompt);
        if !begun.messages.is_empty() {
            let ids = begun.messages.iter().map(|message| message.id);
            entry[MESSAGE_IDS] = json!(ids.collect::<Vec<u64>>());
        }
        turn.conversation.append(&[entry]).await?;
        Ok((turn, Prompt::Written))
    }
}

impl Turn<'_> {
    /// True where what the session took is not answered yet. What a person said is not taken up
    /// again: whoever said it has heard that it failed.
    async fn is_waited_for(&self) -> Result<bool, TurnError> {
        let view = self.conversation.view().await?;
        Ok(view.unanswered().is_some_and(prompt::is_the_gateways))
    }
}
