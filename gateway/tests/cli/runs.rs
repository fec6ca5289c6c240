//! `tidings sessions runs`

use insta::assert_snapshot;
use tidings_protocol::session_api::{CronRunRow, CronRuns, Reply};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{TIME, key};

fn runs(before: Option<u64>) -> Reply {
    let open = CronRunRow {
        run_id: 8,
        job_id: "nightly".to_owned(),
        session_key: key("cron:nightly"),
        agent_id: "main".to_owned(),
        session_id: None,
        started_at: TIME,
        ended_at: None,
        outcome: None,
    };
    let ended = CronRunRow {
        run_id: 7,
        session_id: Some("6f0d6a1e".to_owned()),
        ended_at: Some(TIME + 61_000),
        outcome: Some("timeout".to_owned()),
        ..open.clone()
    };
    Reply::CronRunsList(CronRuns {
        runs: vec![open, ended],
        before,
    })
}

#[test]
fn runs_are_listed_with_how_they_ended_and_where_older_ones_are() {
    let fake = Fake::answering(runs(Some(7)));
    assert_snapshot!(with(&fake, "sessions runs nightly --limit 2"), @r#"
    exit 0
    --- stdout
    RUN  JOB      AGENT  BEGAN (UTC)          ENDED (UTC)          OUTCOME
      8  nightly  main   2026-11-30 21:05:03  -                    open
      7  nightly  main   2026-11-30 21:05:03  2026-11-30 21:06:04  timeout
    --- stderr
    hint: there are older ones: --before 7
    --- asked
    CronRunsList(CronRunsList { job_id: Some("nightly"), agent: None, limit: Some(2), before: None })
    "#);
    assert_snapshot!(with(&Fake::answering(runs(None)), "sessions runs --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"runs":[{"runId":8,"jobId":"nightly","sessionKey":"cron:nightly","agentId":"main","startedAt":1796072703123},{"runId":7,"jobId":"nightly","sessionKey":"cron:nightly","agentId":"main","sessionId":"6f0d6a1e","startedAt":1796072703123,"endedAt":1796072764123,"outcome":"timeout"}]}
    --- stderr
    --- asked
    CronRunsList(CronRunsList { job_id: None, agent: None, limit: None, before: None })
    "#);
}

#[test]
fn where_no_job_has_run_yet_that_is_said() {
    let fake = Fake::answering(Reply::CronRunsList(CronRuns::default()));
    assert_snapshot!(with(&fake, "sessions runs"), @"
    exit 0
    --- stdout
    --- stderr
    no runs
    hint: cron_run_begin begins one, by whatever schedules jobs
    --- asked
    CronRunsList(CronRunsList { job_id: None, agent: None, limit: None, before: None })
    ");
}
