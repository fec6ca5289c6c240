//! What hooks take, confirm, give back and record.

use std::future::poll_fn;
use std::task::Poll;

use tidings_protocol::session_api::{CompactionTrigger, HookEvent, HookMoment};

use super::*;
use crate::awareness::hook::{HookWork, work};
use crate::state::{Hooked, LEASE_MS, TurnBegun};

const T: &str = "agent:main:t";
const W: &str = "agent:main:adopted:claude:local:w";
const CHILD: &str = "agent:main:subagent:a1";

/// A conversation that watches a session, which changed once since.
async fn told() -> Fixture {
    let fixture = Fixture::new();
    fixture.local_node().await;
    fixture.adopt("w").await;
    fixture.change(T).await;
    fixture.watch(W, T).await;
    fixture.change(T).await;
    fixture
}

fn event(moment: HookMoment) -> HookEvent {
    HookEvent::new(moment)
}

fn of_prompt(moment: HookMoment, prompt: &str) -> HookEvent {
    HookEvent {
        prompt_id: Some(prompt.to_owned()),
        ..event(moment)
    }
}

fn of_subagent(moment: HookMoment) -> HookEvent {
    HookEvent {
        agent_id: Some("a1".to_owned()),
        agent_type: Some("Explore".to_owned()),
        ..event(moment)
    }
}

impl Fixture {
    /// A hook in the conversation that hands its program what the turn takes, which it answers.
    async fn hook(&self, event: HookEvent) -> TurnBegun {
        let taken = self.unread_hook(event).await;
        if let Some(token) = taken.token {
            self.show(&token.to_string()).await;
        }
        taken
    }

    /// A hook has handed its program what the lease of this token is over.
    async fn show(&self, token: &str) {
        let shown = HookEvent {
            lease: Some(token.to_owned()),
            ..event(HookMoment::AnswerShown)
        };
        self.unread_hook(shown).await;
    }

    /// A hook whose answer has not reached its program, or not yet: what its turn takes.
    async fn unread_hook(&self, event: HookEvent) -> TurnBegun {
        let thread = (Catalog::Claude, ThreadId::parse("w").expect("a thread"));
        let found = self.state.hook_standing(Host::GatewayLocal, thread).await;
        let found = found.expect("a look");
        let (HookWork::Before(steps) | HookWork::Behind(steps)) = work(&event, found.standing)
        else {
            return TurnBegun::default();
        };
        let hooked = Hooked {
            speaker: found.sessions[0].clone(),
            sessions: found.sessions,
            event,
            steps,
        };
        self.state.hook(hooked).await.expect("done")
    }

    fn running(&self) -> i64 {
        self.number("SELECT count(*) FROM running_turns")
    }
}

#[tokio::test]
async fn what_a_prompts_hook_took_is_confirmed_by_the_first_that_shows_it_was_read() {
    for moment in [
        HookMoment::PreToolUse,
        HookMoment::PostToolUse,
        HookMoment::Stop,
        HookMoment::StopFailure,
        HookMoment::SubagentStart,
    ] {
        let fixture = told().await;
        let taken = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
        assert_eq!(sequences(&taken.notices), [2]);
        assert_eq!(fixture.pending(W).await, taken.notices);
        fixture.hook(event(moment)).await;
        assert_eq!(fixture.pending(W).await, [], "{moment:?}");
        let next = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
        assert_eq!(next, TurnBegun::default(), "{moment:?}");
    }
}

