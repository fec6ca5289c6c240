//! What a hook of an agent program means to its session. Pure.

use tidings_protocol::session_api::{HookEvent, HookMoment};

/// One thing to do for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookStep {
    /// The program was handed what the lease is over: from now on it can be confirmed.
    Show,
    /// The program shows that it has read what it was handed: the lease is confirmed.
    Confirm,
    /// What was handed out was not shown to be read: the lease is given back.
    Release,
    /// A turn begins and takes what is available.
    Begin,
    /// A turn begins, and there is nothing for it to take.
    Mark,
    /// A turn begins if there are notices for it to take.
    TakeNotices,
    /// The turn has ended.
    EndTurn,
    /// The conversation was left behind: it watches nothing any more.
    EndWatches,
    /// A sub-agent was spawned.
    SpawnChild,
    /// A sub-agent's run ended well.
    CompleteChild,
    /// A sub-agent's run failed.
    FailChild,
    /// The session's own run failed: a signal where it has a parent.
    Fail,
    /// The history was compacted.
    Compact,
}

/// What a session has that a hook may act on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// A hook's lease that can be confirmed or given back.
    pub leased: bool,
    /// Something for a turn to take.
    pub available: bool,
    /// A turn that runs.
    pub running: bool,
}

/// What is to be done for a hook, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookWork {
    /// Nothing.
    Nothing,
    /// The hook's answer waits for it.
    Before(Vec<HookStep>),
    /// The hook is answered at once: nothing it says depends on it.
    Behind(Vec<HookStep>),
}

/// Everything that a hook's moment asks for, in order. What happens inside a sub-agent
/// confirms nothing; that one begins shows that the prompt has been read.
fn steps(event: &HookEvent) -> &'static [HookStep] {
    use HookStep::{
        Begin, Compact, CompleteChild, Confirm, EndTurn, EndWatches, Fail, FailChild, Release,
        Show, SpawnChild, TakeNotices,
    };
    match (event.moment, event.agent_id.is_some()) {
        (HookMoment::SubagentStart, true) => &[Confirm, SpawnChild],
        (HookMoment::SubagentStop, true) => &[CompleteChild],
        (HookMoment::StopFailure, true) => &[FailChild],
        (HookMoment::SessionStart, false) => &[Release],
        (HookMoment::SessionCleared, false) => &[Release, EndTurn, EndWatches],
        (HookMoment::UserPromptSubmit, false) => &[Release, Begin],
        (HookMoment::PreToolUse | HookMoment::PostToolUse | HookMoment::SubagentStart, false) => {
            &[Confirm]
        }
        (HookMoment::Stop, false) => &[Confirm, EndTurn],
        (HookMoment::StopFailure, false) => &[Confirm, Fail, EndTurn],
        (HookMoment::PostCompact, false) => &[Compact],
        (HookMoment::AnswerShown, false) => &[Show],
        (HookMoment::Woken, false) => &[TakeNotices],
        _ => &[],
    }
}

