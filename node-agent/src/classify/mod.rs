//! Which records of a transcript are a human speaking.
//!
//! A classifier is a pure function of the record, what is known about its file, and a small
//! carried state. No content leaves it: what comes out is a verdict, the rule that gave it,
//! the record's id and time, and, for telling echoes on this machine, the words of a human.

mod claude;
mod codex;
mod file;
mod json;
mod line;
mod openclaw;
mod recognise;
mod sieve;
mod strings;
mod time;
mod waiting;
mod words;

use std::path::Path;

use serde::Serialize;
use tidings_protocol::marker::{Carried, MAX_VERSION_BYTES, ThreadFacts};
use tidings_protocol::{Catalog, EpochMs};

pub use file::{ClassifiedRecord, ClassifyFileError, FileClassification, classify_file};
pub use words::echo_digest;

pub(crate) use claude::is_program_entrypoint;
pub(crate) use codex::is_injected_by_codex;
pub(crate) use json::{Value, unescaped};
pub(crate) use line::{Piece, has_known_type, last_record, pieces, trimmed_len};
pub(crate) use sieve::Sieve;
pub(crate) use time::time_in;
pub(crate) use waiting::{Earlier, another_follows, settle};
pub(crate) use words::Words;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A direct human message.
    Human,
    /// Anything else that is known.
    NotHuman,
    /// The format has a field or shape that this build does not know.
    Unclassified,
}

/// A verdict and the rule that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) verdict: Verdict,
    pub(crate) rule: &'static str,
}

impl Ruling {
    pub(crate) const fn human(rule: &'static str) -> Self {
        Self {
            verdict: Verdict::Human,
            rule,
        }
    }

    pub(crate) const fn not(rule: &'static str) -> Self {
        Self {
            verdict: Verdict::NotHuman,
            rule,
        }
    }

    pub(crate) const fn unclassified(rule: &'static str) -> Self {
        Self {
            verdict: Verdict::Unclassified,
            rule,
        }
    }

    pub(crate) fn is_human(self) -> bool {
        self.verdict == Verdict::Human
    }
}

/// What is known about a file before a record of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) catalog: Catalog,
    /// A sub-agent's file, by its name or place.
    pub(crate) side_file: bool,
    /// Pi's own file: the program that shares OpenClaw's format and does not write a prompt
    /// again when it falls back to another model.
    pub(crate) pi: bool,
}

impl Source {
    pub(crate) fn of(catalog: Catalog, path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            catalog,
            side_file: path.iter().any(|part| part == "subagents") || stem.starts_with("agent-"),
            pi: openclaw::is_pi_path(path),
        }
    }
}

/// One record: a complete JSON object and its place in the file.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What a record left in the carried state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    /// The newest open queue item.
    QueueItem,
    /// The newest waiting record.
    Waiting,
}

/// What became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) ruling: Ruling,
    pub(crate) id: Option<String>,
    pub(crate) at: Option<EpochMs>,
    /// The words of a human turn, or of what may become one.
    pub(crate) words: Words,
    /// False for what was open already at adoption.
    pub(crate) counts: bool,
    /// The record says itself which version wrote it.
    pub(crate) names_version: bool,
    pub(crate) left: Left,
    /// Waiting records that this one decided.
    pub(crate) earlier: Vec<Earlier>,
}

impl Judged {
    fn new(ruling: Ruling, id: Option<String>, at: Option<EpochMs>) -> Self {
        Self {
            ruling,
            id,
            at,
            words: Words::default(),
            counts: true,
            names_version: false,
            left: Left::Nothing,
            earlier: Vec::new(),
        }
    }
}

/// What is remembered of the records before the one that is judged.
pub(crate) trait Before {
    /// True when a record of this id was accepted, or was a copy.
    fn knows(&self, id: &str) -> bool;

    /// Keeps what records that nobody needed to judge say about their thread.
    fn catch_up(&self, facts: &mut ThreadFacts);
}

/// Judges one record and carries on what the next ones need.
pub(crate) fn judge(
    source: Source,
    record: Record<'_>,
    before: &dyn Before,
    carried: &mut Carried,
) -> Judged {
    match source.catalog {
        Catalog::Claude => claude::judge(source, record, before, carried),
        Catalog::Codex => codex::judge(record, before, carried),
        Catalog::Openclaw => openclaw::judge(source, record, before, carried),
    }
}

/// True when a line that the sieve held back can be passed over all the same, but for what
/// [`traces`] finds.
#[inline]
pub(crate) fn cannot_matter(catalog: Catalog, line: &[u8]) -> bool {
    catalog == Catalog::Claude && claude::cannot_matter(line)
}

/// What even a record that nobody needs to judge leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) id: Option<String>,
    pub(crate) at: Option<EpochMs>,
    pub(crate) version: Option<String>,
    pub(crate) entrypoint: Option<String>,
}

/// The traces of a line that nobody needed to parse.
pub(crate) fn traces(catalog: Catalog, line: &[u8]) -> Traces {
    let traces = match catalog {
        Catalog::Claude => claude::traces(line),
        Catalog::Codex => codex::traces(line),
        Catalog::Openclaw => openclaw::traces(line),
    };
    // A torn record leaves nothing: a whole one may have the same id.
    traces.unwrap_or_default()
}

/// Keeps what a record's traces say about its thread: the version, and the entry point that
/// stands beside it.
pub(crate) fn note_traces(traces: &Traces, facts: &mut ThreadFacts) {
    let Some(version) = &traces.version else {
        return;
    };
    facts.version = Some(short_version(version));
    facts.kind = claude::thread_kind(traces.entrypoint.as_deref());
}

fn short_version(version: &str) -> String {
    version
        .chars()
        .filter(char::is_ascii_graphic)
        .take(MAX_VERSION_BYTES)
        .collect()
}
