//! What programs on a node's machine give other sessions over its connection: always as the
//! session of their own conversation.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ChildRuntime, CompactionRecorded, CompactionTrigger, ErrorType, GoalSet, InputProvenance,
    MessageRecorded, Request, RunEnd, RunFinished, SessionsSend, SessionsSpawn, SignalsQuery,
    SpeakerRef,
};

use crate::relay::Machine;
use crate::served::{self, ask, body, gateway, key, message, refused, speaker};

const TARGET: &str = "agent:ops:main";
const OWN: &str = "agent:main:adopted:claude:laptop:mine";

fn spawn(parent: Option<SessionKey>) -> Request {
    Request::SessionsSpawn(SessionsSpawn {
        parent,
        agent: None,
        runtime: ChildRuntime::Acp,
        label: None,
        task: "t".into(),
    })
}

fn goal(caller: Option<SessionKey>) -> Request {
    Request::GoalSet(GoalSet {
        session_key: key(TARGET),
        agent: None,
        goal: "g".into(),
        caller,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_on_a_node_sends_spawns_and_reports_as_its_own_session() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "laptop", "mine").await;
    let mut operator = served::connect(gateway.state_dir()).await;
    ask(&mut operator, Request::TurnBegin(speaker(TARGET))).await;
    let mut door = machine.door(Some("mine")).await;

    // By sending, its thread becomes a session; it is the sender, and it watches.
    let request = SessionsSend {
        watch: Some(true),
        ..message(TARGET, "Please rebase.")
    };
    let sent = body!(
        ask(&mut door, Request::SessionsSend(request)).await,
        SessionsSend
    );
    assert_eq!(sent.watched, Some(true));
    let taken = ask(&mut operator, Request::TurnBegin(speaker(TARGET))).await;
    let taken = body!(taken, TurnBegin).messages;
    assert_eq!(taken[0].sender, Some(key(OWN)));

    ask(&mut door, goal(None)).await;
    let child = body!(ask(&mut door, spawn(None)).await, SessionsSpawn);
    let run = Request::RunFinished(RunFinished {
        session_key: child.session_key,
        agent: None,
        outcome: RunEnd::Completed,
        result: None,
        run_id: None,
        caller: None,
    });
    let ended = body!(ask(&mut door, run).await, RunFinished);
    assert_eq!(ended.parent, Some(key(OWN)), "it is the parent");
    let reset = ask(&mut door, Request::SessionReset(SpeakerRef::default())).await;
    let reset = body!(reset, SessionReset);
    assert_eq!((reset.session_key, reset.watches_ended), (key(OWN), 2));

    // Everything it did is its own act: no human's.
    let list = Request::SignalsList(SignalsQuery::default());
    let signals = body!(ask(&mut operator, list).await, Signals).signals;
    let acts: Vec<_> = signals
        .iter()
        .map(|signal| (signal.summary.as_str(), signal.actor_id.as_deref()))
        .collect();
    assert_eq!(
        acts,
        [
            ("adopted from claude", None),
            ("goal created", Some(OWN)),
            ("child session spawned", Some(OWN)),
            ("child run completed", None),
        ]
    );
    machine.agent.stop();
    drop((door, operator));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_on_a_node_gives_nothing_as_another_session_or_as_nobody() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "laptop", "mine").await;
    let mut operator = served::connect(gateway.state_dir()).await;
    ask(&mut operator, Request::TurnBegin(speaker(TARGET))).await;
    let requests = |session: Option<SessionKey>| {
        vec![
            Request::SessionsSend(SessionsSend {
                sender: session.clone(),
                ..message(TARGET, "m")
            }),
            spawn(session.clone()),
            goal(session.clone()),
            Request::SessionReset(SpeakerRef {
                session_key: session.clone(),
                agent: None,
            }),
            Request::MessageRecorded(MessageRecorded {
                session_key: session.clone(),
                agent: None,
                provenance: InputProvenance::ExternalUser,
                channel: None,
                occurred_at: None,
                dedupe_key: None,
            }),
            Request::CompactionRecorded(CompactionRecorded {
                session_key: session,
                agent: None,
                trigger: CompactionTrigger::Manual,
                dedupe_key: None,
            }),
        ]
    };
    let mut as_itself = machine.door(Some("mine")).await;
    let mut as_nobody = machine.door(None).await;
    for session in [TARGET, OWN, "agent:main:main"] {
        for request in requests(Some(key(session))) {
            let error = refused(&mut as_itself, request.clone()).await;
            assert_eq!(error.error_type, ErrorType::NotPermitted, "{request:?}");
        }
    }
    for request in requests(None) {
        let error = refused(&mut as_nobody, request.clone()).await;
        assert_eq!(error.error_type, ErrorType::NotPermitted, "{request:?}");
    }
    let list = Request::SignalsList(SignalsQuery::default());
    let signals = body!(ask(&mut operator, list).await, Signals).signals;
    assert_eq!(signals, [], "nothing was done");
    machine.agent.stop();
    drop((as_itself, as_nobody, operator));
    gateway.stop().await;
}