/// What is to be done for a hook in a session that stands so.
#[must_use]
pub fn work(event: &HookEvent, standing: Standing) -> HookWork {
    let due: Vec<HookStep> = steps(event)
        .iter()
        .filter_map(|step| match step {
            HookStep::Show | HookStep::Confirm | HookStep::Release => {
                standing.leased.then_some(*step)
            }
            HookStep::EndTurn => standing.running.then_some(*step),
            HookStep::TakeNotices => standing.available.then_some(*step),
            HookStep::Begin if !standing.leased && !standing.available => Some(HookStep::Mark),
            step => Some(*step),
        })
        .collect();
    match due[..] {
        [] => HookWork::Nothing,
        [HookStep::Mark | HookStep::EndTurn] => HookWork::Behind(due),
        _ => HookWork::Before(due),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [HookMoment; 12] = [
        HookMoment::SessionStart,
        HookMoment::SessionCleared,
        HookMoment::UserPromptSubmit,
        HookMoment::PreToolUse,
        HookMoment::PostToolUse,
        HookMoment::Stop,
        HookMoment::StopFailure,
        HookMoment::SubagentStart,
        HookMoment::SubagentStop,
        HookMoment::PostCompact,
        HookMoment::AnswerShown,
        HookMoment::Woken,
    ];
    const BUSY: Standing = Standing {
        leased: true,
        available: true,
        running: true,
    };

    fn in_subagent(moment: HookMoment) -> HookEvent {
        HookEvent {
            agent_id: Some("a1".to_owned()),
            ..HookEvent::new(moment)
        }
    }

    fn confirms(work: &HookWork) -> bool {
        matches!(work, HookWork::Before(steps) if steps.contains(&HookStep::Confirm))
    }

    #[test]
    fn a_lease_is_confirmed_by_tools_ends_and_the_start_of_a_sub_agent_and_by_nothing_else() {
        let own: Vec<HookMoment> = ALL
            .into_iter()
            .filter(|moment| confirms(&work(&HookEvent::new(*moment), BUSY)))
            .collect();
        assert_eq!(
            own,
            [
                HookMoment::PreToolUse,
                HookMoment::PostToolUse,
                HookMoment::Stop,
                HookMoment::StopFailure,
                HookMoment::SubagentStart,
            ]
        );
        let inside: Vec<HookMoment> = ALL
            .into_iter()
            .filter(|moment| confirms(&work(&in_subagent(*moment), BUSY)))
            .collect();
        assert_eq!(inside, [HookMoment::SubagentStart]);
    }

    #[test]
    fn a_session_with_nothing_to_take_or_confirm_is_not_kept_waiting() {
        let idle = Standing::default();
        let running = Standing {
            running: true,
            ..idle
        };
        for (moment, standing, expected) in [
            (HookMoment::PreToolUse, running, HookWork::Nothing),
            (HookMoment::PostToolUse, idle, HookWork::Nothing),
            (HookMoment::SessionStart, idle, HookWork::Nothing),
            (HookMoment::Stop, idle, HookWork::Nothing),
            (HookMoment::Woken, running, HookWork::Nothing),
            (
                HookMoment::Woken,
                BUSY,
                HookWork::Before(vec![HookStep::TakeNotices]),
            ),
            (
                HookMoment::Stop,
                running,
                HookWork::Behind(vec![HookStep::EndTurn]),
            ),
            (
                HookMoment::UserPromptSubmit,
                idle,
                HookWork::Behind(vec![HookStep::Mark]),
            ),
            (
                HookMoment::UserPromptSubmit,
                BUSY,
                HookWork::Before(vec![HookStep::Release, HookStep::Begin]),
            ),
            (
                HookMoment::Stop,
                BUSY,
                HookWork::Before(vec![HookStep::Confirm, HookStep::EndTurn]),
            ),
        ] {
            let event = HookEvent::new(moment);
            assert_eq!(work(&event, standing), expected, "{moment:?}");
        }
    }

    #[test]
    fn what_begins_and_ends_inside_a_sub_agent_is_about_the_sub_agent() {
        for (moment, expected) in [
            (
                HookMoment::SubagentStart,
                HookWork::Before(vec![HookStep::SpawnChild]),
            ),
            (
                HookMoment::SubagentStop,
                HookWork::Before(vec![HookStep::CompleteChild]),
            ),
            (
                HookMoment::StopFailure,
                HookWork::Before(vec![HookStep::FailChild]),
            ),
            (HookMoment::Stop, HookWork::Nothing),
            (HookMoment::UserPromptSubmit, HookWork::Nothing),
            (HookMoment::PostCompact, HookWork::Nothing),
        ] {
            let found = work(&in_subagent(moment), Standing::default());
            assert_eq!(found, expected, "{moment:?}");
        }
    }
}
