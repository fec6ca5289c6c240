//! What the files of a session directory are, by their names. Pure.

use std::path::{Component, Path};

use super::names;
use crate::state::Entry;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artefact<'a> {
    /// A transcript, or what was written beside one, of the session with this id.
    Of(Kind, &'a str),
    /// The store itself, or something else of the gateway's that no session owns.
    Ours,
    /// Somebody else's: never touched.
    Foreign,
}

/// A transcript, or what is written beside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The transcript, of a topic too.
    Transcript,
    /// What an agent program traces of its work.
    Trajectory,
    /// A copy from before a compaction, of older versions.
    Checkpoint,
    /// The transcript of an ended conversation.
    ResetArchive,
    /// The transcript of a session that was deleted.
    DeletedArchive,
    /// The lock of a transcript.
    Lock,
}

const TOPIC: &str = "-topic-";

/// What the file of this name is.
#[must_use]
pub fn classify(name: &str) -> Artefact<'_> {
    if name.starts_with(names::STORE) {
        return Artefact::Ours;
    }
    let archived = [
        (".jsonl.reset.", Kind::ResetArchive),
        (".jsonl.deleted.", Kind::DeletedArchive),
    ];
    for (mark, kind) in archived {
        if let Some((id, _)) = name.split_once(mark) {
            return of(kind, id);
        }
    }
    if let Some(id) = name.strip_suffix(".jsonl.lock") {
        return of(Kind::Lock, id);
    }
    if let Some((id, _)) = name.split_once(".checkpoint.") {
        return of(Kind::Checkpoint, id);
    }
    if let Some(id) = name.strip_suffix(".trajectory.jsonl") {
        return of(Kind::Trajectory, id);
    }
    match name.strip_suffix(".jsonl") {
        Some(id) => of(Kind::Transcript, id),
        None => Artefact::Foreign,
    }
}

fn of(kind: Kind, id: &str) -> Artefact<'_> {
    let id = id.split_once(TOPIC).map_or(id, |(id, _)| id);
    if id.is_empty() {
        Artefact::Foreign
    } else {
        Artefact::Of(kind, id)
    }
}

/// The name of an entry's transcript in its agent's session directory; `None` where it names
/// a file elsewhere, which is not ours to touch.
#[must_use]
pub fn transcript_name(dir: &Path, entry: &Entry) -> Option<String> {
    let Some(file) = &entry.session_file else {
        return Some(names::transcript(&entry.session_id, None));
    };
    let path = Path::new(file);
    let relative = path.strip_prefix(dir).unwrap_or(path);
    let mut components = relative.components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(name)), None) => name.to_str().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_known_by_its_name_and_what_is_not_is_somebody_elses() {
        use Kind::{Checkpoint, DeletedArchive, Lock, ResetArchive, Trajectory, Transcript};
        for (name, expected) in [
            ("s1.jsonl", Artefact::Of(Transcript, "s1")),
            ("s1-topic-77.jsonl", Artefact::Of(Transcript, "s1")),
            ("s1.trajectory.jsonl", Artefact::Of(Trajectory, "s1")),
            (
                "s1-topic-7.trajectory.jsonl",
                Artefact::Of(Trajectory, "s1"),
            ),
            ("s1.checkpoint.0a1b.jsonl", Artefact::Of(Checkpoint, "s1")),
            (
                "s1.jsonl.reset.2026-12-01T04-00-00.000Z",
                Artefact::Of(ResetArchive, "s1"),
            ),
            (
                "s1-topic-7.jsonl.deleted.x",
                Artefact::Of(DeletedArchive, "s1"),
            ),
            ("s1.jsonl.lock", Artefact::Of(Lock, "s1")),
            ("sessions.json", Artefact::Ours),
            ("sessions.json.new", Artefact::Ours),
            ("sessions.json.rejected-2026", Artefact::Ours),
            ("notes.txt", Artefact::Foreign),
            (".jsonl", Artefact::Foreign),
            ("s1.jsonl.bak", Artefact::Foreign),
        ] {
            assert_eq!(classify(name), expected, "{name}");
        }
    }

    #[test]
    fn a_transcript_elsewhere_is_not_touched() {
        let dir = Path::new("/s/agents/main/sessions");
        for (file, name) in [
            (None, Some("id.jsonl")),
            (Some("own.jsonl"), Some("own.jsonl")),
            (Some("/s/agents/main/sessions/own.jsonl"), Some("own.jsonl")),
            (Some("/etc/passwd"), None),
            (Some("../up.jsonl"), None),
            (Some("/s/agents/main/sessions/../up.jsonl"), None),
            (Some("sub/own.jsonl"), None),
            (Some(""), None),
        ] {
            let json = serde_json::json!({"sessionId": "id", "updatedAt": 1, "sessionFile": file});
            let entry: Entry = serde_json::from_value(json).expect("entry");
            assert_eq!(transcript_name(dir, &entry).as_deref(), name, "{file:?}");
        }
    }
}
