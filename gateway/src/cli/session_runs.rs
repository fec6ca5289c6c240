//! `tidings sessions runs`: what is remembered of the runs of cron jobs.

use clap::{Args, value_parser};
use tidings_node::cli::format::{utc, utc_or_nothing};
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::session_api::{CronRuns, CronRunsList, MAX_CRON_RUNS_PER_PAGE, Request};

use super::Context;
use super::client::answer;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings sessions runs nightly --limit 20")]
pub(super) struct RunsArgs {
    /// Only of this job
    #[arg(value_name = "JOB")]
    job_id: Option<String>,
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// How many, at most 100
    #[arg(long, value_name = "N",
        value_parser = value_parser!(u32).range(1..=i64::from(MAX_CRON_RUNS_PER_PAGE)))]
    limit: Option<u32>,
    /// Only those before this run
    #[arg(long, value_name = "RUN")]
    before: Option<u64>,
}

pub(super) async fn run(args: RunsArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let request = Request::CronRunsList(CronRunsList {
        job_id: args.job_id,
        agent: args.agent,
        limit: args.limit,
        before: args.before,
    });
    let runs = context.client.ask(request, answer!(CronRunsList)).await?;
    context.output.answer(&runs, runs_page)
}

fn runs_page(page: &CronRuns) -> Page {
    if page.runs.is_empty() {
        return Page::empty(
            "no runs",
            "cron_run_begin begins one, by whatever schedules jobs",
        );
    }
    let table = Table::new([
        Column::right("RUN"),
        Column::left("JOB"),
        Column::left("AGENT"),
        Column::left("BEGAN (UTC)"),
        Column::left("ENDED (UTC)"),
        Column::left("OUTCOME"),
    ])
    .with_rows(&page.runs, |run| {
        [
            run.run_id.to_string(),
            run.job_id.clone(),
            run.agent_id.clone(),
            utc(run.started_at),
            utc_or_nothing(run.ended_at),
            run.outcome.clone().unwrap_or_else(|| "open".to_owned()),
        ]
    });
    match page.before {
        Some(before) => Page::of(table).with(Note::Hint(format!(
            "there are older ones: --before {before}"
        ))),
        None => Page::of(table),
    }
}
