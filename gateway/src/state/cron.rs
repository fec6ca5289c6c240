//! Runs of cron jobs, each in the session of its job.

use rusqlite::{Connection, Row};
use tidings_protocol::session_api::{CronRunRow, CronRuns, RunEnded};
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::children::FinishedRun;
use super::ended::{Fate, conversation_ends};
use super::engine::{OpResult, Priority, Tx};
use super::entry::{put_entry, read_entry};
use super::error::StateError;
use super::random;
use super::sessions::{ensure_entry, entries_changed};
use super::sql::{int, number, parsed, uint};
use crate::sessions::cron::sanitised;

/// A run that is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCronRun {
    /// The job.
    pub job_id: String,
    /// Its session.
    pub session: SessionAddress,
    /// In which conversation.
    pub conversation: Conversation,
    /// How many runs of the job are remembered.
    pub keep_runs: u32,
}

/// In which conversation a run takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation {
    /// The standing one, where there is one.
    Standing,
    /// A new one.
    New,
}

/// A run that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRunBegun {
    /// The run.
    pub run_id: u64,
    /// The conversation.
    pub session_id: String,
    /// When.
    pub started_at: EpochMs,
    /// True where the conversation is new.
    pub is_new: bool,
}

/// Which runs are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronRunsPage {
    /// Only of this job.
    pub job_id: Option<String>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// How many.
    pub limit: u32,
    /// Only those before this run.
    pub before: Option<u64>,
}

/// How a run ended of which nobody said so before the next one began.
const ABANDONED: &str = "abandoned";

impl State {
    /// Runs of cron jobs, the newest first.
    pub async fn cron_runs(&self, page: CronRunsPage) -> Result<CronRuns, StateError> {
        self.read(move |conn| Ok(read_runs(conn, &page)?)).await
    }

    /// Begins a run of a cron job. What is remembered of older runs is cut.
    pub async fn begin_cron_run(&self, run: NewCronRun) -> Result<CronRunBegun, StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| begin(tx, &run, &fresh_id))
            .await
    }
}

fn begin(tx: &mut Tx<'_>, run: &NewCronRun, fresh_id: &str) -> OpResult<CronRunBegun> {
    let standing = read_entry(tx, &run.session)?;
    let ended = standing.filter(|_| run.conversation == Conversation::New);
    let ensured = ensure_entry(tx, &run.session, fresh_id)?;
    let number = tx.session(&run.session)?;
    let mut session_id = ensured.session_id;
    if let Some(previous) = &ended {
        conversation_ends(tx, &run.session, number, Fate::Reset)?;
        fresh_id.clone_into(&mut session_id);
        put_entry(
            tx,
            number,
            &sanitised(previous, session_id.clone(), tx.now()),
        )?;
    } else {
        // The row changes; that keeps no conversation alive.
        tx.execute(
            "UPDATE entries SET updated_at = ?2 WHERE session = ?1",
            (number, tx.now()),
        )?;
    }
    entries_changed(tx, &run.session);
    end_cron_run(tx, &run.session, None, ABANDONED)?;
    let run_id = remember(tx, run, &session_id)?;
    Ok(CronRunBegun {
        run_id,
        is_new: ensured.created || ended.is_some(),
        session_id,
        started_at: tx.now(),
    })
}

fn remember(tx: &mut Tx<'_>, run: &NewCronRun, session_id: &str) -> OpResult<u64> {
    tx.execute(
        "INSERT INTO cron_runs (job_id, session_key, agent_id, session_id, started_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (
            &run.job_id,
            run.session.key().as_str(),
            run.session.agent().as_str(),
            session_id,
            tx.now(),
        ),
    )?;
    let run_id = uint(tx.last_row());
    tx.execute(
        "DELETE FROM cron_runs WHERE job_id = ?1 AND agent_id = ?2 AND id NOT IN (
             SELECT id FROM cron_runs WHERE job_id = ?1 AND agent_id = ?2
             ORDER BY id DESC LIMIT ?3)",
        (&run.job_id, run.session.agent().as_str(), run.keep_runs),
    )?;
    Ok(run_id)
}

/// Ends the run of a job's session that is open, or the one of this number where it is; the
/// first end that is said stands. False where there was none.
pub(crate) fn end_cron_run(
    tx: &Tx<'_>,
    session: &SessionAddress,
    run_id: Option<u64>,
    outcome: &str,
) -> OpResult<bool> {
    let ended = tx.execute(
        "UPDATE cron_runs SET ended_at = ?3, outcome = ?4
         WHERE session_key = ?1 AND agent_id = ?2 AND ended_at IS NULL
           AND (?5 IS NULL OR id = ?5)",
        (
            session.key().as_str(),
            session.agent().as_str(),
            tx.now(),
            outcome,
            run_id.map(int),
        ),
    )?;
    Ok(ended > 0)
}

/// Ends the run of a cron job, which is nobody's child: its end is in the run history, and no
/// signal. Saying it again changes nothing.
pub(crate) fn finish_cron_run(tx: &Tx<'_>, run: &FinishedRun, number: i64) -> OpResult<RunEnded> {
    let session = &run.session;
    let is_job = tx
        .prepare("SELECT 1 FROM cron_runs WHERE session_key = ?1 AND agent_id = ?2")?
        .exists((session.key().as_str(), session.agent().as_str()))?;
    if !is_job {
        return Err(StateError::invalid(format!(
            "{session} is nobody's child and runs no cron job; only their runs are reported"
        ))
        .into());
    }
    if let Some(caller) = &run.caller
        && caller != session.key()
    {
        let reason = format!("only {session} and an operator report the end of its runs");
        return Err(StateError::NotPermitted(reason).into());
    }
    let run_id = match run.run_id.as_deref().map(str::parse) {
        None => None,
        Some(Ok(run_id)) => Some(run_id),
        Some(Err(_)) => {
            let reason = "a run of a cron job is named by the number that cron_run_begin answered";
            return Err(StateError::invalid(reason).into());
        }
    };
    end_cron_run(tx, session, run_id, run.outcome.as_str())?;
    tx.execute("DELETE FROM running_turns WHERE session = ?1", [number])?;
    Ok(RunEnded {
        sequence: None,
        parent: None,
    })
}

fn read_runs(conn: &Connection, page: &CronRunsPage) -> rusqlite::Result<CronRuns> {
    let mut runs: Vec<CronRunRow> = conn
        .prepare_cached(
            "SELECT id, job_id, session_key, agent_id, session_id, started_at, ended_at, outcome
             FROM cron_runs
             WHERE (?1 IS NULL OR job_id = ?1) AND (?2 IS NULL OR agent_id = ?2)
               AND (?3 IS NULL OR id < ?3)
             ORDER BY id DESC LIMIT ?4",
        )?
        .query_map(
            (
                page.job_id.as_deref(),
                page.agent.as_ref().map(AgentId::as_str),
                page.before.map(int),
                // One more tells whether there is another page.
                page.limit.saturating_add(1),
            ),
            run_row,
        )?
        .collect::<Result<_, _>>()?;
    let has_more = runs.len() > page.limit as usize;
    runs.truncate(page.limit as usize);
    let before = runs.last().filter(|_| has_more).map(|run| run.run_id);
    Ok(CronRuns { runs, before })
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<CronRunRow> {
    Ok(CronRunRow {
        run_id: number(row, 0)?,
        job_id: row.get(1)?,
        session_key: parsed(row, 2, SessionKey::parse)?,
        agent_id: row.get(3)?,
        session_id: row.get(4)?,
        started_at: row.get(5)?,
        ended_at: row.get(6)?,
        outcome: row.get(7)?,
    })
}
