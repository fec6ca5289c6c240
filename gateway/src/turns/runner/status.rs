//! `/status`: how a session stands, for a person.

use std::fmt::Write as _;

use super::Runner;
use super::conversation::Conversation;
use super::error::TurnError;
use super::turn::model_of;
use crate::state::SessionAddress;
use crate::turns::budget::Budget;

impl Runner {
    /// How a session stands.
    pub(super) async fn status(&self, session: &SessionAddress) -> Result<String, TurnError> {
        let conversation = Conversation::open(&self.shelves, session).await?;
        let config = self.config();
        let entry = &conversation.entry;
        let model = model_of(&config, entry.model_override.as_deref());
        let model = model.ok_or(TurnError::NoModel)?;
        let budget = Budget::new(model.context_window, &config.agents.defaults.compaction);
        let context = conversation.view().await?.context();
        let mut text = format!(
            "Session: {}\nConversation: {}\nModel: {}\nContext: {context} of {}; compacted \
             above {}\nCompactions: {}",
            session.key(),
            entry.session_id,
            model.model,
            budget.window(),
            budget.threshold(),
            entry.compaction_count.unwrap_or(0),
        );
        if let Some(tokens) = entry.total_tokens {
            let _ = write!(text, "\nTokens in all: {tokens}");
        }
        Ok(text)
    }
}
