//! What a session is given over a real socket: inputs, goals, messages, children, results.

use tidings_node::cli::Connection;
use tidings_protocol::SignalKind;
use tidings_protocol::session_api::{
    ChildRuntime, CompactionRecorded, CompactionTrigger, ErrorType, GoalClear, GoalSet,
    InputProvenance, MessageRecorded, Notices, PrivateText, Recorded, Request, RunEnd, RunEnded,
    RunFinished, Sent, SessionsSend, SessionsSpawn, SignalRow, SignalsQuery, Spawned,
};

use crate::served::{Served, ask, body, key, message, refused, session, speaker, watch};

const WATCHER: &str = "agent:main:main";
const TARGET: &str = "agent:ops:main";

async fn log(door: &mut Connection, of: &str) -> Vec<SignalRow> {
    let query = SignalsQuery {
        session: Some(key(of)),
        ..SignalsQuery::default()
    };
    body!(ask(door, Request::SignalsList(query)).await, Signals).signals
}

async fn lines(door: &mut Connection, of: &str) -> Vec<String> {
    let signals = log(door, of).await;
    signals.into_iter().map(|signal| signal.summary).collect()
}

async fn pending(door: &mut Connection, watcher: &str) -> Notices {
    body!(
        ask(door, Request::NoticesList(session(watcher))).await,
        Notices
    )
}

async fn sent(door: &mut Connection, send: SessionsSend) -> Sent {
    body!(ask(door, Request::SessionsSend(send)).await, SessionsSend)
}

async fn messages(door: &mut Connection, of: &str) -> Vec<(u64, Option<String>, String)> {
    let begun = ask(door, Request::TurnBegin(speaker(of))).await;
    let messages = body!(begun, TurnBegin).messages;
    let parts = messages.into_iter().map(|message| {
        let sender = message.sender.map(|sender| sender.to_string());
        (message.id, sender, message.body)
    });
    parts.collect()
}

fn input(provenance: InputProvenance) -> MessageRecorded {
    MessageRecorded {
        session_key: Some(key(TARGET)),
        agent: None,
        provenance,
        channel: Some("telegram".to_owned()),
        occurred_at: None,
        dedupe_key: None,
    }
}

async fn recorded(door: &mut Connection, input: MessageRecorded) -> Recorded {
    body!(ask(door, Request::MessageRecorded(input)).await, Recorded)
}

#[tokio::test]
async fn only_what_a_human_says_is_a_signal() {
    let served = Served::start();
    let mut door = served.connect().await;
    let first = recorded(&mut door, input(InputProvenance::ExternalUser)).await;
    assert!(
        !first.recorded,
        "it makes the session, which nobody watches"
    );
    watch(&mut door, WATCHER, TARGET).await;
    for provenance in [
        InputProvenance::InterSession {
            sender: key(WATCHER),
        },
        InputProvenance::InternalSystem,
    ] {
        assert!(!recorded(&mut door, input(provenance)).await.recorded);
    }
    let human = MessageRecorded {
        dedupe_key: Some("telegram:7".to_owned()),
        ..input(InputProvenance::ExternalUser)
    };
    let once = recorded(&mut door, human.clone()).await;
    let again = recorded(&mut door, human).await;
    assert!(once.recorded && !again.recorded);
    assert_eq!(once.sequence, again.sequence);
    assert_eq!(
        lines(&mut door, TARGET).await,
        ["human message via telegram"]
    );
    assert_eq!(pending(&mut door, WATCHER).await.notices.len(), 1);
}

#[tokio::test]
async fn a_compaction_is_history_and_no_notice() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    let compaction = Request::CompactionRecorded(CompactionRecorded {
        session_key: Some(key(TARGET)),
        agent: None,
        trigger: CompactionTrigger::Automatic,
        dedupe_key: None,
    });
    let answer = body!(ask(&mut door, compaction).await, Recorded);
    assert!(answer.recorded);
    let log = log(&mut door, TARGET).await;
    assert_eq!(log[0].kind, SignalKind::Compacted);
    assert_eq!(pending(&mut door, WATCHER).await.notices, []);
}

#[tokio::test]
async fn a_goal_is_whoevers_it_is_and_its_text_is_in_no_signal() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    let set = |goal: &str, caller: Option<&str>| {
        Request::GoalSet(GoalSet {
            session_key: key(TARGET),
            agent: None,
            goal: goal.into(),
            caller: caller.map(key),
        })
    };
    let clear = Request::GoalClear(GoalClear {
        session_key: key(TARGET),
        agent: None,
        caller: None,
    });
    let steps = [
        (set("Ship the canary.", None), true),
        (set("Ship the canary.", None), false),
        (set("Ship two canaries.", Some(WATCHER)), true),
        (clear.clone(), true),
        (clear, false),
    ];
    for (request, changed) in steps {
        let answer = body!(ask(&mut door, request.clone()).await, Goal);
        assert_eq!(answer.changed, changed, "{request:?}");
    }
    let log = log(&mut door, TARGET).await;
    let said: Vec<_> = log
        .iter()
        .map(|signal| (signal.summary.as_str(), signal.actor_id.as_deref()))
        .collect();
    assert_eq!(
        said,
        [
            ("goal created", None),
            ("goal updated", Some(WATCHER)),
            ("goal cleared", None),
        ]
    );
    let error = refused(&mut door, set(" ", None)).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest);
}

