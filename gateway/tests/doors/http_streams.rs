//! The log and the wakes as server-sent events.

use std::time::Duration;

use serde_json::json;
use tidings_gateway::config::Config;
use tidings_gateway::doors::http::HttpLimits;
use tidings_gateway::state::{AgentId, NewSignal, Retention, SessionAddress, State};
use tidings_protocol::session_api::{Request, TokenRef, TokenScope};
use tidings_protocol::signal::Summary;
use tidings_protocol::{Actor, SignalKind};
use tokio::time::timeout;

use crate::served::{PATIENCE, Served, ask, connect, key, speak, watch};
use crate::web::{self, Event, Events, Web, open, token};

const WATCHER: &str = "agent:main:main";
const TARGET: &str = "agent:ops:main";
const STREAM: &str = "/v1/signals/stream";

/// The sequences of the next events, which are signals.
async fn sequences(events: &mut Events, count: usize) -> Vec<u64> {
    let mut sequences = Vec::new();
    while sequences.len() < count {
        let event = events.next().await.expect("the stream goes on");
        let data = event.data.expect("data");
        assert_eq!(
            data["sequence"].as_u64(),
            event.id,
            "the id is the sequence"
        );
        sequences.extend(event.id);
    }
    sequences
}

async fn record(web: &Web, session: &str) -> u64 {
    let body = json!({"session": session, "kind": "goal_changed", "actor": "human"});
    let recorded = web.asked("signals_record", &body.to_string()).await;
    recorded["sequence"].as_u64().expect("a sequence")
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_also_after_the_gateway_was_restarted() {
    let scratch = tempfile::tempdir().expect("scratch");
    let dir = scratch.path().join("state");
    let gateway = web::gateway(&dir, Config::default()).await;
    let read = token(gateway.state_dir(), "reader", TokenScope::Read).await;
    let write = token(gateway.state_dir(), "writer", TokenScope::Write).await;
    let web = Web::of(&gateway, &write);
    for _ in 0..5 {
        record(&web, TARGET).await;
    }
    let reader = web.with(&read);
    let mut events = reader.events(&format!("{STREAM}?after=0"), None).await;
    assert_eq!(sequences(&mut events, 3).await, [1, 2, 3]);
    // It has more of the page already, and is thrown away with it.
    gateway.stop().await;
    while events.next().await.is_some() {}

    let gateway = web::gateway(&dir, Config::default()).await;
    let web = Web::of(&gateway, &write);
    record(&web, TARGET).await;
    let reader = Web::of(&gateway, &read);
    // What the reader remembers goes before what its address says.
    let mut events = reader.events(&format!("{STREAM}?after=0"), Some(3)).await;
    assert_eq!(sequences(&mut events, 3).await, [4, 5, 6]);
    assert_eq!(record(&web, TARGET).await, 7);
    assert_eq!(sequences(&mut events, 1).await, [7]);
    gateway.stop().await;
    assert_eq!(events.next().await, None, "a stop ends the stream");
}

#[tokio::test]
async fn a_reader_without_a_position_begins_now_and_is_told_where_that_is() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    for _ in 0..3 {
        record(&door.web, TARGET).await;
    }
    let mut events = door.web.events(STREAM, None).await;
    let first = events.next_of_any_kind().await;
    let position = Event {
        id: Some(3),
        ..Event::default()
    };
    assert_eq!(first, Some(position));
    record(&door.web, TARGET).await;
    record(&door.web, WATCHER).await;
    assert_eq!(sequences(&mut events, 2).await, [4, 5]);
    let one = format!("{STREAM}?session={WATCHER}&after=0");
    let mut events = door.web.events(&one, None).await;
    assert_eq!(sequences(&mut events, 1).await, [5]);
}

#[tokio::test]
async fn what_is_kept_no_more_is_told_as_a_gap_before_anything_else() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    for _ in 0..10 {
        record(&door.web, TARGET).await;
    }
    let retention = Retention {
        max_rows: 3,
        recorded_since: None,
    };
    assert_eq!(served.state.prune(retention).await, Ok(7));
    for (path, last) in [
        (format!("{STREAM}?after=2"), None),
        (STREAM.to_owned(), Some(2)),
        (format!("{STREAM}?session={TARGET}"), Some(6)),
    ] {
        let mut events = door.web.events(&path, last).await;
        let gap = events.next().await.expect("a gap");
        assert_eq!((gap.id, gap.name.as_deref()), (None, Some("gap")));
        assert_eq!(gap.data, Some(json!({"earliestAvailableSequence": 8})));
        assert_eq!(sequences(&mut events, 3).await, [8, 9, 10]);
    }
    let mut events = door.web.events(STREAM, Some(7)).await;
    assert_eq!(sequences(&mut events, 3).await, [8, 9, 10], "no gap");
}

#[tokio::test]
async fn a_position_after_the_end_of_the_log_is_refused_and_passes_no_signal_over() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    for _ in 0..3 {
        record(&door.web, TARGET).await;
    }
    for beyond in [4, u64::MAX] {
        let path = format!("{STREAM}?after={beyond}");
        let refusal = door.web.get(&path).await.refusal();
        let message = format!("the log ends at sequence 3; {beyond} is after that");
        assert_eq!((refusal.0, refusal.2), (400, message));
    }
    let mut events = door.web.events(&format!("{STREAM}?after=3"), None).await;
    record(&door.web, TARGET).await;
    assert_eq!(sequences(&mut events, 1).await, [4]);
}

