//! What hooks of agent programs say: looked up where nobody adopted the conversation, acted
//! on where somebody did.

use tidings_protocol::session_api::{ApiError, HookAnswer, HookEvent, TurnBegun};

use super::Service;
use super::origin::{Origin, nobody_calls};
use super::turns::taken;
use crate::awareness::hook::{HookWork, work};
use crate::state::Hooked;

impl Service {
    pub(super) async fn hook_event(
        &self,
        origin: &Origin,
        event: HookEvent,
    ) -> Result<HookAnswer, ApiError> {
        let Origin::Program {
            host,
            caller: Some(caller),
        } = origin
        else {
            return Err(nobody_calls());
        };
        let state = &self.nodes.state;
        let thread = (caller.catalog, caller.thread_id.clone());
        let found = state.hook_standing(host.clone(), thread).await?;
        let Some(speaker) = found.sessions.first().cloned() else {
            return Ok(HookAnswer::default());
        };
        let hooked = |steps, event| Hooked {
            speaker,
            sessions: found.sessions,
            event,
            steps,
        };
        let turn = match work(&event, found.standing) {
            HookWork::Nothing => TurnBegun::default(),
            HookWork::Before(steps) => taken(state.hook(hooked(steps, event)).await?),
            HookWork::Behind(steps) => {
                let (state, hooked) = (state.clone(), hooked(steps, event));
                tokio::spawn(async move {
                    if let Err(error) = state.hook(hooked).await {
                        tracing::warn!(%error, "what a hook said was not recorded");
                    }
                });
                TurnBegun::default()
            }
        };
        Ok(HookAnswer {
            adopted: true,
            turn,
        })
    }
}
