//! The state database: schema, writer, readers, and the typed operations on it.
//!
//! [`State`] is the handle. Each operation is one transaction and answers only after it
//! stands on disk; what a transaction means to others goes out as [`Effect`]s after the
//! commit. No SQL and no row leaves this folder.
//!
//! | where | what |
//! |---|---|
//! | `engine` | how SQLite is run: opening, migrations, the writer, readers, checkpoints |
//! | `signals`, `evidence`, `changes`, `retention` | the log: recorded, explained, read as a delta, shortened |
//! | `cursors`, `watches`, `notices` | who watches whom, and what is pending |
//! | `turns`, `leases`, `messages`, `room` | what a turn takes, and gives back |
//! | `hooks` | what the hooks of an agent program do |
//! | `inputs`, `goals`, `children` | what a session is given: inputs, a goal, children and their results |
//! | `sessions`, `entry`, `lifecycle`, `agents` | entries, and what ends a session or an agent |
//! | `ended` | transcripts and agents whose files are to be put away |
//! | `cron` | runs of cron jobs |
//! | `runner` | sessions that the gateway itself runs |
//! | `maintenance` | what the upkeep of the store knows, and removes |
//! | `projections` | what `sessions.json` showed last, and what somebody made of it |
//! | `adoptions`, `links`, `reports` | upstream links, and what nodes report on them |
//! | `deliveries` | what was handed out to an upstream thread, for telling its echo |
//! | `nodes`, `pairing`, `enrolment`, `certificates` | nodes, join codes, how machines become nodes, certificates |
//! | `tokens` | API tokens |
//! | `audit` | what operators did |
//! | `figures` | what a monitoring system is told |
//! | `upkeep` | counts, integrity, backup |
//!
//! What moves a cursor, ends a link or becomes of an edit by hand is decided in `awareness`,
//! `upstream` and `sessions`; the operations here read, ask, and write.

mod address;
mod adoptions;
mod agents;
mod audit;
mod certificates;
mod changes;
mod children;
mod cron;
mod cursors;
mod deliveries;
mod effect;
mod ended;
mod engine;
mod enrolment;
mod entry;
mod error;
mod evidence;
mod figures;
mod goals;
mod hooks;
mod inputs;
mod leases;
mod lifecycle;
mod links;
mod maintenance;
mod messages;
mod nodes;
mod notices;
mod pairing;
mod projections;
mod random;
mod reports;
mod retention;
mod room;
mod runner;
mod sessions;
mod signals;
mod sql;
mod tokens;
mod turns;
mod upkeep;
mod watches;

use std::path::Path;
use std::sync::Arc;

use engine::{
    CheckpointSignal, Checkpointer, Files, Hub, OpResult, Opened, Priority, ReadError, Readers, Tx,
    Writer, WriterParts,
};
use rusqlite::Connection;
use tidings_node::clock::Clock;
use tokio::sync::{broadcast, watch};

