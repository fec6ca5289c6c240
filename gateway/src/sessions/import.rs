//! Takes over the sessions of a state directory of the OpenClaw layout, which is only read.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;

use super::artefacts::{Artefact, Kind, Named, classify, transcript_name};
use super::files::Files;
use super::merge::entry_of;
use super::names;
use super::projection::{MAX_STORE_BYTES, ProjectionError, Stores};
use super::routing::current_key;
use crate::config::Session;
use crate::state::{AgentId, Entry, SessionAddress};

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

/// A store of that layout, and how its keys are read.
struct Source<'a> {
    dir: &'a Path,
    agent: &'a AgentId,
    session: &'a Session,
    now: EpochMs,
}

/// The entries of a store of that layout, as they are here.
#[derive(Debug, Default)]
struct Converted {
    entries: BTreeMap<SessionAddress, Entry>,
    left_out: Vec<LeftOut>,
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
        let listed = self.blocking(move |files| files.list_dirs(&agents)).await?;
        for name in listed {
            match AgentId::parse(&name) {
                Ok(agent) if agent.as_str() == name => {
                    self.import_agent(source, &agent, session, &mut imported)
                        .await?;
                }
                _ => imported.left_out.push(LeftOut {
                    agent_id: name,
                    what: "the agent".to_owned(),
                    reason: "its directory's name is no agent id".to_owned(),
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
        let dir = names::sessions_dir(source, agent);
        let (owner, from) = (agent.clone(), dir.clone());
        let to = names::sessions_dir(&self.state_dir, agent);
        // Files first: an entry that is shown has its transcript.
        let copied = self
            .blocking(move |files| copy_files(files, &from, &to, &owner))
            .await?;
        let path = dir.join(names::STORE);
        let read = self
            .blocking(move |files| files.read(&path, MAX_STORE_BYTES))
            .await;
        let store = Source {
            dir: &dir,
            agent,
            session,
            now: self.clock.now(),
        };
        let converted = match read {
            Ok(Some((content, _))) => convert(&content, &store),
            Ok(None) => Converted::default(),
            Err(error) => Converted::refused(agent, names::STORE, &error.to_string()),
        };
        let all = converted.entries.len();
        let added = self
            .state
            .add_entries(converted.entries.into_iter().collect())
            .await?;
        self.sync(agent).await?;
        imported.agents.push(ImportedAgent {
            agent_id: agent.to_string(),
            entries: added,
            standing: all - added,
            files: copied.files,
            bytes: copied.bytes,
        });
        imported.left_out.extend(copied.left_out);
        imported.left_out.extend(converted.left_out);
        Ok(())
    }
}

#[derive(Default)]
struct Copied {
    files: usize,
    bytes: u64,
    left_out: Vec<LeftOut>,
}

/// Copies what belongs to sessions, and names what does not.
fn copy_files(files: &Files, from: &Path, to: &Path, agent: &AgentId) -> Result<Copied, FileError> {
    let mut copied = Copied::default();
    for file in files.list(from)? {
        let mut leave_out = |reason: &str| {
            copied.left_out.push(left_out(agent, &file.name, reason));
        };
        match classify(&file.name) {
            Artefact::Of(Kind::Lock, _) => {
                leave_out("a lock: the program that holds it may still write");
                continue;
            }
            Artefact::Of(Kind::Draft, _) => {
                leave_out("a program left it half-way");
                continue;
            }
            Artefact::Of(..) => {}
            Artefact::Ours => {
                if file.name != names::STORE {
                    leave_out("it is neither a store nor a transcript");
                }
                continue;
            }
            Artefact::Foreign => {
                leave_out("it is neither a store nor a transcript");
                continue;
            }
        }
        let target = to.join(&file.name);
        match files.look(&target)? {
            Some(seen) if seen.size == file.seen.size => continue,
            Some(_) => {
                leave_out("another file of this name stands here");
                continue;
            }
            None => {}
        }
        files.create_dir(to)?;
        match files.copy(&from.join(&file.name), &target) {
            Ok(bytes) => {
                copied.files += 1;
                copied.bytes += bytes;
            }
            Err(error) => leave_out(&error.to_string()),
        }
    }
    Ok(copied)
}

fn left_out(agent: &AgentId, what: &str, reason: &str) -> LeftOut {
    LeftOut {
        agent_id: agent.to_string(),
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

impl Converted {
    fn refused(agent: &AgentId, what: &str, reason: &str) -> Self {
        Self {
            entries: BTreeMap::new(),
            left_out: vec![left_out(agent, what, reason)],
        }
    }
}

/// The entries of a store of that layout: keys as they are today, fields that can be meant.
fn convert(content: &[u8], source: &Source<'_>) -> Converted {
    let Ok(written) = serde_json::from_slice::<Map<String, Value>>(content) else {
        return Converted::refused(source.agent, names::STORE, "it is not a JSON object");
    };
    let mut converted = Converted::default();
    for (key, value) in written {
        if let Err(reason) = converted.add(&key, value, source) {
            converted.leave_out(source, &shown(&key), &reason);
        }
    }
    converted
}

/// A key as a report shows it: it may be anything.
fn shown(key: &str) -> String {
    let key: String = key.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("entry {key}")
}

impl Converted {
    fn add(&mut self, key: &str, value: Value, source: &Source<'_>) -> Result<(), String> {
        let current =
            current_key(key, source.agent, source.session).map_err(|error| error.to_string())?;
        let address =
            SessionAddress::resolve(current, source.agent).map_err(|error| error.to_string())?;
        if address.agent() != source.agent {
            return Err(format!("it belongs to agent {}", address.agent()));
        }
        let Value::Object(mut fields) = value else {
            return Err("it is not a JSON object".to_owned());
        };
        for (field, reason) in mend(&mut fields, source.now) {
            self.leave_out(source, &format!("{field} of {}", shown(key)), &reason);
        }
        let mut entry = entry_of(Value::Object(fields), source.now)?;
        if entry.session_file.is_some() {
            entry.session_file = self.file_here(key, (&address, &entry), source);
        }
        let is_newer = |other: &Entry| other.updated_at < entry.updated_at;
        let reason = format!("a newer entry means {address} too");
        match self.entries.get(&address) {
            Some(other) if !is_newer(other) => return Err(reason),
            Some(_) => self.leave_out(source, &shown(key), &reason),
            None => {}
        }
        self.entries.insert(address, entry);
        Ok(())
    }

    /// The transcript's name, where it is not the usual one.
    fn file_here(
        &mut self,
        key: &str,
        (address, entry): (&SessionAddress, &Entry),
        source: &Source<'_>,
    ) -> Option<String> {
        let named = Named::by(address.key(), entry);
        let name = transcript_name(source.dir, named);
        if name.is_none() {
            let reason = "the transcript is not in the agent's session directory";
            self.leave_out(source, &format!("sessionFile of {}", shown(key)), reason);
        }
        let usual = transcript_name(
            source.dir,
            Named {
                file: None,
                ..named
            },
        );
        name.filter(|name| Some(name) != usual.as_ref())
    }

    fn leave_out(&mut self, source: &Source<'_>, what: &str, reason: &str) {
        self.left_out.push(left_out(source.agent, what, reason));
    }
}

/// Times become whole, and fields of another type than ours go: each with its reason.
fn mend(fields: &mut Map<String, Value>, now: EpochMs) -> Vec<(String, String)> {
    for (name, value) in fields.iter_mut() {
        let whole = value
            .as_f64()
            .filter(|_| name.ends_with("At") && !value.is_i64());
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a time that saturates is none"
        )]
        if let Some(time) = whole {
            *value = (time as i64).into();
        }
    }
    let mut gone = Vec::new();
    let names: Vec<String> = fields.keys().cloned().collect();
    for name in names.into_iter().filter(|name| name != "sessionId") {
        let alone = json!({"sessionId": "s", "updatedAt": now, name.clone(): fields[&name]});
        if let Err(reason) = entry_of(alone, now) {
            fields.remove(&name);
            gone.push((name, reason));
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: EpochMs = 1_800_000_000_000;

    fn source<'a>(dir: &'a Path, agent: &'a AgentId, session: &'a Session) -> Source<'a> {
        Source {
            dir,
            agent,
            session,
            now: NOW,
        }
    }

    fn converted(store: &Value) -> Converted {
        let agent = AgentId::parse("main").expect("agent");
        let dir = Path::new("/old/agents/main/sessions");
        convert(
            store.to_string().as_bytes(),
            &source(dir, &agent, &Session::default()),
        )
    }

    fn keys(converted: &Converted) -> Vec<String> {
        converted.entries.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_are_brought_up_to_date_and_of_two_that_mean_one_session_the_newer_counts() {
        let found = converted(&json!({
            "main": {"sessionId": "old", "updatedAt": 1},
            "agent:main:main": {"sessionId": "new", "updatedAt": 2},
            "telegram:group:-1": {"sessionId": "g", "updatedAt": 1},
            "agent:ops:main": {"sessionId": "o", "updatedAt": 1},
            "a b": {"sessionId": "x"},
        }));
        assert_eq!(
            keys(&found),
            ["agent:main:main", "agent:main:telegram:group:-1"]
        );
        assert!(
            found
                .entries
                .values()
                .any(|entry| entry.session_id == "new")
        );
        let reasons: Vec<&str> = found
            .left_out
            .iter()
            .map(|left| left.reason.as_str())
            .collect();
        assert_eq!(
            reasons,
            [
                "a session key has no white space, control characters or quotes",
                "it belongs to agent ops",
                "a newer entry means agent:main:main too",
            ]
        );
    }

    #[test]
    fn a_field_that_cannot_be_meant_goes_alone_and_its_text_is_not_repeated() {
        let found = converted(&json!({
            "agent:main:a": {
                "sessionId": "a", "updatedAt": 5.75, "fastMode": "canary", "label": "kept",
                "goal": {"text": "canary"}, "later": {"x": 1},
                "sessionFile": "/old/agents/main/sessions/a.jsonl",
            },
            "agent:main:b": {"sessionId": "b", "sessionFile": "/old/agents/main/sessions/own.jsonl"},
            "agent:main:c": {"sessionId": "c", "sessionFile": "/elsewhere/c.jsonl"},
            "agent:main:d": {"sessionId": "../d"},
            "agent:main:e": {"updatedAt": 5},
            "agent:main:f": 7,
        }));
        assert_eq!(
            keys(&found),
            ["agent:main:a", "agent:main:b", "agent:main:c"]
        );
        let entries: Vec<&Entry> = found.entries.values().collect();
        assert_eq!(
            (entries[0].updated_at, entries[0].label.as_deref()),
            (5, Some("kept"))
        );
        assert_eq!(entries[0].extra["later"]["x"], 1);
        let files: Vec<_> = entries
            .iter()
            .map(|entry| entry.session_file.as_deref())
            .collect();
        assert_eq!(files, [None, Some("own.jsonl"), None]);
        assert_eq!(found.left_out.len(), 6, "{:?}", found.left_out);
        assert!(!format!("{:?}", found.left_out).contains("canary"));
        for broken in ["", "[]", "null"] {
            let agent = AgentId::parse("main").expect("agent");
            let session = Session::default();
            let found = convert(broken.as_bytes(), &source(Path::new("/"), &agent, &session));
            assert_eq!((found.entries.len(), found.left_out.len()), (0, 1));
        }
    }
}
