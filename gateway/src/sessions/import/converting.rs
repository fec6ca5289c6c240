//! The entries of another store as they are here: keys as they are today, fields that can be
//! meant. Pure.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tidings_protocol::EpochMs;

use super::{LeftOut, left_out};
use crate::config::Session;
use crate::sessions::artefacts::{Named, transcript_name};
use crate::sessions::merge::entry_of;
use crate::sessions::names;
use crate::sessions::routing::current_key;
use crate::state::{AgentId, Entry, SessionAddress};

/// A store of that layout, and how its keys are read.
pub(super) struct Source<'a> {
    pub(super) dir: &'a Path,
    pub(super) agent: &'a AgentId,
    pub(super) session: &'a Session,
    pub(super) now: EpochMs,
}

/// The entries of a store of that layout, as they are here.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) entries: BTreeMap<SessionAddress, Entry>,
    pub(super) left_out: Vec<LeftOut>,
}

impl Converted {
    pub(super) fn refused(agent: &AgentId, what: &str, reason: &str) -> Self {
        Self {
            entries: BTreeMap::new(),
            left_out: vec![left_out(agent, what, reason)],
        }
    }
}

/// The entries of a store of that layout: keys as they are today, fields that can be meant.
pub(super) fn convert(content: &[u8], source: &Source<'_>) -> Converted {
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
pub(super) fn shown(key: &str) -> String {
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

    pub(super) fn leave_out(&mut self, source: &Source<'_>, what: &str, reason: &str) {
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
