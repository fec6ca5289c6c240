//! What resets and deletions take with them, and what they leave.

use tidings_protocol::session_api::{AgentRow, WatchFilter};

use super::*;
use crate::state::{Conversation, NewCronRun};

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";

impl Fixture {
    /// The watches, as watcher and target.
    async fn pairs(&self) -> Vec<(String, String)> {
        let watches = self.state.watches(WatchFilter::default()).await;
        let watches = watches.expect("watches").watches;
        let pair = |w: &tidings_protocol::session_api::Watch| {
            (w.watcher.to_string(), w.target.to_string())
        };
        watches.iter().map(pair).collect()
    }
}

fn pair(watcher: &str, target: &str) -> (String, String) {
    (watcher.to_owned(), target.to_owned())
}

#[tokio::test]
async fn a_reset_ends_the_watches_of_the_session_and_no_watch_on_it() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.watch(W, T).await;
    fixture.watch("agent:ops:main", W).await;
    fixture.queue(W, Some(T), "still waits").await;
    let before = fixture.state.ensure_session(address(W)).await.expect("w");

    let reset = fixture
        .state
        .reset_session(address(W))
        .await
        .expect("reset");

    assert_eq!(reset.watches_ended, 1);
    assert_ne!(reset.session_id, Some(before.session_id));
    assert_eq!(fixture.pairs().await, [pair("agent:ops:main", W)]);
    let begun = fixture.state.turn_begin(address(W)).await.expect("a turn");
    assert_eq!(begun.messages.len(), 1);
    assert_eq!(begun.notices, []);
}

#[tokio::test]
async fn a_reset_of_an_adopted_session_keeps_its_thread() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopted = fixture.adopt("t1").await.session_key;
    fixture.change(T).await;
    fixture.watch(adopted.as_str(), T).await;
    let reset = fixture.state.reset_session(address(adopted.as_str())).await;
    let reset = reset.expect("reset");
    assert_eq!(reset.session_id.as_deref(), Some("t1"));
    assert_eq!(reset.watches_ended, 1);
    assert_eq!(fixture.number("SELECT count(*) FROM links"), 1);
}

#[tokio::test]
async fn a_reset_of_a_bare_key_is_of_one_agent_and_of_nobodys_watches() {
    let fixture = Fixture::new();
    let of = |name: &str| SessionAddress::resolve(key("global"), &agent(name)).expect("address");
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        ids.push(
            fixture
                .state
                .ensure_session(of(name))
                .await
                .expect("made")
                .session_id,
        );
    }
    let reset = fixture.state.reset_session(of("a")).await.expect("reset");
    assert_eq!(reset.watches_ended, 0);
    assert_ne!(reset.session_id.as_ref(), Some(&ids[0]));
    let other = fixture.state.ensure_session(of("b")).await.expect("made");
    assert_eq!(other.session_id, ids[1]);
    let nobody = fixture.state.reset_session(address("agent:x:y")).await;
    assert_eq!(nobody.expect("an answer").session_id, None);
}

#[tokio::test]
async fn an_agent_goes_with_all_that_is_its_own_and_nothing_of_another() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopted = fixture.adopt("t1").await.session_key;
    for n in 0..40 {
        let session = format!("agent:ops:s{n}");
        fixture.change(&session).await;
        fixture.queue(&session, Some(W), "m").await;
        fixture.watch(&session, W).await;
    }
    // A parent that only spawned is no session and holds a cursor.
    let spawned = NewSignal {
        parent: Some(key("agent:ops:only-a-parent")),
        ..NewSignal::new(address(W), SignalKind::ChildSpawned, Actor::System)
    };
    fixture.state.record(spawned).await.expect("recorded");
    fixture.watch("agent:ops2:main", W).await;
    fixture.watch(W, "agent:ops:s1").await;
    for job in ["agent:ops:cron:nightly", "agent:main:cron:nightly"] {
        let run = NewCronRun {
            job_id: "nightly".to_owned(),
            session: address(job),
            conversation: Conversation::Standing,
            keep_runs: 9,
        };
        fixture.state.begin_cron_run(run).await.expect("begun");
    }

    assert_eq!(fixture.state.delete_agent(agent("ops")).await, Ok(41));

    let left = fixture.state.agent_rows().await.expect("agents");
    let names: Vec<_> = left.iter().map(|row| row.agent_id.as_str()).collect();
    assert_eq!(names, ["main", "ops2"]);
    assert_eq!(fixture.pairs().await, [pair("agent:ops2:main", W)]);
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 0);
    let runs = "SELECT count(*) FROM cron_runs WHERE agent_id = ";
    let runs_of = |agent: &str| fixture.number(&format!("{runs}'{agent}'"));
    assert_eq!((runs_of("ops"), runs_of("main")), (0, 1));
    let heads = "SELECT count(*) FROM session_state_heads
                 WHERE agent_id = 'ops' AND pruned_sequence = last_sequence";
    assert_eq!(fixture.number(heads), 40, "heads stay");
    assert!(
        fixture
            .state
            .session_exists(address(adopted.as_str()))
            .await
            .expect("read")
    );
    assert_eq!(fixture.state.delete_agent(agent("ops")).await, Ok(0));
    let acts = "SELECT count(*) FROM audit_log
                WHERE actor = 'operator' AND action = 'agents.delete' AND target = 'ops'";
    assert_eq!(fixture.number(acts), 1, "one act, however many sessions");
}

#[tokio::test]
async fn a_deleted_session_is_one_line_in_the_record_of_acts_and_one_that_never_was_is_none() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    assert_eq!(fixture.state.delete_session(address(T)).await, Ok(true));
    assert_eq!(fixture.state.delete_session(address(T)).await, Ok(false));
    let acts = "SELECT count(*) FROM audit_log
                WHERE action = 'sessions.delete' AND target = 'agent:main:t'";
    assert_eq!(fixture.number(acts), 1);
}

#[tokio::test]
async fn agents_are_listed_with_how_much_they_have() {
    let fixture = Fixture::new();
    assert_eq!(fixture.state.agent_rows().await, Ok(Vec::new()));
    fixture
        .state
        .ensure_session(address("agent:b:x"))
        .await
        .expect("made");
    fixture.clock.pass(3);
    fixture
        .state
        .ensure_session(address("agent:b:y"))
        .await
        .expect("made");
    fixture.change("agent:a:only-events").await;
    let row = |agent_id: &str, sessions, updated_at| AgentRow {
        agent_id: agent_id.to_owned(),
        sessions,
        updated_at,
    };
    assert_eq!(
        fixture.state.agent_rows().await,
        Ok(vec![row("a", 1, None), row("b", 2, Some(START + 3))])
    );
}
