//! Requests that end a conversation, a session, or an agent.

use tidings_protocol::session_api::{
    AgentDeleted, AgentRef, Agents, ApiError, ErrorType, SessionDeleted, SessionRef,
    SessionResetDone, SpeakerRef,
};

use super::Service;
use crate::state::StateError;

impl Service {
    pub(super) async fn session_reset(
        &self,
        session: SpeakerRef,
    ) -> Result<SessionResetDone, ApiError> {
        let address = self.speaker(session)?;
        let reset = self.nodes.state.reset_session(address.clone()).await?;
        self.put_away().await;
        let unknown = || StateError::UnknownSession(address.to_string());
        Ok(SessionResetDone {
            session_key: address.key().clone(),
            session_id: reset.session_id.ok_or_else(unknown)?,
            watches_ended: reset.watches_ended,
        })
    }

    pub(super) async fn session_delete(
        &self,
        session: SessionRef,
    ) -> Result<SessionDeleted, ApiError> {
        let address = self.address(session.session_key, session.agent.as_deref())?;
        if !self.nodes.state.delete_session(address.clone()).await? {
            return Err(StateError::UnknownSession(address.to_string()).into());
        }
        self.put_away().await;
        Ok(SessionDeleted {
            session_key: address.key().clone(),
            agent_id: address.agent().to_string(),
        })
    }

    pub(super) async fn agents_list(&self) -> Result<Agents, ApiError> {
        let agents = self.nodes.state.agent_rows().await?;
        Ok(Agents { agents })
    }

    pub(super) async fn agents_delete(&self, agent: AgentRef) -> Result<AgentDeleted, ApiError> {
        let agent = self.agent(Some(&agent.agent))?;
        let sessions = self.nodes.state.delete_agent(agent.clone()).await?;
        if sessions == 0 {
            return Err(ApiError::new(
                ErrorType::NotFound,
                format!("there is no agent {agent}"),
            ));
        }
        self.stores().agent_leaves(&agent).await?;
        Ok(AgentDeleted {
            agent_id: agent.to_string(),
            sessions,
        })
    }
}
