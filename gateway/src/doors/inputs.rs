//! Requests that say what happened in a session that runs elsewhere.

use tidings_protocol::session_api::{
    ApiError, CompactionRecorded, CompactionTrigger, GoalChanged, GoalClear, GoalSet,
    InputProvenance, MessageRecorded, Recorded,
};
use tidings_protocol::{Actor, SessionKey};

use super::Service;
use super::origin::named;
use super::store::Coming;
use crate::awareness::actor::Provenance;
use crate::state::{Compaction, GoalChange, NewInput};

impl Service {
    pub(super) async fn message_recorded(
        &self,
        message: MessageRecorded,
    ) -> Result<Recorded, ApiError> {
        let input = NewInput {
            session: self.address(named(message.session_key)?, message.agent.as_deref())?,
            provenance: match message.provenance {
                InputProvenance::ExternalUser => Provenance::External,
                InputProvenance::InterSession { sender } => Provenance::InterSession(sender),
                InputProvenance::InternalSystem => Provenance::InternalSystem,
            },
            channel: message.channel,
            occurred_at: message.occurred_at,
            dedupe_key: message.dedupe_key,
        };
        if input.provenance != Provenance::InternalSystem {
            let coming = Coming {
                dedupe_key: input.dedupe_key.as_deref(),
                ..Coming::default()
            };
            self.before_message(&input.session, coming).await;
        }
        Ok(self.nodes.state.record_input(input).await?)
    }

    pub(super) async fn compaction_recorded(
        &self,
        compaction: CompactionRecorded,
    ) -> Result<Recorded, ApiError> {
        let compaction = Compaction {
            session: self.address(named(compaction.session_key)?, compaction.agent.as_deref())?,
            automatic: compaction.trigger == CompactionTrigger::Automatic,
            dedupe_key: compaction.dedupe_key,
            left: None,
        };
        Ok(self.nodes.state.record_compaction(compaction).await?)
    }

    pub(super) async fn goal_set(&self, set: GoalSet) -> Result<GoalChanged, ApiError> {
        let change = GoalChange {
            session: self.address(set.session_key, set.agent.as_deref())?,
            goal: Some(set.goal.0),
            actor: actor(set.caller),
        };
        Ok(self.nodes.state.change_goal(change).await?)
    }

    pub(super) async fn goal_clear(&self, clear: GoalClear) -> Result<GoalChanged, ApiError> {
        let change = GoalChange {
            session: self.address(clear.session_key, clear.agent.as_deref())?,
            goal: None,
            actor: actor(clear.caller),
        };
        Ok(self.nodes.state.change_goal(change).await?)
    }
}

/// Who does what a request asks for: the session that asks, else the operator.
fn actor(caller: Option<SessionKey>) -> Actor {
    caller.map_or(Actor::Human, Actor::Agent)
}
