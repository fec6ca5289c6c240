//! Requests by which one session gives another a message, a task or a result.

use tidings_protocol::session_api::{
    ApiError, ChildRuntime, RunEnded, RunFinished, Sent, SessionsSend, SessionsSpawn, Spawned,
};

use super::Service;
use super::origin::named;
use super::store::Coming;
use crate::state::{FinishedRun, NewChild, NewMessage, RunBy, Watching};

impl Service {
    pub(super) async fn sessions_send(&self, send: SessionsSend) -> Result<Sent, ApiError> {
        let agent = send.agent.as_deref();
        let target = self.address(send.session_key, agent)?;
        self.adopt_named(&target).await?;
        let sender = match send.sender {
            Some(sender) => Some(self.address(sender, agent)?),
            None => None,
        };
        let expected = send.expected_session_id.as_deref();
        let coming = Coming {
            expected,
            // Only a person comes back to what is shown; a session's message is for whatever
            // conversation stands.
            resumed: expected.filter(|_| sender.is_none()),
            dedupe_key: None,
        };
        self.before_message(&target, coming).await;
        let message = NewMessage {
            target: target.clone(),
            sender,
            body: send.message.0,
            watch: match send.watch {
                Some(true) => Watching::FromDispatch,
                Some(false) | None => Watching::Unchanged,
            },
            expected_session_id: send.expected_session_id,
        };
        let dispatched = self.nodes.state.send(message).await?;
        let (watched, reason) = match dispatched.watched {
            Some(watched) => (Some(watched.watched), watched.reason),
            None => (send.watch, None),
        };
        let ran = self.run_now(&target).await;
        Ok(Sent {
            session_key: target.key().clone(),
            message_id: dispatched.message,
            queued: !ran,
            ran,
            watched,
            reason,
        })
    }

    pub(super) async fn sessions_spawn(&self, spawn: SessionsSpawn) -> Result<Spawned, ApiError> {
        let parent = self.address(named(spawn.parent)?, spawn.agent.as_deref())?;
        let agent = match spawn.agent {
            Some(name) => self.agent(Some(&name))?,
            None => parent.agent().clone(),
        };
        let run_by = match spawn.runtime {
            ChildRuntime::Subagent if self.runs_turns() => RunBy::Gateway,
            ChildRuntime::Subagent | ChildRuntime::Acp => RunBy::Anybody,
        };
        let child = NewChild {
            parent,
            agent,
            runtime: spawn.runtime,
            label: spawn.label,
            task: spawn.task.0,
            run_by,
        };
        let spawned = self.nodes.state.spawn(child).await?;
        let ran = run_by == RunBy::Gateway && self.run_child(&spawned.session);
        Ok(Spawned {
            session_key: spawned.session.key().clone(),
            session_id: spawned.session_id,
            message_id: spawned.message,
            sequence: spawned.sequence,
            watched: spawned.watched,
            queued: !ran,
            ran,
        })
    }

    pub(super) async fn run_finished(&self, run: RunFinished) -> Result<RunEnded, ApiError> {
        let run = FinishedRun {
            session: self.address(run.session_key, run.agent.as_deref())?,
            outcome: run.outcome,
            result: run.result.map(|result| result.0),
            run_id: run.run_id,
            caller: run.caller,
        };
        let agent = run.session.agent().to_string();
        let ended = self.nodes.state.finish_run(run).await?;
        if let Some(parent) = &ended.parent {
            // A bare parent is of the child's agent.
            let parent = self.address(parent.clone(), Some(&agent))?;
            self.run_now(&parent).await;
        }
        Ok(ended)
    }
}