#[tokio::test]
async fn messages_come_in_order_to_a_session_that_exists() {
    let served = Served::start();
    let mut door = served.connect().await;
    let to_nobody = Request::SessionsSend(message(TARGET, "canary"));
    let error = refused(&mut door, to_nobody).await;
    assert_eq!(error.error_type, ErrorType::NotFound);
    assert!(!error.message.contains("canary"));

    watch(&mut door, WATCHER, TARGET).await;
    let first = sent(&mut door, message(TARGET, "one")).await;
    assert!(first.queued && !first.ran && first.watched.is_none());
    let from = SessionsSend {
        sender: Some(key(WATCHER)),
        ..message(TARGET, "two\n")
    };
    let second = sent(&mut door, from).await;
    assert_eq!(
        messages(&mut door, TARGET).await,
        [
            (first.message_id, None, "one".to_owned()),
            (
                second.message_id,
                Some(WATCHER.to_owned()),
                "two\n".to_owned()
            ),
        ]
    );
    // The operator is a human, the session is not.
    assert_eq!(lines(&mut door, TARGET).await, ["human message via cli"]);
}

#[tokio::test]
async fn a_watch_begins_behind_the_message_and_its_answer_says_whether() {
    let served = Served::start();
    let mut door = served.connect().await;
    ask(&mut door, Request::TurnBegin(speaker(TARGET))).await;
    let from = |sender: Option<&str>, watch| SessionsSend {
        sender: sender.map(key),
        watch,
        ..message(TARGET, "m")
    };
    for (sender, watch, watched, has_reason) in [
        (Some(WATCHER), None, None, false),
        (Some(WATCHER), Some(false), Some(false), false),
        (Some("cron:nightly"), Some(true), Some(false), true),
        (None, Some(true), Some(false), true),
        (Some(WATCHER), Some(true), Some(true), false),
    ] {
        let sent = sent(&mut door, from(sender, watch)).await;
        assert_eq!(sent.watched, watched, "{sender:?} {watch:?}");
        assert_eq!(sent.reason.is_some(), has_reason);
    }
    assert_eq!(pending(&mut door, WATCHER).await.notices, []);
    sent(&mut door, message(TARGET, "a human's")).await;
    assert_eq!(pending(&mut door, WATCHER).await.notices.len(), 1);
}

#[tokio::test]
async fn what_is_sent_is_for_the_conversation_that_was_meant_and_has_a_limit() {
    let served = Served::start();
    let mut door = served.connect().await;
    ask(&mut door, Request::TurnBegin(speaker(TARGET))).await;
    let other = SessionsSend {
        expected_session_id: Some("another".to_owned()),
        ..message(TARGET, "canary")
    };
    let large = message(TARGET, &"canary".repeat(128 * 1024 / 6 + 1));
    for (send, error_type) in [
        (other, ErrorType::Conflict),
        (large, ErrorType::InvalidRequest),
        (message(TARGET, " "), ErrorType::InvalidRequest),
    ] {
        let error = refused(&mut door, Request::SessionsSend(send)).await;
        assert_eq!(error.error_type, error_type, "{error:?}");
        assert!(!error.message.contains("canary"));
    }
    assert_eq!(messages(&mut door, TARGET).await, []);
}

async fn spawn(door: &mut Connection, runtime: ChildRuntime, agent: Option<&str>) -> Spawned {
    let spawn = SessionsSpawn {
        parent: Some(key(WATCHER)),
        agent: agent.map(str::to_owned),
        runtime,
        label: Some("tests".to_owned()),
        task: PrivateText::from("Run the canary tests."),
    };
    body!(
        ask(door, Request::SessionsSpawn(spawn)).await,
        SessionsSpawn
    )
}

async fn finish(door: &mut Connection, child: &Spawned, outcome: RunEnd) -> RunEnded {
    let run = RunFinished {
        session_key: child.session_key.clone(),
        agent: None,
        outcome,
        result: Some("The canaries are green.".into()),
        run_id: None,
        caller: None,
    };
    body!(ask(door, Request::RunFinished(run)).await, RunFinished)
}

#[tokio::test]
async fn a_child_is_spawned_works_and_reports_to_its_parent_once() {
    let served = Served::start();
    let mut door = served.connect().await;
    let child = spawn(&mut door, ChildRuntime::Acp, Some("coder")).await;
    let name = child.session_key.to_string();
    assert!(name.starts_with("agent:coder:acp:"), "{name}");
    assert!(child.queued && !child.ran);
    assert_eq!(
        messages(&mut door, &name).await,
        [(
            child.message_id,
            Some(WATCHER.to_owned()),
            "Run the canary tests.".to_owned()
        )]
    );
    let ended = finish(&mut door, &child, RunEnd::Cancelled).await;
    assert_eq!(finish(&mut door, &child, RunEnd::Cancelled).await, ended);
    assert_eq!(
        lines(&mut door, &name).await,
        ["child session spawned", "child run cancelled"]
    );
    let told = messages(&mut door, WATCHER).await;
    let [(_, sender, body)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(sender.as_deref(), Some(name.as_str()));
    assert!(body.contains("was cancelled") && body.ends_with("The canaries are green."));
    assert_eq!(pending(&mut door, WATCHER).await.notices, []);
}

#[tokio::test]
async fn a_child_has_its_parents_agent_where_nobody_names_another() {
    let served = Served::start();
    let mut door = served.connect().await;
    let child = spawn(&mut door, ChildRuntime::Subagent, None).await;
    assert!(
        child
            .session_key
            .as_str()
            .starts_with("agent:main:subagent:")
    );
    let bad = Request::SessionsSpawn(SessionsSpawn {
        parent: Some(key(WATCHER)),
        agent: Some("two words".to_owned()),
        runtime: ChildRuntime::Subagent,
        label: None,
        task: "t".into(),
    });
    let error = refused(&mut door, bad).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest);
    let of_no_child = Request::RunFinished(RunFinished {
        session_key: key(WATCHER),
        agent: None,
        outcome: RunEnd::Completed,
        result: None,
        run_id: None,
        caller: None,
    });
    let error = refused(&mut door, of_no_child).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest);
}
