//! What a `sessions.json` that somebody else wrote means: three ways, entry by entry, between
//! what the file last showed, what it shows now, and what the database holds. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tidings_protocol::digest::sha256;
use tidings_protocol::{EpochMs, SessionKey};

use crate::state::{AgentId, Entry, SessionAddress};

/// Tells an entry from another.
pub type EntryDigest = [u8; 16];

/// An edit that removes fewer entries than this is meant, whatever share they are.
const MANY: usize = 10;
/// The longest session id: it names a file.
const MAX_SESSION_ID_BYTES: usize = 200;

/// What the file may have shown of one entry before somebody else wrote it. There are two
/// possibilities while a new projection is under way: it is in place, or not yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// The newest projection; `None` where it has no such entry.
    pub last: Option<EntryDigest>,
    /// The one before, while the newest may not be in place yet.
    pub before: Option<Option<EntryDigest>>,
}

/// One entry that somebody else changed in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct HandEdit {
    /// The session.
    pub session: SessionAddress,
    /// What it is now; `None` for an entry that was taken out.
    pub wanted: Option<Entry>,
    /// What the file showed before.
    pub known: Known,
}

/// What becomes of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is taken.
    Take,
    /// It stands already.
    Stands,
    /// The gateway changed the entry too: its own stays.
    Conflict,
}

/// Why a file is set aside whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is no store.
    #[error("it is not a JSON object of session entries")]
    Unreadable,
    /// A broken file is not an empty store.
    #[error("it lacks {gone} of {all} entries")]
    TooManyGone {
        /// How many are not in it.
        gone: usize,
        /// How many there were.
        all: usize,
    },
}

/// The entries of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileEntries {
    /// Those that can be meant.
    pub entries: BTreeMap<SessionAddress, Entry>,
    /// Why others cannot, each with its key where that is one.
    pub refused: Vec<Refused>,
    /// Every session that it names: one whose entry is refused was not taken out.
    pub mentioned: BTreeSet<SessionAddress>,
}

/// An entry that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its key, where it is one.
    pub key: Option<SessionKey>,
    /// What is wrong; the file's text is not repeated.
    pub reason: String,
}

impl Known {
    fn may_have_shown(&self, digest: Option<EntryDigest>) -> bool {
        self.last == digest || self.before == Some(digest)
    }
}

/// The digest of an entry: of what it says, not of how somebody formatted it.
pub fn digest_of(entry: &Entry) -> EntryDigest {
    // An entry has string keys and whole numbers only, so it is always JSON.
    let json = serde_json::to_vec(entry).unwrap_or_default();
    let mut digest = [0; 16];
    digest.copy_from_slice(&sha256(&json)[..16]);
    digest
}

/// Reads the file of an agent's store.
pub fn read_file(content: &[u8], agent: &AgentId, now: EpochMs) -> Result<FileEntries, Rejected> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let written: Map<String, Value> =
        serde_json::from_slice(content).map_err(|_| Rejected::Unreadable)?;
    let mut file = FileEntries::default();
    for (key, value) in written {
        if let Err(refused) = file.add(&key, value, agent, now) {
            file.refused.push(refused);
        }
    }
    Ok(file)
}

impl FileEntries {
    fn add(
        &mut self,
        key: &str,
        value: Value,
        agent: &AgentId,
        now: EpochMs,
    ) -> Result<(), Refused> {
        let nameless = |reason: String| Refused { key: None, reason };
        let key = SessionKey::parse(key).map_err(|error| nameless(error.to_string()))?;
        let refused = |reason: String| Refused {
            key: Some(key.clone()),
            reason,
        };
        let session = SessionAddress::resolve(key.clone(), agent)
            .map_err(|error| refused(error.to_string()))?;
        if session.agent() != agent {
            let reason = format!("it belongs to agent {}", session.agent());
            return Err(refused(reason));
        }
        self.mentioned.insert(session.clone());
        let entry = entry_of(value, now).map_err(refused)?;
        if self.entries.contains_key(&session) {
            return Err(refused("it stands there twice".to_owned()));
        }
        self.entries.insert(session, entry);
        Ok(())
    }
}

/// An entry as somebody wrote it: what is never absent in ours may be in theirs.
pub fn entry_of(value: Value, now: EpochMs) -> Result<Entry, String> {
    let Value::Object(mut fields) = value else {
        return Err("it is not a JSON object".to_owned());
    };
    fields.entry("updatedAt").or_insert_with(|| now.into());
    let mut entry: Entry = serde_json::from_value(Value::Object(fields))
        .map_err(|error| format!("a field is missing or of another type: {}", kind(&error)))?;
    check_session_id(&entry.session_id)?;
    if entry.archived_at.is_some() {
        entry.pinned_at = None;
    }
    Ok(entry)
}

