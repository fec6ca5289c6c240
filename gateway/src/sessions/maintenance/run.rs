//! The upkeep of one store, done: what it knows, what it does, and what became of it.

use std::collections::BTreeSet;
use std::path::Path;

use tidings_node::private_files::FileError;

use super::facts::{Action, EntryFacts, Facts, FileFacts, Occasion, Plan, Reason, Settings};
use super::plan::plan;
use crate::sessions::artefacts::{Named, transcript_name};
use crate::sessions::files::{Files, Listed};
use crate::sessions::names;
use crate::sessions::projection::{ProjectionError, Stores};
use crate::state::{AgentId, AuditAction, StoredEntry};

/// How often others are looked for in the place of files that could not be removed.
const MOST_AGAIN: usize = 3;

/// Whether upkeep acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It only says what it would do.
    Nothing,
    /// It acts.
    Everything,
}

/// What upkeep did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Entries before.
    pub before: usize,
    /// Entries after.
    pub after: usize,
    /// Entries that went for their age.
    pub pruned: usize,
    /// Entries that went for their number or their size.
    pub capped: usize,
    /// Entries without a transcript.
    pub missing: usize,
    /// Bytes of files that are gone.
    pub freed_bytes: u64,
    /// What was done, in order.
    pub actions: Vec<Action>,
    /// Files that could not be removed.
    pub stuck: BTreeSet<String>,
}

impl Stores {
    /// What upkeep does with the store of an agent on this occasion, done or only said.
    pub async fn maintain(
        &self,
        agent: &AgentId,
        settings: &Settings,
        occasion: Occasion,
        doing: Doing,
    ) -> Result<Outcome, ProjectionError> {
        let facts = self.facts(agent).await?;
        let planned = plan(&facts, settings, occasion, self.clock.now());
        let before = facts.entries.len();
        match doing {
            Doing::Nothing => Ok(Outcome::of(before, planned)),
            Doing::Everything => {
                if occasion == Occasion::Asked {
                    self.record_asked(agent, &planned).await?;
                }
                let done = self.act(agent, before, planned).await?;
                if settings.maintenance.max_disk_bytes.value().is_none() {
                    return Ok(done);
                }
                self.act_again(agent, settings, occasion, done).await
            }
        }
    }

    /// Only what is gone is freed: where files could not be removed, others go in their place,
    /// until the budget is kept or there are none.
    async fn act_again(
        &self,
        agent: &AgentId,
        settings: &Settings,
        occasion: Occasion,
        mut done: Outcome,
    ) -> Result<Outcome, ProjectionError> {
        for _ in 0..MOST_AGAIN {
            if done.stuck.is_empty() {
                break;
            }
            let facts = Facts {
                stuck: done.stuck.clone(),
                ..self.facts(agent).await?
            };
            let planned = plan(&facts, settings, occasion, self.clock.now());
            if planned.actions.is_empty() {
                break;
            }
            let more = self.act(agent, facts.entries.len(), planned).await?;
            done.follow_with(more);
        }
        Ok(done)
    }

    /// What somebody asked for stands in the record before the first of it is done.
    async fn record_asked(&self, agent: &AgentId, planned: &Plan) -> Result<(), ProjectionError> {
        if planned.actions.is_empty() {
            return Ok(());
        }
        let is_entry = |action: &&Action| matches!(action, Action::Entry { .. });
        let entries = planned.actions.iter().filter(is_entry).count();
        let files: usize = planned
            .actions
            .iter()
            .map(|action| action.files().len())
            .sum();
        let outcome = format!("begun: {entries} entries and {files} files go");
        let target = agent.to_string();
        let recording = self
            .state
            .audit(AuditAction::Cleanup, target, Some(outcome));
        Ok(recording.await?)
    }

