//! Goals: in the entry, and in the log only that they changed.

use tidings_protocol::session_api::GoalChanged;

use super::*;
use crate::sessions::merge::{HandEdit, Known, digest_of};
use crate::state::{Entry, ForeignFile, GoalChange, MAX_GOAL_BYTES, StateError};

const W: &str = "agent:main:w";
const S: &str = "agent:main:s";

fn change(goal: Option<&str>, actor: Actor) -> GoalChange {
    GoalChange {
        session: address(S),
        goal: goal.map(str::to_owned),
        actor,
    }
}

impl Fixture {
    async fn goal(&self, goal: Option<&str>, actor: Actor) -> GoalChanged {
        let changed = self.state.change_goal(change(goal, actor)).await;
        changed.expect("an answer")
    }
}

#[tokio::test]
async fn a_goal_is_created_updated_and_cleared_and_the_log_never_says_what_it_is() {
    let fixture = Fixture::new();
    fixture.state.ensure_session(address(S)).await.expect("s");
    fixture.watch(W, S).await;
    let steps: [(Option<&str>, Option<&str>); 6] = [
        (None, None),
        (Some(" Ship the canary.\n"), Some("goal created")),
        (Some("Ship the canary."), None),
        (Some("Ship the canary twice."), Some("goal updated")),
        (None, Some("goal cleared")),
        (None, None),
    ];
    let mut expected = Vec::new();
    for (goal, line) in steps {
        let changed = fixture.goal(goal, Actor::Human).await;
        assert_eq!(changed.changed, line.is_some(), "{goal:?}");
        assert_eq!(changed.sequence.is_some(), line.is_some());
        expected.extend(line.map(|line| (SignalKind::GoalChanged, line.to_owned())));
        let stored = fixture.entry(S).await["goal"].as_str().map(str::to_owned);
        assert_eq!(stored.as_deref(), goal.map(str::trim));
    }
    assert_eq!(fixture.log(S).await, expected);
    let canary = "SELECT count(*) FROM session_state_events
                  WHERE summary LIKE '%canary%' OR payload LIKE '%canary%'";
    assert_eq!(fixture.number(canary), 0);
    assert_eq!(fixture.pending(W).await.len(), 1);
}

#[tokio::test]
async fn whoever_changes_a_goal_is_not_told_of_it_and_others_are() {
    let fixture = Fixture::new();
    fixture.state.ensure_session(address(S)).await.expect("s");
    fixture.watch(W, S).await;
    fixture.watch("agent:ops:main", S).await;
    fixture.goal(Some("a"), Actor::Agent(key(W))).await;
    assert_eq!(fixture.pending(W).await, []);
    assert_eq!(fixture.pending("agent:ops:main").await.len(), 1);
    let actor = "SELECT count(*) FROM session_state_events
                 WHERE actor_type = 'agent' AND actor_id = 'agent:main:w'";
    assert_eq!(fixture.number(actor), 1);
}

#[tokio::test]
async fn only_a_session_itself_is_made_by_its_goal() {
    let fixture = Fixture::new();
    for actor in [Actor::Human, Actor::Agent(key(W))] {
        let refused = fixture.state.change_goal(change(Some("a"), actor)).await;
        assert_eq!(refused, Err(StateError::UnknownSession(S.to_owned())));
    }
    assert!(fixture.goal(Some("a"), Actor::Agent(key(S))).await.changed);
    assert_eq!(fixture.entry(S).await["goal"], "a");
}

#[tokio::test]
async fn a_goal_says_something_and_has_a_limit() {
    let fixture = Fixture::new();
    fixture.state.ensure_session(address(S)).await.expect("s");
    let largest = "g".repeat(MAX_GOAL_BYTES);
    assert!(fixture.goal(Some(&largest), Actor::Human).await.changed);
    for bad in ["", " \n", &(largest + "canary")] {
        let refused = fixture.state.change_goal(change(Some(bad), Actor::Human));
        match refused.await {
            Err(StateError::Invalid(reason)) => assert!(!reason.contains("canary")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_goal_that_was_edited_by_hand_is_told_as_a_humans() {
    let fixture = Fixture::new();
    fixture.state.ensure_session(address(S)).await.expect("s");
    fixture.watch(W, S).await;
    for (goal, line) in [
        (Some("a"), Some("goal created")),
        (Some("b"), Some("goal updated")),
        (Some("b"), None),
        (None, Some("goal cleared")),
    ] {
        let shown = fixture.state.session_entry(address(S)).await.expect("s");
        let shown: Entry = serde_json::from_str(&shown.entry).expect("an entry");
        let wanted = Entry {
            goal: goal.map(str::to_owned),
            label: Some("edited".to_owned()),
            ..shown.clone()
        };
        let known = Known {
            last: Some(digest_of(&shown)),
            before: None,
        };
        let edit = HandEdit {
            session: address(S),
            wanted: Some(wanted),
            known,
        };
        let foreign = ForeignFile {
            agent: agent("main"),
            file: [7; 32],
            differences: Vec::new(),
            edits: vec![edit],
        };
        let before = fixture.log(S).await.len();
        let merged = fixture.state.merge_hand_edits(foreign).await;
        merged.expect("merged");
        let told = fixture.log(S).await.split_off(before);
        let expected = line.map(|line| (SignalKind::GoalChanged, line.to_owned()));
        assert_eq!(told, Vec::from_iter(expected), "{goal:?}");
    }
    let humans = "SELECT count(*) FROM session_state_events WHERE actor_type = 'human'";
    assert_eq!(fixture.number(humans), 3);
}