/// Records signals with the longest lines there are, many at once.
async fn fill(state: &State, count: usize) {
    let agent = AgentId::parse("ops").expect("an agent");
    let session = SessionAddress::resolve(key(TARGET), &agent).expect("an address");
    let line = Summary::from_text(&"👋".repeat(200)).expect("a summary");
    let mut recording = tokio::task::JoinSet::new();
    for _ in 0..count {
        let (state, session, line) = (state.clone(), session.clone(), line.clone());
        recording.spawn(async move {
            let signal = NewSignal {
                summary: Some(line),
                ..NewSignal::new(session, SignalKind::GoalChanged, Actor::Human)
            };
            state.record(signal).await.expect("recorded");
        });
    }
    while recording.join_next().await.is_some() {}
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off_and_loses_nothing() {
    /// More than the buffers of two sockets hold.
    const SIGNALS: usize = 12_000;
    let served = Served::start();
    let limits = HttpLimits {
        write_stall: Duration::from_millis(300),
        ..HttpLimits::default()
    };
    let door = open(&served, limits).await;
    fill(&served.state, SIGNALS).await;
    let mut events = door.web.narrow_events(&format!("{STREAM}?after=0")).await;
    let cut_off = async { while door.web.figure("tidings_http_cut_off_total").await < 1.0 {} };
    timeout(PATIENCE * 3, cut_off).await.expect("it is cut off");
    assert!(door.web.figure("tidings_http_streams").await < 1.0);
    let mut read = Vec::new();
    while let Some(event) = events.next().await {
        read.extend(event.id);
    }
    let last = *read.last().expect("something arrived");
    assert!(read.len() < SIGNALS, "all of it fitted on the way");
    let mut events = door.web.events(STREAM, Some(last)).await;
    read.extend(sequences(&mut events, SIGNALS - read.len()).await);
    let all: Vec<u64> = (1..=SIGNALS as u64).collect();
    assert_eq!(read, all, "each once, in order");
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_no_others() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let first = token(served.dir.path(), "first", TokenScope::Read).await;
    let mut ending = Vec::new();
    for path in [STREAM, "/v1/wakes"] {
        ending.push(door.web.with(&first).events(path, None).await);
    }
    let mut other = door.web.events(STREAM, None).await;
    let mut operator = connect(served.dir.path()).await;
    let revoke = Request::TokenRevoke(TokenRef {
        name: "first".to_owned(),
    });
    ask(&mut operator, revoke).await;
    for events in &mut ending {
        let said = events.next().await.expect("the reason");
        assert_eq!(said.name.as_deref(), Some("error"));
        let error = said.data.expect("an error");
        assert_eq!(error["type"], "not_permitted");
        assert_eq!(error["message"], "the token was revoked");
        assert_eq!(events.next().await, None);
    }
    record(&door.web, TARGET).await;
    assert_eq!(sequences(&mut other, 1).await, [1]);
}

#[tokio::test]
async fn wakes_are_told_first_as_they_stand_and_then_as_they_come() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let mut operator = connect(served.dir.path()).await;
    watch(&mut operator, WATCHER, TARGET).await;
    watch(&mut operator, "agent:main:other", TARGET).await;
    let mut early = door.web.events("/v1/wakes", None).await;
    let one = format!("/v1/wakes?session={WATCHER}");
    let mut own = door.web.events(&one, None).await;
    speak(&mut operator, TARGET).await;
    let wake = |watcher: &str| json!({"watcher": watcher, "target": TARGET});
    let mut told = Vec::new();
    for _ in 0..2 {
        told.extend(early.next().await.expect("a wake").data);
    }
    told.sort_by_key(|wake| wake["watcher"].to_string());
    assert_eq!(told, [wake(WATCHER), wake("agent:main:other")]);
    let mut late = door.web.events(&one, None).await;
    for stream in [&mut own, &mut late] {
        assert_eq!(
            stream.next().await.expect("a wake").data,
            Some(wake(WATCHER))
        );
    }
}

#[tokio::test]
async fn a_stream_says_that_it_stands_and_one_too_many_is_told_to_come_later() {
    let served = Served::start();
    let limits = HttpLimits {
        streams: 1,
        keep_alive: Duration::from_millis(10),
        ..HttpLimits::default()
    };
    let door = open(&served, limits).await;
    let mut events = door.web.events(STREAM, None).await;
    events.until_kept_alive(3).await;
    let answer = door.web.get("/v1/wakes").await;
    let refusal = answer.refusal();
    assert_eq!((refusal.0, refusal.1.as_str()), (503, "try_later"));
    assert_eq!(refusal.2, "1 streams are open already");
    assert!(answer.head.contains("retry-after: 5"), "{answer:?}");
    drop(events);
    let free = async { while door.web.figure("tidings_http_streams").await > 0.0 {} };
    timeout(PATIENCE * 3, free)
        .await
        .expect("the place is free");
    door.web.events("/v1/wakes", None).await;
    // A stop ends it, and the door with it.
    door.stop.send_replace(true);
    timeout(PATIENCE, door.serving)
        .await
        .expect("in time")
        .expect("no panic");
}
