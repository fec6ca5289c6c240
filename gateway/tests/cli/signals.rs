//! `tidings signals list|why|record`

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    Recorded, Reply, SignalEvidence, SignalRow, SignalWhy, Signals,
};
use tidings_protocol::{ActorType, Catalog, SignalKind};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{key, laptop, signal};

#[test]
fn list_shows_the_log_ascending() {
    let failed = SignalRow {
        session_key: key("agent:main:subagent:1"),
        kind: SignalKind::RunFailed,
        actor_type: ActorType::Agent,
        actor_id: Some("agent:main:main".to_owned()),
        run_id: Some("run-7".to_owned()),
        summary: "child run timed out".to_owned(),
        payload: None,
        ..signal(1_043)
    };
    let fake = Fake::answering(Reply::Signals(Signals {
        earliest_available_sequence: None,
        signals: vec![signal(42), failed],
    }));
    let line = "signals list --session agent:main:main --after 41 --limit 2";
    assert_snapshot!(with(&fake, line), @"
    exit 0
    --- stdout
    SEQUENCE  OCCURRED (UTC)       KIND                  ACTOR            SESSION                                SUMMARY
          42  2026-11-30 21:05:03  human_direct_message  human            agent:main:adopted:claude:laptop:0a1b  human message via claude
        1043  2026-11-30 21:05:03  run_failed            agent:main:main  agent:main:subagent:1                  child run timed out
    --- stderr
    --- asked
    SignalsList(SignalsQuery { session: Some(agent:main:main), after: Some(41), limit: Some(2) })
    ");
    assert_snapshot!(with(&fake, "signals list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"signals":[{"sequence":42,"sessionKey":"agent:main:adopted:claude:laptop:0a1b","agentId":"main","kind":"human_direct_message","actorType":"human","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"human message via claude","payload":{"turns":2,"catalog":"claude","host":"node:0123456789abcdef0123456789abcdef"}},{"sequence":1043,"sessionKey":"agent:main:subagent:1","agentId":"main","kind":"run_failed","actorType":"agent","actorId":"agent:main:main","runId":"run-7","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"child run timed out"}]}
    --- stderr
    --- asked
    SignalsList(SignalsQuery { session: None, after: None, limit: None })
    "#);
}

#[test]
fn an_empty_log_says_so() {
    let fake = Fake::answering(Reply::Signals(Signals {
        signals: vec![],
        earliest_available_sequence: None,
    }));
    assert_snapshot!(with(&fake, "signals list"), @"
    exit 0
    --- stdout
    --- stderr
    no signals
    hint: tidings signals follow waits for the next
    --- asked
    SignalsList(SignalsQuery { session: None, after: None, limit: None })
    ");
    assert_snapshot!(with(&fake, "signals list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"signals":[]}
    --- stderr
    --- asked
    SignalsList(SignalsQuery { session: None, after: None, limit: None })
    "#);
}

#[test]
fn why_names_file_bytes_and_rule() {
    let turn = |byte_start, record_id: Option<&str>| SignalEvidence {
        node: laptop().host_name,
        catalog: Catalog::Claude,
        file: "0a1b.jsonl".to_owned(),
        byte_start,
        byte_end: byte_start + 200,
        record_id: record_id.map(str::to_owned),
        rule: "typed-prompt".to_owned(),
    };
    let fake = Fake::answering(Reply::SignalsWhy(SignalWhy {
        sequence: 42,
        evidence: vec![turn(4_096, Some("c0ffee")), turn(5_000, None)],
    }));
    assert_snapshot!(with(&fake, "signals why 42"), @"
    exit 0
    --- stdout
    NODE    CATALOG  FILE        FROM BYTE  TO BYTE  RULE          RECORD
    laptop  claude   0a1b.jsonl       4096     4296  typed-prompt  c0ffee
    laptop  claude   0a1b.jsonl       5000     5200  typed-prompt  -
    --- stderr
    --- asked
    SignalsWhy { sequence: 42 }
    ");
    assert_snapshot!(with(&fake, "signals why 42 --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sequence":42,"evidence":[{"node":"laptop","catalog":"claude","file":"0a1b.jsonl","byteStart":4096,"byteEnd":4296,"recordId":"c0ffee","rule":"typed-prompt"},{"node":"laptop","catalog":"claude","file":"0a1b.jsonl","byteStart":5000,"byteEnd":5200,"rule":"typed-prompt"}]}
    --- stderr
    --- asked
    SignalsWhy { sequence: 42 }
    "#);
}

#[test]
fn a_signal_without_evidence_was_caused_by_no_transcript() {
    let fake = Fake::answering(Reply::SignalsWhy(SignalWhy {
        sequence: 42,
        evidence: vec![],
    }));
    assert_snapshot!(with(&fake, "signals why 42"), @"
    exit 0
    --- stdout
    --- stderr
    no transcript caused signal 42
    hint: tidings signals list shows who recorded it
    --- asked
    SignalsWhy { sequence: 42 }
    ");
}

#[test]
fn record_hands_on_everything_it_was_given() {
    let fake = Fake::answering(Reply::SignalsRecord(Recorded {
        recorded: true,
        sequence: Some(43),
        reason: None,
    }));
    let line = "signals record --session agent:main:Main --kind run_failed \
        --actor Agent:Ops:Main --parent agent:main:main --channel cli --outcome timeout \
        --run-id run-7 --summary late --dedupe-key once";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    recorded, sequence 43
    --- stderr
    --- asked
    SignalsRecord(SignalsRecord { session: agent:main:main, kind: RunFailed, actor: "agent:ops:main", parent: Some(agent:main:main), channel: Some("cli"), outcome: Some(Timeout), run_id: Some("run-7"), summary: Some("late"), dedupe_key: Some("once") })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"recorded":true,"sequence":43}
    --- stderr
    --- asked
    SignalsRecord(SignalsRecord { session: agent:main:main, kind: RunFailed, actor: "agent:ops:main", parent: Some(agent:main:main), channel: Some("cli"), outcome: Some(Timeout), run_id: Some("run-7"), summary: Some("late"), dedupe_key: Some("once") })
    "#);
}

#[test]
fn a_repeated_record_is_done_too() {
    let fake = Fake::answering(Reply::SignalsRecord(Recorded {
        recorded: false,
        sequence: Some(43),
        reason: Some("recorded before under this dedupe key".to_owned()),
    }));
    let line = "signals record --session global --kind compacted --actor system";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    not recorded: recorded before under this dedupe key, sequence 43
    --- stderr
    hint: tidings signals list --after 42 shows the one it repeats
    --- asked
    SignalsRecord(SignalsRecord { session: global, kind: Compacted, actor: "system", parent: None, channel: None, outcome: None, run_id: None, summary: None, dedupe_key: None })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"recorded":false,"sequence":43,"reason":"recorded before under this dedupe key"}
    --- stderr
    --- asked
    SignalsRecord(SignalsRecord { session: global, kind: Compacted, actor: "system", parent: None, channel: None, outcome: None, run_id: None, summary: None, dedupe_key: None })
    "#);
}

#[test]
fn a_signal_that_nobody_watches_for_is_not_recorded() {
    let fake = Fake::answering(Reply::SignalsRecord(Recorded {
        recorded: false,
        sequence: None,
        reason: Some("nobody watches the session".to_owned()),
    }));
    let line = "signals record --session global --kind human_direct_message --actor human";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    not recorded: nobody watches the session
    --- stderr
    --- asked
    SignalsRecord(SignalsRecord { session: global, kind: HumanDirectMessage, actor: "human", parent: None, channel: None, outcome: None, run_id: None, summary: None, dedupe_key: None })
    "#);
}