/// What an error says about the field, without the text that was found in it.
fn kind(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once("expected") {
        Some((_, expected)) => format!("expected{expected}"),
        None => text,
    }
}

/// Checks that a session id can name a file.
pub fn check_session_id(id: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    let is_name = (1..=MAX_SESSION_ID_BYTES).contains(&id.len())
        && !id.starts_with('.')
        && id.chars().all(is_plain);
    if is_name {
        Ok(())
    } else {
        Err("its sessionId cannot name a file".to_owned())
    }
}

/// What the file shows of each session: of one whose entry is refused, what was known of it.
pub fn shown(
    known: &BTreeMap<SessionAddress, Known>,
    file: &FileEntries,
) -> BTreeMap<SessionKey, EntryDigest> {
    let digest = |session: &SessionAddress| match file.entries.get(session) {
        Some(entry) => Some(digest_of(entry)),
        None => known.get(session)?.last,
    };
    let shown = |session: &SessionAddress| Some((session.key().clone(), digest(session)?));
    file.mentioned.iter().filter_map(shown).collect()
}

/// What somebody changed, compared with what the file showed before.
pub fn hand_edits(
    known: &BTreeMap<SessionAddress, Known>,
    file: &FileEntries,
) -> Result<Vec<HandEdit>, Rejected> {
    let all = known.values().filter(|known| known.last.is_some()).count();
    let gone: Vec<HandEdit> = known
        .iter()
        .filter(|(session, known)| !file.mentioned.contains(session) && !known.may_have_shown(None))
        .map(|(session, known)| HandEdit {
            session: session.clone(),
            wanted: None,
            known: *known,
        })
        .collect();
    if gone.len() >= MANY && gone.len() > all / 2 {
        let gone = gone.len();
        return Err(Rejected::TooManyGone { gone, all });
    }
    let mut edits = gone;
    for (session, entry) in &file.entries {
        let known = known.get(session).copied().unwrap_or_default();
        if !known.may_have_shown(Some(digest_of(entry))) {
            edits.push(HandEdit {
                session: session.clone(),
                wanted: Some(entry.clone()),
                known,
            });
        }
    }
    Ok(edits)
}