    async fn facts(&self, agent: &AgentId) -> Result<Facts, ProjectionError> {
        let dir = names::sessions_dir(&self.state_dir, agent);
        let entries = self.state.stored_entries(agent.clone()).await?;
        let listed = {
            let dir = dir.clone();
            self.blocking(move |files| files.list(&dir)).await?
        };
        let file = |listed: Listed| FileFacts {
            name: listed.name,
            size: listed.seen.size,
            modified: listed.seen.modified,
        };
        Ok(Facts {
            entries: entries
                .into_iter()
                .map(|stored| entry_facts(&dir, stored))
                .collect(),
            files: listed.into_iter().map(file).collect(),
            stuck: BTreeSet::new(),
        })
    }

    async fn act(
        &self,
        agent: &AgentId,
        before: usize,
        planned: Plan,
    ) -> Result<Outcome, ProjectionError> {
        let dir = names::sessions_dir(&self.state_dir, agent);
        let mut done = Outcome::of(
            before,
            Plan {
                actions: Vec::new(),
                missing: planned.missing,
            },
        );
        for action in planned.actions {
            if let Action::Entry {
                session,
                updated_at,
                ..
            } = &action
            {
                // The entry first: files that are left behind are found later, an entry
                // without its files would be a loss.
                let removed = self
                    .state
                    .remove_unneeded(session.clone(), *updated_at)
                    .await?;
                if !removed {
                    continue;
                }
            }
            let (dir, files) = (dir.clone(), action.files().to_vec());
            let (freed, stuck) = self
                .blocking(move |disk| Ok(remove_all(disk, &dir, &files)))
                .await?;
            done.freed_bytes += freed;
            done.stuck.extend(stuck);
            done.add(action);
        }
        Ok(done)
    }
}

impl Outcome {
    /// What a plan comes to, if all of it succeeds.
    fn of(before: usize, plan: Plan) -> Self {
        let mut outcome = Self {
            before,
            after: before,
            missing: plan.missing,
            freed_bytes: plan.actions.iter().map(Action::bytes).sum(),
            ..Self::default()
        };
        for action in plan.actions {
            outcome.add(action);
        }
        outcome
    }

    fn follow_with(&mut self, more: Self) {
        self.after = more.after;
        self.pruned += more.pruned;
        self.capped += more.capped;
        self.missing = more.missing;
        self.freed_bytes += more.freed_bytes;
        self.actions.extend(more.actions);
        self.stuck.extend(more.stuck);
    }

    fn add(&mut self, action: Action) {
        if let Action::Entry { reason, .. } = &action {
            self.after -= 1;
            match reason {
                Reason::MaxEntries | Reason::DiskBudget => self.capped += 1,
                _ => self.pruned += 1,
            }
        }
        self.actions.push(action);
    }
}

fn entry_facts(dir: &Path, stored: StoredEntry) -> EntryFacts {
    let entry = stored.entry;
    EntryFacts {
        transcript: transcript_name(dir, Named::by(stored.session.key(), &entry)),
        session: stored.session,
        session_id: entry.session_id,
        updated_at: entry.updated_at,
        last_interaction_at: entry
            .last_interaction_at
            .or(entry.session_started_at)
            .unwrap_or(entry.updated_at),
        chat_type: entry.chat_type,
        is_needed: stored.is_needed,
        is_adopted: stored.is_adopted,
    }
}

/// Removes files that are still what was seen of them; how many bytes that freed, and which
/// could not be removed.
fn remove_all(disk: &Files, dir: &Path, files: &[FileFacts]) -> (u64, Vec<String>) {
    let (mut freed, mut stuck) = (0, Vec::new());
    for file in files {
        match remove(disk, dir, file) {
            Ok(true) => freed += file.size,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "upkeep could not remove a file");
                stuck.push(file.name.clone());
            }
        }
    }
    (freed, stuck)
}

fn remove(disk: &Files, dir: &Path, file: &FileFacts) -> Result<bool, FileError> {
    let path = dir.join(&file.name);
    let is_same = disk
        .look(&path)?
        .is_some_and(|seen| (seen.size, seen.modified) == (file.size, file.modified));
    if is_same {
        disk.remove(&path)
    } else {
        Ok(false)
    }
}
