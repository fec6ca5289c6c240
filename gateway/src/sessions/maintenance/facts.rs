//! What upkeep knows, and what it decides.

use std::collections::BTreeSet;

use tidings_protocol::EpochMs;

use crate::config::{Age, Maintenance};
use crate::state::SessionAddress;

/// What upkeep knows of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFacts {
    /// The session.
    pub session: SessionAddress,
    /// The transcript that continues it.
    pub session_id: String,
    /// That file's name, where it is in this directory.
    pub transcript: Option<String>,
    /// When the entry last changed.
    pub updated_at: EpochMs,
    /// When somebody last spoke in it; where nobody knows, when its conversation began, else
    /// when it last changed.
    pub last_interaction_at: EpochMs,
    /// `direct`, `group` or `room`.
    pub chat_type: Option<String>,
    /// True while a turn runs, somebody watches it, it watches somebody, a notice or a message
    /// waits for it, or its thread is followed: it stays.
    pub is_needed: bool,
    /// True where the transcript is with an agent program.
    pub is_adopted: bool,
}

/// What upkeep knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed.
    pub modified: EpochMs,
}

/// One store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its entries.
    pub entries: Vec<EntryFacts>,
    /// The files of its directory.
    pub files: Vec<FileFacts>,
    /// Those that cannot be removed: they count, and another has to go in their place.
    pub stuck: BTreeSet<String>,
}

/// Why upkeep runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// By itself, while the clock may not be believed: nothing goes for its age.
    Unsure,
    /// By itself.
    Usual,
    /// Somebody asked for it: limits apply at once, and what no entry names goes for its age.
    Asked,
}

/// The settings of upkeep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Of the store.
    pub maintenance: Maintenance,
    /// How long sessions of cron runs are kept.
    pub cron_retention: Option<Age>,
}

/// Why something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The session of a cron run was kept long enough.
    CronRetention,
    /// A probe of a model was kept long enough, and there are too many entries.
    ModelRun,
    /// It did not change for `pruneAfter`.
    PruneAfter,
    /// There are too many entries.
    MaxEntries,
    /// An archive was kept long enough.
    Archive,
    /// No entry names it, and it did not change for `pruneAfter`.
    Orphan,
    /// The directory is larger than its budget.
    DiskBudget,
}

/// One thing that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An entry, with all that is its own, and then its files.
    Entry {
        /// The session.
        session: SessionAddress,
        /// When it last changed, as this was decided.
        updated_at: EpochMs,
        /// Its files.
        files: Vec<FileFacts>,
        /// Why.
        reason: Reason,
    },
    /// A file that no entry names.
    File {
        /// The file.
        file: FileFacts,
        /// Why.
        reason: Reason,
    },
}

/// What upkeep does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What goes, in order.
    pub actions: Vec<Action>,
    /// Entries without a transcript: counted, never removed for it.
    pub missing: usize,
}

impl Reason {
    /// The reason as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CronRetention => "cronRetention",
            Self::ModelRun => "modelRun",
            Self::PruneAfter => "pruneAfter",
            Self::MaxEntries => "maxEntries",
            Self::Archive => "resetArchiveRetention",
            Self::Orphan => "orphan",
            Self::DiskBudget => "maxDiskBytes",
        }
    }
}

impl Action {
    /// The files that go.
    #[must_use]
    pub fn files(&self) -> &[FileFacts] {
        match self {
            Self::Entry { files, .. } => files,
            Self::File { file, .. } => std::slice::from_ref(file),
        }
    }

    /// How many bytes that frees.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files().iter().map(|file| file.size).sum()
    }
}