#[tokio::test]
async fn what_came_too_late_for_its_program_is_confirmed_by_nothing_and_told_again() {
    let fixture = told().await;
    fixture.queue(W, Some(T), "Please rebase.").await;
    let late = fixture
        .unread_hook(event(HookMoment::UserPromptSubmit))
        .await;
    for moment in [
        HookMoment::PreToolUse,
        HookMoment::PostToolUse,
        HookMoment::Stop,
    ] {
        fixture.hook(event(moment)).await;
        assert_eq!(fixture.pending(W).await, late.notices, "{moment:?}");
    }
    let next = fixture
        .unread_hook(event(HookMoment::UserPromptSubmit))
        .await;
    assert_eq!(
        (&next.notices, &next.messages),
        (&late.notices, &late.messages)
    );
    // What an earlier hook says to have shown is not what this one took.
    for token in ["", "zz", &late.token.expect("a token").to_string()] {
        fixture.show(token).await;
        fixture.hook(event(HookMoment::PreToolUse)).await;
        assert_eq!(fixture.pending(W).await, late.notices, "{token}");
    }
    fixture
        .show(&next.token.expect("a token").to_string())
        .await;
    fixture.hook(event(HookMoment::PreToolUse)).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn a_prompt_that_nothing_followed_gives_the_same_bytes_to_the_next_and_wakes_nobody() {
    let fixture = told().await;
    fixture.queue(W, Some(T), "Please rebase.").await;
    let first = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    assert_eq!((first.notices.len(), first.messages.len()), (1, 1));
    let mut effects = fixture.state.subscribe();
    let second = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    assert_eq!(woken(&mut effects), []);
    assert_eq!(second.notices, first.notices);
    assert_eq!(second.messages, first.messages);
    // A conversation that is taken up again has lost what it was handed.
    fixture.hook(event(HookMoment::SessionStart)).await;
    assert_eq!(woken(&mut effects).len(), 1);
    fixture.hook(event(HookMoment::PreToolUse)).await;
    assert_eq!(
        fixture.pending(W).await,
        first.notices,
        "no more to confirm"
    );
    let third = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    assert_eq!(third.notices, first.notices);
}

#[tokio::test]
async fn of_sixteen_hooks_of_one_prompt_at_once_exactly_one_is_handed_what_there_is() {
    let fixture = told().await;
    fixture.queue(W, Some(T), "Please rebase.").await;
    let submit = || fixture.unread_hook(of_prompt(HookMoment::UserPromptSubmit, "p1"));
    let taken = at_once((0..16).map(|_| submit())).await;
    let handed: Vec<&TurnBegun> = taken.iter().filter(|one| one.token.is_some()).collect();
    assert_eq!(handed.len(), 1);
    assert_eq!((handed[0].notices.len(), handed[0].messages.len()), (1, 1));
    let empty = taken.iter().filter(|one| **one == TurnBegun::default());
    assert_eq!(empty.count(), 15);
    fixture
        .show(&handed[0].token.expect("a token").to_string())
        .await;
    fixture.hook(of_prompt(HookMoment::PreToolUse, "p1")).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn of_sixteen_prompts_at_once_the_last_one_holds_what_there_is_and_no_other() {
    let fixture = told().await;
    let prompts: Vec<String> = (0..16).map(|n| format!("p{n}")).collect::<Vec<_>>();
    let submit =
        |prompt: &String| fixture.unread_hook(of_prompt(HookMoment::UserPromptSubmit, prompt));
    let taken = at_once(prompts.iter().map(submit)).await;
    assert!(taken.iter().any(|one| one.token.is_some()));
    let open = "SELECT count(*) FROM leases WHERE closed_at IS NULL";
    assert_eq!(fixture.number(open), 1);
    for (prompt, one) in prompts.iter().zip(&taken) {
        if let Some(token) = one.token {
            fixture.show(&token.to_string()).await;
        }
        assert_eq!(fixture.pending(W).await.len(), 1, "{prompt}");
    }
    for prompt in &prompts {
        fixture
            .hook(of_prompt(HookMoment::PreToolUse, prompt))
            .await;
    }
    assert_eq!(fixture.pending(W).await, [], "the one that holds it");
}

#[tokio::test]
async fn a_hook_that_wakes_takes_notices_and_no_messages_and_is_confirmed_by_any_prompt() {
    let fixture = told().await;
    fixture.queue(W, Some(T), "Please rebase.").await;
    let woken = fixture.hook(event(HookMoment::Woken)).await;
    assert_eq!(sequences(&woken.notices), [2]);
    assert_eq!(woken.messages, []);
    assert_eq!(fixture.running(), 1);
    let again = fixture.hook(event(HookMoment::Woken)).await;
    assert_eq!(again, TurnBegun::default(), "somebody has it");
    fixture.hook(of_prompt(HookMoment::PostToolUse, "p1")).await;
    assert_eq!(fixture.pending(W).await, []);
    let woken = fixture.hook(event(HookMoment::Woken)).await;
    assert_eq!(woken, TurnBegun::default(), "a message wakes nobody");
    let next = fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    assert_eq!((next.notices.len(), next.messages.len()), (0, 1));
}

/// All of them at once.
async fn at_once<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, done) in &mut running {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if running.iter().all(|(_, done)| done.is_some()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}

#[tokio::test]
async fn a_tool_of_another_prompt_confirms_nothing_and_one_that_names_none_does() {
    let fixture = told().await;
    fixture
        .hook(of_prompt(HookMoment::UserPromptSubmit, "p1"))
        .await;
    fixture.hook(of_prompt(HookMoment::PreToolUse, "p0")).await;
    fixture.hook(of_subagent(HookMoment::PreToolUse)).await;
    assert_eq!(fixture.pending(W).await.len(), 1);
    fixture.hook(of_prompt(HookMoment::PostToolUse, "p1")).await;
    assert_eq!(fixture.pending(W).await, []);

    fixture.change(T).await;
    fixture
        .hook(of_prompt(HookMoment::UserPromptSubmit, "p2"))
        .await;
    fixture.hook(event(HookMoment::PreToolUse)).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn a_late_tool_confirms_a_lease_that_ran_out_and_was_not_handed_out_again() {
    let fixture = told().await;
    fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    fixture.clock.pass(LEASE_MS);
    fixture.state.expire_leases().await.expect("expired");
    fixture.hook(event(HookMoment::PreToolUse)).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn hooks_leave_the_lease_of_a_turn_that_confirms_by_its_token_alone() {
    let fixture = told().await;
    let begun = fixture.state.turn_begin(address(W)).await.expect("a turn");
    for moment in [
        HookMoment::SessionStart,
        HookMoment::PreToolUse,
        HookMoment::UserPromptSubmit,
    ] {
        let taken = fixture.hook(event(moment)).await;
        assert_eq!(taken, TurnBegun::default(), "{moment:?}");
    }
    assert_eq!(fixture.pending(W).await, begun.notices);
    let token = begun.token.expect("a lease");
    let settled = fixture.state.turn_confirm(token).await.expect("confirmed");
    assert_eq!(settled.notices, 1);
}

#[tokio::test]
async fn a_turn_runs_from_its_prompt_to_its_end() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    fixture.adopt("w").await;
    for end in [HookMoment::Stop, HookMoment::StopFailure] {
        fixture.hook(event(HookMoment::UserPromptSubmit)).await;
        fixture.hook(event(HookMoment::PostToolUse)).await;
        assert_eq!(fixture.running(), 1);
        fixture.hook(event(end)).await;
        assert_eq!(fixture.running(), 0, "{end:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_was_cleared_watches_nothing_and_runs_no_turn() {
    let fixture = told().await;
    fixture.hook(event(HookMoment::UserPromptSubmit)).await;
    fixture.hook(event(HookMoment::SessionCleared)).await;
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 0);
    assert_eq!(fixture.running(), 0);
    fixture.change(T).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn a_sub_agent_is_a_child_whose_run_ends_once() {
    let fixture = told().await;
    fixture.hook(of_subagent(HookMoment::SubagentStop)).await;
    assert_eq!(fixture.log(CHILD).await, [], "nobody saw it begin");
    for moment in [
        HookMoment::SubagentStart,
        HookMoment::SubagentStart,
        HookMoment::SubagentStop,
        HookMoment::SubagentStop,
        HookMoment::StopFailure,
    ] {
        fixture.hook(of_subagent(moment)).await;
    }
    assert_eq!(
        fixture.log(CHILD).await,
        [
            (SignalKind::ChildSpawned, "child session spawned".to_owned()),
            (SignalKind::RunCompleted, "child run completed".to_owned()),
        ]
    );
    let entry = fixture.entry(CHILD).await;
    assert_eq!(entry["parentSessionKey"], W);
    assert_eq!(entry["label"], "Explore");
    assert_eq!(
        fixture.number("SELECT count(*) FROM cursors WHERE provenance = 'spawn'"),
        1
    );
    // Its parent gets the result from the program, not from here.
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 0);
}

#[tokio::test]
async fn a_failed_turn_is_a_failed_run_only_where_somebody_spawned_the_session() {
    let fixture = told().await;
    fixture.hook(event(HookMoment::StopFailure)).await;
    let failed = (SignalKind::RunFailed, "child run failed".to_owned());
    assert!(!fixture.log(W).await.contains(&failed));
    let parent = format!("UPDATE entries SET parent_session_key = '{T}'");
    fixture.outside().execute(&parent, []).expect("a parent");
    for _ in 0..2 {
        let event = of_prompt(HookMoment::StopFailure, "p1");
        fixture.hook(event).await;
    }
    let log = fixture.log(W).await;
    assert_eq!(log.iter().filter(|line| **line == failed).count(), 1);
}

#[tokio::test]
async fn a_compaction_is_recorded_and_counted_where_nobody_asked_for_it() {
    let fixture = told().await;
    for trigger in [CompactionTrigger::Automatic, CompactionTrigger::Manual] {
        let compaction = HookEvent {
            trigger,
            ..event(HookMoment::PostCompact)
        };
        fixture.hook(compaction).await;
    }
    let log = fixture.log(W).await;
    let compacted = (SignalKind::Compacted, "session compacted".to_owned());
    assert_eq!(log.iter().filter(|line| **line == compacted).count(), 2);
    assert_eq!(fixture.entry(W).await["compactionCount"], 1);
}
