//! What the upkeep of one store does: a pure function of its entries, its files, the settings
//! and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidings_protocol::EpochMs;

use super::facts::{Action, EntryFacts, Facts, FileFacts, Occasion, Plan, Reason, Settings};
use super::owned::{Named, Owned};
use crate::sessions::artefacts::{Artefact, Kind, classify};

/// How long a gateway's probe of a model is kept, where there are too many entries.
const MODEL_RUN_KEPT: Duration = Duration::from_hours(24);
/// By so many entries a store may outgrow its limit before upkeep by itself cuts it: a tenth,
/// but not more.
const MAX_BUFFER: usize = 50;

/// What upkeep does with a store now.
#[must_use]
pub fn plan(facts: &Facts, settings: &Settings, occasion: Occasion, now: EpochMs) -> Plan {
    let mut planner = Planner::new(facts, settings, now);
    if occasion != Occasion::Unsure {
        planner.end_cron_runs();
    }
    let has_room_above = occasion != Occasion::Asked;
    let limit = planner.limit(has_room_above);
    if planner.left.len() > limit {
        planner.end_model_runs();
    }
    if occasion != Occasion::Unsure {
        planner.prune();
    }
    if planner.left.len() > limit {
        planner.cap();
    }
    if occasion != Occasion::Unsure {
        planner.remove_archives();
    }
    if occasion == Occasion::Asked {
        planner.remove_orphans();
    }
    planner.keep_budget();
    Plan {
        missing: planner.missing(),
        actions: planner.actions,
    }
}

struct Planner<'a> {
    settings: &'a Settings,
    now: EpochMs,
    // The oldest first.
    left: Vec<&'a EntryFacts>,
    // By name.
    files: BTreeMap<&'a str, &'a FileFacts>,
    stuck: &'a BTreeSet<String>,
    owned: Owned<'a>,
    // Sessions whose transcript somebody writes.
    locked: BTreeSet<&'a str>,
    actions: Vec<Action>,
}

impl<'a> Planner<'a> {
    fn new(facts: &'a Facts, settings: &'a Settings, now: EpochMs) -> Self {
        let mut left: Vec<&EntryFacts> = facts.entries.iter().collect();
        left.sort_by_key(|entry| (entry.updated_at, &entry.session));
        let locked = facts
            .files
            .iter()
            .filter_map(|file| match classify(&file.name) {
                Artefact::Of(Kind::Lock, id) => Some(id),
                _ => None,
            });
        Self {
            settings,
            now,
            left,
            files: facts
                .files
                .iter()
                .map(|file| (file.name.as_str(), file))
                .collect(),
            stuck: &facts.stuck,
            owned: Owned::new(facts),
            locked: locked.collect(),
            actions: Vec::new(),
        }
    }

    fn limit(&self, has_room_above: bool) -> usize {
        let limit = usize::try_from(self.settings.maintenance.max_entries).unwrap_or(usize::MAX);
        let buffer = if has_room_above {
            (limit / 10).clamp(1, MAX_BUFFER)
        } else {
            0
        };
        limit.saturating_add(buffer)
    }

    fn is_older(&self, time: EpochMs, age: Duration) -> bool {
        let age = EpochMs::try_from(age.as_millis()).unwrap_or(EpochMs::MAX);
        self.now.saturating_sub(time) > age
    }

    fn prune_after(&self) -> Duration {
        self.settings.maintenance.prune_after.0
    }

    /// True for what stays whatever the limits say.
    fn is_kept(&self, entry: &EntryFacts) -> bool {
        let is_alive =
            is_shared(entry) && !self.is_older(entry.last_interaction_at, self.prune_after());
        entry.is_needed || is_alive || self.locked.contains(entry.session_id.as_str())
    }

    fn end_cron_runs(&mut self) {
        let Some(retention) = self.settings.cron_retention else {
            return;
        };
        self.remove_where(Reason::CronRetention, |planner, entry| {
            is_cron_run(entry) && planner.is_older(entry.updated_at, retention.0)
        });
    }

    fn end_model_runs(&mut self) {
        self.remove_where(Reason::ModelRun, |planner, entry| {
            is_model_run(entry.session.key().as_str())
                && planner.is_older(entry.updated_at, MODEL_RUN_KEPT)
        });
    }

    fn prune(&mut self) {
        self.remove_where(Reason::PruneAfter, |planner, entry| {
            planner.is_older(entry.updated_at, planner.prune_after())
        });
    }

    fn cap(&mut self) {
        let mut surplus = self.left.len().saturating_sub(self.limit(false));
        self.remove_where(Reason::MaxEntries, |_, _| {
            let goes = surplus > 0;
            surplus = surplus.saturating_sub(1);
            goes
        });
    }

