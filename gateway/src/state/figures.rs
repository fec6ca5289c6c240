//! What a monitoring system is told of the database. No key of a session is in it.

use super::State;
use super::engine::{WriterFigures, log_bytes};
use super::error::StateError;
use super::sql::number;

/// How the database stands and works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateFigures {
    /// What its writer has done.
    pub writer: WriterFigures,
    /// How many requests wait for the writer: interactive ones, reports, upkeep.
    pub queued: [usize; 3],
    /// The size of its file.
    pub database_bytes: u64,
    /// The size of the log beside it.
    pub log_bytes: u64,
    /// Messages that nobody has taken yet.
    pub messages_waiting: u64,
    /// Turns that run.
    pub turns_running: u64,
    /// Texts that were handed out to threads and are remembered for telling their echoes.
    pub deliveries: u64,
    /// Those of them whose echo was told.
    pub echoes: u64,
}

impl State {
    /// How the database stands and works now.
    pub async fn figures(&self) -> Result<StateFigures, StateError> {
        let file = std::fs::metadata(self.path()).map_or(0, |file| file.len());
        let figures = StateFigures {
            writer: self.inner.hub.meter().figures(),
            queued: self.inner.writer.queued(),
            database_bytes: file,
            log_bytes: log_bytes(self.path()),
            ..StateFigures::default()
        };
        self.read(move |conn| {
            let read = conn
                .prepare_cached(
                    "SELECT (SELECT count(*) FROM messages WHERE delivered_at IS NULL),
                            (SELECT count(*) FROM running_turns),
                            (SELECT count(*) FROM deliveries),
                            (SELECT count(*) FROM deliveries WHERE echoed_at IS NOT NULL)",
                )?
                .query_row([], |row| {
                    Ok(StateFigures {
                        messages_waiting: number(row, 0)?,
                        turns_running: number(row, 1)?,
                        deliveries: number(row, 2)?,
                        echoes: number(row, 3)?,
                        ..figures
                    })
                })?;
            Ok(read)
        })
        .await
    }
}
