//! Keeps the projections in step: after each commit, and whenever somebody else wrote one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidings_node::private_files::FileError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::files::{Files, Seen};
use super::maintenance::keep::put_away;
use super::names;
use super::projection::{Stores, Synced};
use crate::config::Config;
use crate::state::AgentId;

/// Agents that wait for their projection; senders wait beyond it.
pub const QUEUE: usize = 64;
/// How often the files are looked at: an edit by hand is seen within two seconds.
const LOOK_EVERY: Duration = Duration::from_millis(750);
/// Changes within this time are written together.
const COALESCE: Duration = Duration::from_millis(100);
/// A large store takes long to write: this share of the time at most goes into it.
const WORK_SHARE: u32 = 10;
/// And never is it left alone for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How soon a projection that could not be written is tried again: a full disk has room some
/// time.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the projections of all agents, until nobody can change an entry any more. The
/// transcript of an entry that somebody took out is put away.
pub async fn keep(
    stores: Stores,
    config: watch::Receiver<Arc<Config>>,
    mut changed: mpsc::Receiver<AgentId>,
) {
    let mut keeper = Keeper {
        stores,
        in_step: BTreeMap::new(),
        failed: BTreeMap::new(),
    };
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut due = BTreeSet::new();
    loop {
        let mut flow = tokio::select! {
            agent = changed.recv() => match agent {
                Some(agent) => {
                    due.insert(agent);
                    Flow::Open
                }
                None => Flow::Closed,
            },
            _ = looks.tick() => {
                due.extend(keeper.out_of_step().await);
                Flow::Open
            }
        };
        if flow == Flow::Open && !due.is_empty() {
            flow = gather(&mut changed, &mut due, COALESCE).await;
        }
        let began = Instant::now();
        if !due.is_empty() {
            for agent in std::mem::take(&mut due) {
                keeper.sync(agent).await;
            }
            put_away(&keeper.stores, &config).await;
        }
        let pause = (began.elapsed() * WORK_SHARE).min(LONGEST_PAUSE);
        if flow == Flow::Open && pause > COALESCE {
            flow = gather(&mut changed, &mut due, pause).await;
        }
        if flow == Flow::Closed && due.is_empty() {
            return;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    Closed,
}

/// Takes in what changes within this time: senders never wait for a pause.
async fn gather(
    changed: &mut mpsc::Receiver<AgentId>,
    due: &mut BTreeSet<AgentId>,
    time: Duration,
) -> Flow {
    let end = Instant::now() + time;
    loop {
        match timeout_at(end, changed.recv()).await {
            Ok(Some(agent)) => {
                due.insert(agent);
            }
            Ok(None) => return Flow::Closed,
            Err(_) => return Flow::Open,
        }
    }
}

struct Keeper {
    stores: Stores,
    // What each file looked like when it and the entries were in step.
    in_step: BTreeMap<AgentId, Option<Seen>>,
    // When a projection could not be written.
    failed: BTreeMap<AgentId, Instant>,
}

impl Keeper {
    async fn sync(&mut self, agent: AgentId) {
        self.in_step.remove(&agent);
        self.failed.remove(&agent);
        match self.stores.sync(&agent).await {
            Ok(Synced::InPlace(seen)) => {
                self.in_step.insert(agent, seen);
            }
            // It comes up again at the next look.
            Ok(Synced::BeingWritten) => {}
            Err(error) => {
                tracing::warn!(%agent, %error, "{} was not written", names::STORE);
                self.failed.insert(agent, Instant::now());
            }
        }
    }

    /// The agents whose file looks otherwise than it did in step.
    async fn out_of_step(&self) -> BTreeSet<AgentId> {
        let looked = match self.look().await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::warn!(%error, "edits by hand are not seen");
                return BTreeSet::new();
            }
        };
        let is_due = |failed_at: &Instant| failed_at.elapsed() >= RETRY;
        let retried = (self.failed.iter()).filter_map(|(agent, at)| is_due(at).then_some(agent));
        let gone = (self.in_step.iter())
            .filter_map(|(agent, seen)| seen.is_some().then_some(agent))
            .filter(|agent| !looked.contains_key(agent));
        let changed = (looked.iter())
            .filter_map(|(agent, seen)| (self.in_step.get(agent) != Some(seen)).then_some(agent))
            .filter(|agent| !self.failed.contains_key(agent));
        retried.chain(gone).chain(changed).cloned().collect()
    }

    /// What the file of each agent looks like that has a directory.
    async fn look(&self) -> Result<BTreeMap<AgentId, Option<Seen>>, FileError> {
        let state_dir = self.stores.state_dir.clone();
        let looking = move |files: &Files| {
            let names = files.list_dirs(&names::agents_dir(&state_dir))?;
            let agents = names.iter().filter_map(|name| AgentId::parse(name).ok());
            let looked = agents.map(|agent| {
                let store = names::sessions_dir(&state_dir, &agent).join(names::STORE);
                (agent, files.look(&store).ok().flatten())
            });
            Ok(looked.collect())
        };
        self.stores.blocking(looking).await
    }
}