    /// Removes entries that nothing keeps, the oldest first.
    fn remove_where(&mut self, reason: Reason, mut goes: impl FnMut(&Self, &EntryFacts) -> bool) {
        for entry in std::mem::take(&mut self.left) {
            if !self.is_kept(entry) && goes(self, entry) {
                self.remove_entry(entry, reason);
            } else {
                self.left.push(entry);
            }
        }
    }

    fn remove_entry(&mut self, entry: &'a EntryFacts, reason: Reason) {
        let names = self.owned.give_up(entry);
        let files = names.iter().filter_map(|name| self.files.remove(name));
        self.actions.push(Action::Entry {
            session: entry.session.clone(),
            updated_at: entry.updated_at,
            files: files.cloned().collect(),
            reason,
        });
    }

    fn remove_archives(&mut self) {
        let retention = self.settings.maintenance.reset_archive_retention;
        let Some(retention) = retention.resolve(self.settings.maintenance.prune_after) else {
            return;
        };
        self.remove_files(Reason::Archive, |planner, file| {
            matches!(classify(&file.name), Artefact::Of(Kind::ResetArchive, _))
                && planner.is_older(file.modified, retention.0)
        });
    }

    fn remove_orphans(&mut self) {
        let named = self.named();
        self.remove_files(Reason::Orphan, |planner, file| {
            let kind = named.orphan(&file.name);
            kind.is_some_and(|kind| kind != Kind::ResetArchive)
                && planner.is_older(file.modified, planner.prune_after())
        });
    }

    fn remove_files(&mut self, reason: Reason, goes: impl Fn(&Self, &FileFacts) -> bool) {
        let files: Vec<&FileFacts> = self.files.values().copied().collect();
        for file in files {
            if !self.stuck.contains(&file.name) && goes(self, file) {
                self.remove_file(file, reason);
            }
        }
    }

    fn remove_file(&mut self, file: &FileFacts, reason: Reason) {
        self.files.remove(file.name.as_str());
        self.actions.push(Action::File {
            file: file.clone(),
            reason,
        });
    }

    fn keep_budget(&mut self) {
        let maintenance = &self.settings.maintenance;
        let Some(budget) = maintenance.max_disk_bytes.value() else {
            return;
        };
        let used: u64 = self.files.values().map(|file| file.size).sum();
        if used <= budget.0 {
            return;
        }
        let mark = maintenance.high_water_bytes.resolve(budget.0);
        let mut surplus = used - mark;
        let named = self.named();
        // Archives and what no entry names, the oldest first.
        let mut loose: Vec<&FileFacts> = self
            .files
            .values()
            .filter(|file| named.loose(&file.name) && !self.stuck.contains(&file.name))
            .copied()
            .collect();
        loose.sort_by_key(|file| (file.modified, &file.name));
        for file in loose {
            if surplus == 0 {
                return;
            }
            self.remove_file(file, Reason::DiskBudget);
            surplus = surplus.saturating_sub(file.size);
        }
        self.remove_entries_for(surplus);
    }

    /// Entries that nothing keeps, the oldest first, until so many bytes are free.
    fn remove_entries_for(&mut self, mut surplus: u64) {
        for entry in std::mem::take(&mut self.left) {
            if surplus == 0 || self.is_kept(entry) {
                self.left.push(entry);
                continue;
            }
            self.remove_entry(entry, Reason::DiskBudget);
            let freed = self.actions.last().map_or(0, Action::bytes);
            surplus = surplus.saturating_sub(freed);
        }
    }

    fn named(&self) -> Named {
        Named {
            ids: self
                .left
                .iter()
                .map(|entry| entry.session_id.clone())
                .collect(),
            files: self
                .left
                .iter()
                .filter_map(|entry| entry.transcript.clone())
                .collect(),
            locked: self.locked.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn missing(&self) -> usize {
        let is_missing = |entry: &&&EntryFacts| {
            let transcript = entry.transcript.as_deref();
            !entry.is_adopted && transcript.is_some_and(|name| !self.files.contains_key(name))
        };
        self.left.iter().filter(is_missing).count()
    }
}

/// True for conversations of several people, and for threads.
fn is_shared(entry: &EntryFacts) -> bool {
    let key = entry.session.key().as_str();
    let parts = [":group:", ":channel:", ":room:", ":thread:", ":topic:"];
    matches!(entry.chat_type.as_deref(), Some("group" | "room"))
        || parts.iter().any(|part| key.contains(part))
}

fn is_cron_run(entry: &EntryFacts) -> bool {
    entry.session.key().as_str().starts_with("cron:")
}

/// Exactly `agent:<agent>:explicit:model-run-<uuid>`.
fn is_model_run(key: &str) -> bool {
    let mut segments = key.split(':');
    let head = [
        segments.next(),
        segments.next().map(|_| "agent id"),
        segments.next(),
    ];
    let run = segments
        .next()
        .and_then(|run| run.strip_prefix("model-run-"));
    head == [Some("agent"), Some("agent id"), Some("explicit")]
        && segments.next().is_none()
        && run.is_some_and(is_uuid)
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}
