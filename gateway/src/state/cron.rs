//! Runs of cron jobs, each in the session of its job.

use tidings_protocol::EpochMs;

use super::State;
use super::address::SessionAddress;
use super::engine::{OpResult, Priority, Tx};
use super::entry::{Entry, put_entry, read_entry};
use super::error::StateError;
use super::random;
use super::sessions::{ensure_entry, entries_changed};
use super::sql::uint;
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
#[derive(Debug, Clone, PartialEq)]
pub struct CronRunBegun {
    /// The run.
    pub run_id: u64,
    /// The conversation.
    pub session_id: String,
    /// When.
    pub started_at: EpochMs,
    /// True where the conversation is new.
    pub is_new: bool,
    /// The entry of the conversation that ended with it.
    pub ended: Option<Entry>,
}

impl State {
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
    let run_id = remember(tx, run, &session_id)?;
    Ok(CronRunBegun {
        run_id,
        is_new: ensured.created || ended.is_some(),
        session_id,
        started_at: tx.now(),
        ended,
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