/// What becomes of an edit, where the database holds `current`.
pub fn settle(edit: &HandEdit, current: Option<&Entry>) -> Settled {
    let current = current.map(digest_of);
    if current == edit.wanted.as_ref().map(digest_of) {
        Settled::Stands
    } else if edit.known.may_have_shown(current) {
        Settled::Take
    } else {
        Settled::Conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: EpochMs = 1_800_000_000_000;

    fn agent() -> AgentId {
        AgentId::parse("main").expect("agent")
    }

    fn session(key: &str) -> SessionAddress {
        let key = SessionKey::parse(key).expect("key");
        SessionAddress::resolve(key, &agent()).expect("address")
    }

    fn entry(label: &str) -> Entry {
        let json = format!(r#"{{"sessionId":"s","updatedAt":5,"label":"{label}"}}"#);
        serde_json::from_str(&json).expect("entry")
    }

    fn read(json: &str) -> Result<FileEntries, Rejected> {
        read_file(json.as_bytes(), &agent(), NOW)
    }

    #[test]
    fn a_broken_file_is_no_store_and_never_an_empty_one() {
        for broken in ["", " ", "null", "[]", "{", "{\"a\":", "{} x", "\0\0", "7"] {
            assert_eq!(read(broken), Err(Rejected::Unreadable), "{broken:?}");
        }
        let empty = read("\u{feff}{}").expect("an empty store");
        assert_eq!(empty, FileEntries::default());
    }

    #[test]
    fn an_entry_that_cannot_be_meant_is_refused_alone_and_its_text_is_not_repeated() {
        for (key, entry, reason) in [
            ("agent:main:b c", "{}", "white space"),
            (
                "agent:ops:x",
                r#"{"sessionId":"s"}"#,
                "belongs to agent ops",
            ),
            ("agent:main:x", "7", "not a JSON object"),
            ("agent:main:x", "{}", "missing"),
            (
                "agent:main:x",
                r#"{"sessionId":"../up"}"#,
                "cannot name a file",
            ),
            ("agent:main:x", r#"{"sessionId":""}"#, "cannot name a file"),
            (
                "agent:main:x",
                r#"{"sessionId":"s","updatedAt":5.5}"#,
                "expected i64",
            ),
            (
                "agent:main:x",
                r#"{"sessionId":"s","label":{"canary":"canary"}}"#,
                "expected a string",
            ),
            (
                "agent:main:x",
                r#"{"sessionId":"s","fastMode":"canary"}"#,
                "expected a boolean",
            ),
        ] {
            let json = format!(r#"{{"{key}":{entry},"agent:main:good":{{"sessionId":"g"}}}}"#);
            let file = read(&json).expect("an object");
            assert_eq!(file.entries.len(), 1, "{key} {entry}");
            let said = &file.refused[0].reason;
            assert!(said.contains(reason), "{key} {entry}: {said}");
            assert!(!said.contains("canary"), "{said}");
        }
    }

    #[test]
    fn what_is_written_by_hand_may_lack_a_time_and_be_in_odd_case() {
        let file = read(r#"{" Agent:MAIN:X ":{"sessionId":"s","pinnedAt":1,"archivedAt":2}}"#);
        let file = file.expect("an object");
        let entry = &file.entries[&session("agent:main:x")];
        assert_eq!((entry.updated_at, entry.pinned_at), (NOW, None));
        let twice = r#"{"agent:main:x":{"sessionId":"s"},"agent:main:X":{"sessionId":"t"}}"#;
        let file = read(twice).expect("an object");
        assert_eq!((file.entries.len(), file.refused.len()), (1, 1));
    }

    /// `last` and `before`, each a label or `-`; `before` may be absent.
    fn known(last: &str, before: Option<&str>) -> Known {
        let digest = |label: &str| (label != "-").then(|| digest_of(&entry(label)));
        Known {
            last: digest(last),
            before: before.map(digest),
        }
    }

    #[test]
    fn each_entry_is_merged_three_ways() {
        use Settled::{Conflict, Stands, Take};
        for (last, before, in_file, in_database, settled) in [
            ("a", None, "a", "a", None),
            ("a", None, "a", "b", None),
            ("a", None, "b", "a", Some(Take)),
            ("a", None, "b", "b", Some(Stands)),
            ("a", None, "b", "c", Some(Conflict)),
            ("a", None, "b", "-", Some(Conflict)),
            ("a", None, "-", "a", Some(Take)),
            ("a", None, "-", "b", Some(Conflict)),
            ("a", None, "-", "-", Some(Stands)),
            ("-", None, "a", "-", Some(Take)),
            ("-", None, "a", "b", Some(Conflict)),
            ("-", None, "-", "a", None),
            // The newest projection may not be in place yet: what either shows is no edit.
            ("b", Some("a"), "a", "b", None),
            ("b", Some("a"), "b", "b", None),
            ("b", Some("a"), "c", "b", Some(Take)),
            ("b", Some("a"), "c", "d", Some(Conflict)),
            ("a", Some("-"), "-", "a", None),
            ("-", Some("a"), "a", "-", None),
            ("b", Some("a"), "-", "b", Some(Take)),
        ] {
            let key = session("agent:main:x");
            let known = [(key.clone(), known(last, before))].into();
            let mut file = FileEntries::default();
            if in_file != "-" {
                file.entries.insert(key.clone(), entry(in_file));
                file.mentioned.insert(key);
            }
            let edits = hand_edits(&known, &file).expect("few");
            let current = (in_database != "-").then(|| entry(in_database));
            let found = edits.first().map(|edit| settle(edit, current.as_ref()));
            assert_eq!(found, settled, "{last} {before:?} {in_file} {in_database}");
        }
    }

    #[test]
    fn an_edit_that_removes_most_of_many_entries_is_not_meant() {
        for (all, gone, meant) in [
            (9, 9, true),
            (10, 10, false),
            (20, 10, true),
            (19, 10, false),
        ] {
            let keys: Vec<_> = (0..all)
                .map(|n| session(&format!("agent:main:{n}")))
                .collect();
            let known = keys
                .iter()
                .cloned()
                .map(|key| (key, known("a", None)))
                .collect();
            let mut file = FileEntries::default();
            for key in &keys[gone..] {
                file.entries.insert(key.clone(), entry("a"));
                file.mentioned.insert(key.clone());
            }
            let edits = hand_edits(&known, &file);
            assert_eq!(edits.is_ok(), meant, "{gone} of {all}");
        }
    }
}
