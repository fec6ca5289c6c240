//! Runs of cron jobs.

use super::*;
use crate::state::{Conversation, NewCronRun};

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
