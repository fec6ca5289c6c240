//! What the files of a session directory are, by their names. Pure.

use std::path::{Component, Path};

use tidings_protocol::SessionKey;

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
    /// What a process that ended early left of a lock or a copy it was about to put in place.
    Draft,
}

const TOPIC: &str = "-topic-";
/// Stands in the name of the transcript in which a compacted conversation goes on.
pub const COMPACTED: &str = ".compacted-";

/// What the file of this name is.
#[must_use]
pub fn classify(name: &str) -> Artefact<'_> {
    if name.starts_with(names::STORE) {
        return Artefact::Ours;
    }
    if let Some(draft) = draft(name) {
        return draft;
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

fn draft(name: &str) -> Option<Artefact<'_>> {
    if let Some((id, _)) = name.split_once(".jsonl.lock.") {
        return Some(of(Kind::Draft, id));
    }
    match classify(name.strip_suffix(".new")?) {
        Artefact::Of(_, id) => Some(Artefact::Of(Kind::Draft, id)),
        Artefact::Ours | Artefact::Foreign => None,
    }
}

fn of(kind: Kind, id: &str) -> Artefact<'_> {
    let id = id.split_once(COMPACTED).map_or(id, |(id, _)| id);
    let id = id.split_once(TOPIC).map_or(id, |(id, _)| id);
    if id.is_empty() {
        Artefact::Foreign
    } else {
        Artefact::Of(kind, id)
    }
}

/// What names a transcript.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The conversation.
    pub session_id: &'a str,
    /// The topic that the session's key names.
    pub topic: Option<&'a str>,
    /// `sessionFile`, where the entry has one.
    pub file: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// What names the transcript of a session with this entry.
    #[must_use]
    pub fn by(key: &'a SessionKey, entry: &'a Entry) -> Self {
        Self {
            session_id: &entry.session_id,
            topic: names::topic_of(key),
            file: entry.session_file.as_deref(),
        }
    }
}

/// The name of a transcript in its agent's session directory; `None` where it is a file
/// elsewhere, which is not ours to touch.
#[must_use]
pub fn transcript_name(dir: &Path, named: Named<'_>) -> Option<String> {
    let Some(file) = named.file else {
        return Some(names::transcript(named.session_id, named.topic));
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
        use Kind::{Checkpoint, DeletedArchive, Draft, Lock, ResetArchive, Trajectory, Transcript};
        for (name, expected) in [
            ("s1.jsonl", Artefact::Of(Transcript, "s1")),
            ("s1-topic-77.jsonl", Artefact::Of(Transcript, "s1")),
            ("s1.trajectory.jsonl", Artefact::Of(Trajectory, "s1")),
            ("s1.compacted-0a.jsonl", Artefact::Of(Transcript, "s1")),
            (
                "s1-topic-7.compacted-0a.jsonl",
                Artefact::Of(Transcript, "s1"),
            ),
            (
                "s1.compacted-0a.jsonl.reset.2026-12-01T04-00-00.000Z",
                Artefact::Of(ResetArchive, "s1"),
            ),
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
            ("s1.jsonl.lock.0a1b", Artefact::Of(Draft, "s1")),
            ("s1-topic-7.jsonl.new", Artefact::Of(Draft, "s1")),
            ("s1.jsonl.reset.x.new", Artefact::Of(Draft, "s1")),
            ("notes.new", Artefact::Foreign),
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

    fn named<'a>(topic: Option<&'a str>, file: Option<&'a str>) -> Named<'a> {
        Named {
            session_id: "id",
            topic,
            file,
        }
    }

    #[test]
    fn the_transcript_of_a_topic_is_its_own_unless_the_entry_names_another() {
        let dir = Path::new("/s");
        let name = |topic, file| transcript_name(dir, named(topic, file));
        assert_eq!(name(Some("7"), None).as_deref(), Some("id-topic-7.jsonl"));
        assert_eq!(name(Some("7"), Some("o.jsonl")).as_deref(), Some("o.jsonl"));
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
            assert_eq!(
                transcript_name(dir, named(None, file)).as_deref(),
                name,
                "{file:?}"
            );
        }
    }
}