pub use address::{AgentId, AgentIdError, MAX_AGENT_ID_BYTES, SessionAddress};
pub use adoptions::NewAdoption;
pub use audit::AuditAction;
pub use certificates::{CertificateRecord, NewCertificate};
pub use changes::{StatusAnswer, StatusRead};
pub use children::{FinishedRun, NewChild, RunBy, SpawnedChild};
pub use cron::{Conversation, CronRunBegun, CronRunsPage, NewCronRun};
pub use effect::{EFFECTS_KEPT, Effect, Health, Wake};
pub use ended::{EndedTranscript, Fate};
pub(crate) use engine::unwritten;
pub use engine::{DATABASE_FILE, OpenError, StateOptions, WriterFigures};
pub use enrolment::{EnrolRefusal, NameWish, NewNode};
pub use entry::Entry;
pub use error::StateError;
pub use figures::StateFigures;
pub use goals::{GoalChange, MAX_GOAL_BYTES};
pub use hooks::{HookStanding, Hooked};
pub use inputs::{Compacted, Compaction, NewInput};
pub use leases::LEASE_MS;
pub use lifecycle::{ResetSession, RollOver};
pub use links::{LinkRow, MAX_LINKS_PER_PAGE};
pub use maintenance::StoredEntry;
pub use messages::{
    Dispatched, MAX_MESSAGE_BYTES, MAX_WAITING_MESSAGES, NewMessage, QueuedMessage, Watching,
};
pub use nodes::{NodeRecord, NodeStanding};
pub use pairing::{InvitationStanding, NewInvitation, RedeemRefusal, Redeemed, Redemption};
pub use projections::{
    FileDigest, ForeignFile, InPlace, LastProjection, Merged, NextProjection, Projection,
};
pub(crate) use random::{bytes as random_bytes, fresh_token};
pub use retention::Retention;
pub use runner::{ContextSize, RunSession, TurnCost};
pub use sessions::{EnsuredSession, SessionMark, SessionsPage, Shelf, Transcript, VisibleSessions};
pub use signals::{MAX_ID_BYTES, NewSignal, SignalsPage};
pub use tokens::{NewToken, TokenRecord};
pub use turns::{TurnBegun, TurnSettled, TurnToken};
pub use upkeep::check_file;

/// A handle on the state database; clones share it.
#[derive(Clone)]
pub struct State {
    inner: Arc<Inner>,
}

struct Inner {
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    hub: Arc<Hub>,
    writer: Writer,
    readers: Readers,
    checkpointer: Checkpointer,
}

impl State {
    /// Opens the database in the state directory, made new or migrated where it must be.
    /// Blocks while it does.
    pub fn open(options: &StateOptions) -> Result<Self, OpenError> {
        let Opened {
            files,
            writer,
            checkpointer,
            readers,
            head,
        } = engine::open(options)?;
        let no_thread = |error: std::io::Error| OpenError::Failed {
            path: files.database().to_owned(),
            detail: error.to_string(),
        };
        let hub = Arc::new(Hub::new(head));
        let checkpoints = Arc::new(CheckpointSignal::new());
        let checkpointer = Checkpointer::start(
            checkpointer,
            Arc::clone(&files),
            Arc::clone(&hub),
            Arc::clone(&checkpoints),
        )
        .map_err(no_thread)?;
        let writer = Writer::start(WriterParts {
            conn: writer,
            files: Arc::clone(&files),
            clock: Arc::clone(&options.clock),
            hub: Arc::clone(&hub),
            checkpoints,
        })
        .map_err(no_thread)?;
        Ok(Self {
            inner: Arc::new(Inner {
                readers: Readers::new(files.database().to_owned(), Arc::clone(&hub), readers),
                files,
                clock: Arc::clone(&options.clock),
                hub,
                writer,
                checkpointer,
            }),
        })
    }

    /// Finishes what is queued, moves everything into the database file and closes it.
    /// Whatever other handles ask for from now on is answered with
    /// [`StateError::Closed`].
    pub async fn close(self) {
        self.inner.readers.close();
        let inner = Arc::clone(&self.inner);
        let closing = tokio::task::spawn_blocking(move || {
            // The writer's connection is the last to close: only it takes the log away.
            inner.checkpointer.join();
            inner.writer.close();
            inner.writer.join();
        });
        // It fails only where the runtime is going down itself.
        let _ = closing.await;
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        self.inner.files.database()
    }

    /// What is committed from now on. A receiver that lags is told so and reads afresh.
    pub fn subscribe(&self) -> broadcast::Receiver<Effect> {
        self.inner.hub.effects()
    }

    /// The highest sequence of the log, as it grows.
    pub fn head(&self) -> watch::Receiver<u64> {
        self.inner.hub.head()
    }

    /// How the database stands.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.hub.health()
    }

    async fn write<T, F>(&self, priority: Priority, op: F) -> Result<T, StateError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> OpResult<T> + Send + 'static,
    {
        self.inner.writer.run(priority, op).await
    }

    async fn read<T, F>(&self, op: F) -> Result<T, StateError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    {
        self.inner.readers.read(op).await
    }
}

#[cfg(test)]
mod tests;
