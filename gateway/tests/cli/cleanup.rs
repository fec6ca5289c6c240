//! `tidings sessions cleanup`

use insta::assert_snapshot;
use tidings_protocol::session_api::{CleanedUp, CleanupAction, Reply};

use crate::fake::Fake;
use crate::run::{alone, with};
use crate::values::key;

fn cleaned_up(dry_run: bool, actions: Vec<CleanupAction>) -> CleanedUp {
    let gone = actions.iter().filter(|action| action.session_key.is_some());
    let gone = gone.count() as u64;
    CleanedUp {
        mode: "warn".to_owned(),
        dry_run,
        before_count: 12,
        after_count: 12 - gone,
        pruned: gone,
        capped: 0,
        missing: 2,
        freed_bytes: actions.iter().map(|action| action.bytes).sum(),
        failed: 0,
        actions,
        stores: Vec::new(),
    }
}

fn actions() -> Vec<CleanupAction> {
    vec![
        CleanupAction {
            agent_id: "main".to_owned(),
            session_key: Some(key("agent:main:old")),
            files: vec!["0a1b.jsonl".to_owned(), "0a1b.trajectory.jsonl".to_owned()],
            bytes: 961_000,
            reason: "pruneAfter".to_owned(),
        },
        CleanupAction {
            agent_id: "main".to_owned(),
            session_key: None,
            files: vec!["2c3d.jsonl".to_owned()],
            bytes: 39,
            reason: "orphan".to_owned(),
        },
    ]
}

#[test]
fn a_dry_run_says_what_would_go_and_why() {
    let fake = Fake::answering(Reply::SessionsCleanup(cleaned_up(true, actions())));
    assert_snapshot!(with(&fake, "sessions cleanup --dry-run --all-agents"), @r#"
    exit 0
    --- stdout
    SESSION OR FILE  AGENT  WHY         FILES      SIZE
    agent:main:old   main   pruneAfter      2  961.0 kB
    2c3d.jsonl       main   orphan          1      39 B
    --- stderr
    1 of 12 entries would go (1 by age, 0 by number or size), 961.0 kB in files; 2 without a transcript
    --- asked
    SessionsCleanup(SessionsCleanup { agents: All, doing: DryRun })
    "#);
    assert_snapshot!(with(&fake, "sessions cleanup --dry-run --agent ops --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"mode":"warn","dryRun":true,"beforeCount":12,"afterCount":11,"pruned":1,"capped":0,"missing":2,"freedBytes":961039,"failed":0,"actions":[{"agentId":"main","sessionKey":"agent:main:old","files":["0a1b.jsonl","0a1b.trajectory.jsonl"],"bytes":961000,"reason":"pruneAfter"},{"agentId":"main","files":["2c3d.jsonl"],"bytes":39,"reason":"orphan"}]}
    --- stderr
    --- asked
    SessionsCleanup(SessionsCleanup { agents: One { agent: "ops" }, doing: DryRun })
    "#);
}

#[test]
fn enforcing_says_what_is_gone_also_where_that_is_nothing() {
    let done = CleanedUp {
        failed: 3,
        ..cleaned_up(false, Vec::new())
    };
    let fake = Fake::answering(Reply::SessionsCleanup(done));
    assert_snapshot!(with(&fake, "sessions cleanup --enforce"), @r#"
    exit 0
    --- stdout
    --- stderr
    0 of 12 entries gone (0 by age, 0 by number or size), 0 B in files; 2 without a transcript
    warning: 3 files could not be removed
    --- asked
    SessionsCleanup(SessionsCleanup { agents: Default, doing: Enforce })
    "#);
}

#[test]
fn whether_it_acts_must_be_said_and_a_store_must_be_one() {
    for line in [
        "sessions cleanup",
        "sessions cleanup --dry-run --enforce",
        "sessions cleanup --enforce --all-agents --agent ops",
        "sessions cleanup --enforce --all-agents --store x",
    ] {
        assert!(
            alone(line).starts_with("exit 2\n"),
            "{line}: {}",
            alone(line)
        );
    }
    assert_snapshot!(alone("sessions cleanup --enforce --store /nowhere/agents/main/sessions"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: /nowhere/agents/main/sessions is no store: there is no state.sqlite in /nowhere
    hint: give <state-dir>/agents/<agent>/sessions/sessions.json
    "#);
    assert!(alone("sessions cleanup --enforce --store /").contains("its path is too short"));
}
