//! Runs of cron jobs.

use tidings_protocol::session_api::{CronRunRow, RunEnd, RunEnded};

use super::*;
use crate::state::{Conversation, CronRunsPage, FinishedRun, NewCronRun, StateError};

#[tokio::test]
async fn so_many_runs_of_each_job_are_remembered_the_newest() {
    let fixture = Fixture::new();
    let mut newest = 0;
    for number in 0..5 {
        for (job, keep_runs) in [("nightly", 2), ("hourly", 3)] {
            let run = NewCronRun {
                job_id: job.to_owned(),
                session: address(&format!("cron:{job}")),
                conversation: Conversation::Standing,
                keep_runs,
            };
            let begun = fixture.state.begin_cron_run(run).await.expect("begun");
            assert_eq!(begun.is_new, number == 0, "{job} {number}");
            newest = begun.run_id;
        }
    }
    let count = |job: &str| {
        let sql = format!("SELECT count(*) FROM cron_runs WHERE job_id = '{job}'");
        fixture.number(&sql)
    };
    assert_eq!((count("nightly"), count("hourly")), (2, 3));
    let kept = fixture.number("SELECT max(id) FROM cron_runs");
    assert_eq!(u64::try_from(kept), Ok(newest));
}

struct Jobs(Fixture);

impl Jobs {
    async fn begin(&self, job: &str) -> u64 {
        self.0.clock.pass(1);
        let run = NewCronRun {
            job_id: job.to_owned(),
            session: address(&format!("cron:{job}")),
            conversation: Conversation::Standing,
            keep_runs: 2_000,
        };
        let begun = self.0.state.begin_cron_run(run).await;
        begun.expect("begun").run_id
    }

    async fn finish(&self, run: FinishedRun) -> Result<RunEnded, StateError> {
        self.0.clock.pass(1);
        self.0.state.finish_run(run).await
    }

    /// The runs, newest first, each as `<job> <outcome>`.
    async fn shown(&self, page: CronRunsPage) -> Vec<String> {
        let runs = self.0.state.cron_runs(page).await.expect("runs").runs;
        let show = |run: CronRunRow| {
            assert_eq!(run.ended_at.is_some(), run.outcome.is_some());
            assert!(run.ended_at.is_none_or(|at| at > run.started_at));
            format!(
                "{} {}",
                run.job_id,
                run.outcome.as_deref().unwrap_or("open")
            )
        };
        runs.into_iter().map(show).collect()
    }
}

fn all() -> CronRunsPage {
    CronRunsPage {
        job_id: None,
        agent: None,
        limit: 100,
        before: None,
    }
}

fn finished(job: &str, outcome: RunEnd) -> FinishedRun {
    FinishedRun {
        session: address(&format!("cron:{job}")),
        outcome,
        result: None,
        run_id: None,
        caller: None,
    }
}

#[tokio::test]
async fn a_run_ends_once_by_its_report_by_its_turn_or_when_the_next_one_begins() {
    let jobs = Jobs(Fixture::new());
    jobs.begin("a").await;
    let ended = jobs.finish(finished("a", RunEnd::Timeout)).await;
    let nobody = RunEnded {
        sequence: None,
        parent: None,
    };
    assert_eq!(ended, Ok(nobody.clone()));
    assert_eq!(
        jobs.finish(finished("a", RunEnd::Completed)).await,
        Ok(nobody)
    );
    jobs.begin("b").await;
    let state = &jobs.0.state;
    state.turn_begin(address("cron:b")).await.expect("begun");
    jobs.0.clock.pass(1);
    assert_eq!(state.turn_end(address("cron:b")).await, Ok(true));
    let first = jobs.begin("c").await;
    let second = jobs.begin("c").await;
    let of_first = FinishedRun {
        run_id: Some(first.to_string()),
        ..finished("c", RunEnd::Error)
    };
    jobs.finish(of_first).await.expect("it ended before");
    assert_eq!(
        jobs.shown(all()).await,
        ["c open", "c abandoned", "b completed", "a timeout"]
    );
    let of_second = FinishedRun {
        run_id: Some(second.to_string()),
        ..finished("c", RunEnd::Cancelled)
    };
    jobs.finish(of_second).await.expect("ended");
    assert_eq!(jobs.shown(all()).await[0], "c cancelled");
    let signals = jobs.0.number("SELECT count(*) FROM events");
    assert_eq!(signals, 0, "a job is nobody's child");
}

#[tokio::test]
async fn only_a_jobs_own_session_and_an_operator_end_its_runs() {
    let jobs = Jobs(Fixture::new());
    jobs.begin("a").await;
    let by = |caller: &str| FinishedRun {
        caller: Some(key(caller)),
        ..finished("a", RunEnd::Completed)
    };
    let refused = jobs.finish(by("agent:main:main")).await;
    assert!(
        matches!(refused, Err(StateError::NotPermitted(_))),
        "{refused:?}"
    );
    let odd = FinishedRun {
        run_id: Some("seven".to_owned()),
        ..finished("a", RunEnd::Completed)
    };
    for refused in [
        odd,
        FinishedRun {
            session: address("agent:main:main"),
            ..finished("a", RunEnd::Completed)
        },
    ] {
        jobs.0
            .state
            .ensure_session(address("agent:main:main"))
            .await
            .expect("made");
        let refused = jobs.finish(refused).await;
        assert!(
            matches!(refused, Err(StateError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(jobs.shown(all()).await, ["a open"]);
    jobs.finish(by("cron:a")).await.expect("its own");
    assert_eq!(jobs.shown(all()).await, ["a completed"]);
}

#[tokio::test]
async fn runs_are_read_page_by_page_by_job_and_by_agent() {
    let jobs = Jobs(Fixture::new());
    for _ in 0..3 {
        jobs.begin("a").await;
        jobs.begin("b").await;
    }
    let page = CronRunsPage {
        job_id: Some("a".to_owned()),
        limit: 2,
        ..all()
    };
    let first = jobs.0.state.cron_runs(page.clone()).await.expect("runs");
    assert_eq!(first.runs.len(), 2);
    let next = CronRunsPage {
        before: first.before,
        ..page
    };
    assert!(next.before.is_some());
    let last = jobs.0.state.cron_runs(next).await.expect("runs");
    assert_eq!((last.runs.len(), last.before), (1, None));
    assert_eq!(last.runs[0].job_id, "a");
    let of_nobody = CronRunsPage {
        agent: AgentId::parse("nobody").ok(),
        ..all()
    };
    assert_eq!(jobs.shown(of_nobody).await, Vec::<String>::new());
}
