//! Takes over the sessions of a state directory of the OpenClaw layout, which is only read.

mod converting;
mod copying;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::FileType;
use std::iter;
use std::path::Path;

use serde::Serialize;

use super::artefacts::{Artefact, classify};
use super::names;
use super::projection::{MAX_STORE_BYTES, ProjectionError, Stores};
use crate::config::Session;
use crate::state::{AgentId, Entry, SessionAddress, StateError};
use converting::{Converted, Source, convert, shown};
use copying::{Wanted, copy_files};

/// What was taken over, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Each agent.
    pub agents: Vec<ImportedAgent>,
    /// What could not be taken, each with its reason.
    pub left_out: Vec<LeftOut>,
}

/// What was taken over of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedAgent {
    /// The agent.
    pub agent_id: String,
    /// Entries that are new here.
    pub entries: usize,
    /// Entries that stood here already, and stay as they are.
    pub standing: usize,
    /// Files that are new here.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
}

/// Something that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Whose.
    pub agent_id: String,
    /// A session key, or a file.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl Stores {
    /// Takes over every agent of `source`. What stands here already stays; a second time
    /// finds nothing new.
    pub async fn import(
        &self,
        source: &Path,
        session: &Session,
    ) -> Result<Imported, ProjectionError> {
        let mut imported = Imported::default();
        let agents = names::agents_dir(source);
        let listed = self.blocking(move |files| files.names(&agents)).await?;
        for (name, kind) in listed {
            match agent_of(&name, kind) {
                Ok(agent) => {
                    self.import_agent(source, &agent, session, &mut imported)
                        .await?;
                }
                Err(reason) => imported.left_out.push(LeftOut {
                    agent_id: name.to_string_lossy().into_owned(),
                    what: "the agent".to_owned(),
                    reason: reason.to_owned(),
                }),
            }
        }
        Ok(imported)
    }

    async fn import_agent(
        &self,
        source: &Path,
        agent: &AgentId,
        session: &Session,
        imported: &mut Imported,
    ) -> Result<(), ProjectionError> {
        let from = names::sessions_dir(source, agent);
        if let Some(reason) = self.but(&from, Wanted::Directory).await? {
            let what = "the session directory";
            imported.left_out.push(left_out(agent, what, reason));
            return Ok(());
        }
        let source = Source {
            dir: &from,
            agent,
            session,
            now: self.clock.now(),
        };
        let mut converted = self.converted(&source).await?;
        let entries = self.sorted(std::mem::take(&mut converted.entries)).await?;
        for (address, ..) in &entries.standing {
            let reason = "a session of this key stands here already";
            converted.leave_out(&source, &shown(address.key().as_str()), reason);
        }
        let standing = entries.standing.len();
        let others = entries.conversations_left_out();
        let (owner, dir) = (agent.clone(), from.clone());
        let to = names::sessions_dir(&self.state_dir, agent);
        // Files first: an entry that is shown has its transcript.
        let copied = self
            .blocking(move |files| copy_files(files, &dir, &to, &owner, &others))
            .await?;
        let added = self.state.add_entries(entries.new).await?;
        self.sync(agent).await?;
        imported.agents.push(ImportedAgent {
            agent_id: agent.to_string(),
            entries: added,
            standing,
            files: copied.files,
            bytes: copied.bytes,
        });
        imported.left_out.extend(copied.left_out);
        imported.left_out.extend(converted.left_out);
        Ok(())
    }

    /// Why what stands at a place is not what is wanted; `None` where it is, or nothing is.
    async fn but(
        &self,
        path: &Path,
        wanted: Wanted,
    ) -> Result<Option<&'static str>, ProjectionError> {
        let path = path.to_owned();
        let kind = self.blocking(move |files| files.kind(&path)).await?;
        Ok(kind.and_then(|kind| wanted.but(kind)))
    }

    async fn converted(&self, source: &Source<'_>) -> Result<Converted, ProjectionError> {
        let path = source.dir.join(names::STORE);
        if self.but(&path, Wanted::File).await?.is_some() {
            // Named with the other files that are none.
            return Ok(Converted::default());
        }
        let read = self
            .blocking(move |files| files.read(&path, MAX_STORE_BYTES))
            .await;
        Ok(match read {
            Ok(Some((content, _))) => convert(&content, source),
            Ok(None) => Converted::default(),
            Err(error) => Converted::refused(source.agent, names::STORE, &error.to_string()),
        })
    }

    /// Entries by whether one of the same key stands here.
    async fn sorted(
        &self,
        entries: BTreeMap<SessionAddress, Entry>,
    ) -> Result<Sorted, ProjectionError> {
        let mut sorted = Sorted::default();
        for (address, entry) in entries {
            match self.state.transcript_of(address.clone()).await {
                Ok(here) => sorted.standing.push((address, entry, here.session_id)),
                Err(StateError::UnknownSession(_)) => sorted.new.push((address, entry)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sorted)
    }
}

/// The agent whose directory this is, or why it is none.
fn agent_of(name: &OsStr, kind: FileType) -> Result<AgentId, &'static str> {
    if let Some(reason) = Wanted::Directory.but_named(name, kind) {
        return Err(reason);
    }
    let agent = AgentId::parse(&name.to_string_lossy()).ok();
    agent
        .filter(|agent| name == agent.as_str())
        .ok_or("its directory's name is no agent id")
}

/// Entries to be taken over.
#[derive(Default)]
struct Sorted {
    /// Those of keys that are new here.
    new: Vec<(SessionAddress, Entry)>,
    /// Those of keys that have an entry here, each with the conversation of that one.
    standing: Vec<(SessionAddress, Entry, String)>,
}

impl Sorted {
    /// The conversations that no entry here goes on with once the new ones are added.
    fn conversations_left_out(&self) -> HashSet<String> {
        let (same, other): (Vec<_>, Vec<_>) = self
            .standing
            .iter()
            .partition(|(_, entry, here)| entry.session_id == *here);
        let new = self.new.iter().map(|(_, entry)| entry);
        let kept: HashSet<&str> = new
            .chain(same.into_iter().map(|(_, entry, _)| entry))
            .flat_map(conversations)
            .collect();
        other
            .into_iter()
            .flat_map(|(_, entry, _)| conversations(entry))
            .filter(|id| !kept.contains(id))
            .map(str::to_owned)
            .collect()
    }
}

/// The conversation of an entry, as it is named and as its transcript is.
fn conversations(entry: &Entry) -> impl Iterator<Item = &str> {
    let file = entry.session_file.as_deref();
    let of_file = file.and_then(|name| match classify(name) {
        Artefact::Of(_, id) => Some(id),
        Artefact::Ours | Artefact::Foreign => None,
    });
    iter::once(entry.session_id.as_str()).chain(of_file)
}

fn left_out(agent: &AgentId, what: &str, reason: &str) -> LeftOut {
    LeftOut {
        agent_id: agent.to_string(),
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}
