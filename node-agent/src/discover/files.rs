//! Which files are transcripts, told by their names alone, and whose thread a name names.

use std::path::{Component, Path};

use tidings_protocol::report::MAX_PATH_BYTES;
use tidings_protocol::{Catalog, ThreadId};

/// How deep below a root of dated directories files are looked for: year, month, day, and
/// room for a level or two that a later version may add.
const MAX_DATED_DEPTH: usize = 6;

/// Parts of a name that mark something set aside: not a thread any more.
const SET_ASIDE: [&str; 5] = [".reset.", ".deleted.", ".checkpoint.", ".bak", ".old"];

/// Where below a root transcripts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Claude Code: `<project>/<thread>.jsonl`.
    Projects,
    /// Codex: `rollout-<time>-<thread>.jsonl` at any depth.
    Dated,
    /// OpenClaw: `<agent>/sessions/<session>.jsonl`. Each `sessions` is a root of its own.
    Agents,
    /// OpenClaw or Pi, wherever the root is put: directly in it, in one of its directories,
    /// or as under [`Layout::Agents`].
    Loose,
}

impl Layout {
    /// The layout of a root that the operator named.
    #[must_use]
    pub fn of_given_root(catalog: Catalog) -> Self {
        match catalog {
            Catalog::Claude => Self::Projects,
            Catalog::Codex => Self::Dated,
            Catalog::Openclaw => Self::Loose,
        }
    }

    /// True when a file at `relative` below the root is a transcript.
    #[must_use]
    pub fn has_transcript(self, relative: &Path) -> bool {
        let Some(parts) = plain_parts(relative) else {
            return false;
        };
        let Some((name, directories)) = parts.split_last() else {
            return false;
        };
        let placed = match self {
            Self::Projects => directories.len() == 1,
            Self::Dated => directories.len() < MAX_DATED_DEPTH,
            Self::Agents => matches!(directories, [_, "sessions"]),
            Self::Loose => directories.len() <= 1 || matches!(directories, [_, "sessions"]),
        };
        placed && self.is_transcript_name(name)
    }

    /// True when transcripts may stand in, or below, the directory at `relative`.
    #[must_use]
    pub fn has_directory(self, relative: &Path) -> bool {
        let Some(parts) = plain_parts(relative) else {
            return false;
        };
        match self {
            Self::Projects => parts.len() <= 1,
            Self::Dated => parts.len() < MAX_DATED_DEPTH,
            Self::Agents | Self::Loose => parts.len() <= 1 || matches!(parts[..], [_, "sessions"]),
        }
    }

    /// How many of the directories above `relative` belong to the root itself: what is
    /// below another of these is in another root.
    #[must_use]
    pub(super) fn root_depth(self) -> usize {
        match self {
            Self::Agents => 2,
            Self::Projects | Self::Dated | Self::Loose => 0,
        }
    }

    fn is_transcript_name(self, name: &str) -> bool {
        let Some(stem) = transcript_stem(name) else {
            return false;
        };
        match self {
            Self::Projects => !stem.starts_with("agent-") && ThreadId::parse(stem).is_ok(),
            Self::Dated => rollout_thread(stem).is_some(),
            Self::Agents | Self::Loose => true,
        }
    }
}

/// The thread that a file's name names: certain for Claude Code, and for Codex as long as
/// the header does not say otherwise. OpenClaw's and Pi's stand in the file.
#[must_use]
pub fn thread_in_name(catalog: Catalog, name: &str) -> Option<ThreadId> {
    let stem = transcript_stem(name)?;
    match catalog {
        Catalog::Claude if !stem.starts_with("agent-") => ThreadId::parse(stem).ok(),
        Catalog::Codex => ThreadId::parse(rollout_thread(stem)?).ok(),
        Catalog::Claude | Catalog::Openclaw => None,
    }
}

/// True when the name of a transcript has this thread in it.
#[must_use]
pub fn name_has_thread(catalog: Catalog, name: &str, thread: &ThreadId) -> bool {
    match catalog {
        Catalog::Claude | Catalog::Codex => {
            thread_in_name(catalog, name).is_some_and(|named| named == *thread)
        }
        Catalog::Openclaw => transcript_stem(name)
            .is_some_and(|stem| threads_in_stem(stem).any(|part| part == thread.as_str())),
    }
}

/// Every thread that a file of this name could be, for finding the links it may belong to.
pub fn possible_threads(name: &str) -> Vec<(Catalog, ThreadId)> {
    let Some(stem) = transcript_stem(name) else {
        return Vec::new();
    };
    let mut threads: Vec<(Catalog, ThreadId)> = [Catalog::Claude, Catalog::Codex]
        .into_iter()
        .filter_map(|catalog| Some((catalog, thread_in_name(catalog, name)?)))
        .collect();
    threads.extend(
        threads_in_stem(stem)
            .filter_map(|part| Some((Catalog::Openclaw, ThreadId::parse(part).ok()?))),
    );
    threads
}

/// The name without `.jsonl`, unless it marks something else or something set aside.
fn transcript_stem(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".jsonl")?;
    let other = stem.is_empty()
        || stem.starts_with('.')
        || stem.ends_with(".trajectory")
        || SET_ASIDE.iter().any(|part| name.contains(part))
        || name.chars().any(char::is_control);
    (!other).then_some(stem)
}

/// OpenClaw names a file after its thread, Pi puts a time and `_` in front.
fn threads_in_stem(stem: &str) -> impl Iterator<Item = &str> {
    let after_time = stem.rsplit_once('_').map(|(_, thread)| thread);
    std::iter::once(stem).chain(after_time)
}

/// The UUID at the end of `rollout-<time>-<uuid>`.
fn rollout_thread(stem: &str) -> Option<&str> {
    const UUID_BYTES: usize = 36;
    let rest = stem.strip_prefix("rollout-")?;
    let uuid = rest.get(rest.len().checked_sub(UUID_BYTES)?..)?;
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| {
        if dash(at) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    });
    is_uuid.then_some(uuid)
}

/// The parts of a relative path, if each is an ordinary name that can travel.
fn plain_parts(relative: &Path) -> Option<Vec<&str>> {
    if relative.as_os_str().len() > MAX_PATH_BYTES - super::roots::MAX_ROOT_BYTES {
        return None;
    }
    relative
        .components()
        .map(|part| match part {
            Component::Normal(name) => name
                .to_str()
                .filter(|name| !name.chars().any(char::is_control)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

    #[test]
    fn a_transcript_is_told_by_its_place_and_name() {
        let rollout = format!("rollout-2026-01-02T03-04-05-{UUID}.jsonl");
        let dated = format!("2026/01/02/{rollout}");
        let packed = format!("{dated}.zst");
        for (layout, path, expected) in [
            (Layout::Projects, "-home-ada/0a1b.jsonl", true),
            (Layout::Projects, "-home-ada/x.y.jsonl", true),
            (Layout::Projects, "0a1b.jsonl", false),
            (Layout::Projects, "-home-ada/0a1b/0a1b.jsonl", false),
            (Layout::Projects, "-home-ada/agent-0a1b.jsonl", false),
            (
                Layout::Projects,
                "-home-ada/0a1b/subagents/agent-1.jsonl",
                false,
            ),
            (Layout::Projects, "-home-ada/0a1b.json", false),
            (Layout::Projects, "-home-ada/.jsonl", false),
            (Layout::Projects, "-home-ada/0a1b.bak.jsonl", false),
            (Layout::Projects, "-home-ada/0a1b.jsonl.old", false),
            (Layout::Projects, "-home-ada/a\u{7}.jsonl", false),
            (Layout::Projects, "../x/0a1b.jsonl", false),
            (Layout::Dated, dated.as_str(), true),
            (Layout::Dated, rollout.as_str(), true),
            (Layout::Dated, packed.as_str(), false),
            (Layout::Dated, "2026/01/02/rollout-x.jsonl", false),
            (Layout::Dated, "2026/01/02/notes.jsonl", false),
            (Layout::Agents, "main/sessions/s1.jsonl", true),
            (Layout::Agents, "main/sessions/s1-topic-4.jsonl", true),
            (Layout::Agents, "main/sessions/s1.trajectory.jsonl", false),
            (Layout::Agents, "main/sessions/s1.checkpoint.2.jsonl", false),
            (Layout::Agents, "main/sessions/s1.jsonl.reset.2026", false),
            (Layout::Agents, "main/sessions/s1.jsonl.deleted.2026", false),
            (Layout::Agents, "main/other/s1.jsonl", false),
            (Layout::Agents, "main/s1.jsonl", false),
            (Layout::Loose, "s1.jsonl", true),
            (Layout::Loose, "--home-ada--/2026_s1.jsonl", true),
            (Layout::Loose, "main/sessions/s1.jsonl", true),
            (Layout::Loose, "main/other/s1.jsonl", false),
        ] {
            assert_eq!(
                layout.has_transcript(Path::new(path)),
                expected,
                "{layout:?} {path}"
            );
        }
    }

    #[test]
    fn only_directories_that_may_hold_transcripts_matter() {
        for (layout, path, expected) in [
            (Layout::Projects, "", true),
            (Layout::Projects, "-home-ada", true),
            (Layout::Projects, "-home-ada/0a1b", false),
            (Layout::Dated, "2026/01/02", true),
            (Layout::Dated, "1/2/3/4/5/6", false),
            (Layout::Agents, "main", true),
            (Layout::Agents, "main/sessions", true),
            (Layout::Agents, "main/workspace", false),
            (Layout::Loose, "--home-ada--", true),
            (Layout::Loose, "--home-ada--/x", false),
        ] {
            assert_eq!(
                layout.has_directory(Path::new(path)),
                expected,
                "{layout:?} {path}"
            );
        }
    }

    #[test]
    fn a_name_names_its_thread() {
        let rollout = format!("rollout-2026-01-02T03-04-05-{UUID}.jsonl");
        for (catalog, name, thread) in [
            (Catalog::Claude, "0A1b.jsonl", Some("0A1b")),
            (Catalog::Claude, "agent-0a1b.jsonl", None),
            (Catalog::Claude, "0a1b.jsonl.old", None),
            (Catalog::Codex, rollout.as_str(), Some(UUID)),
            (Catalog::Codex, "rollout-2026.jsonl", None),
            (
                Catalog::Codex,
                "rollout-é-0199a213-81c0-7800-8aa1-bbab2a035a5é.jsonl",
                None,
            ),
            (Catalog::Openclaw, "s1.jsonl", None),
        ] {
            let named = thread_in_name(catalog, name);
            assert_eq!(named.as_ref().map(ThreadId::as_str), thread, "{name}");
        }
    }

    #[test]
    fn a_thread_is_found_in_a_name_only_as_a_whole() {
        let thread = ThreadId::parse("s1").expect("thread");
        for (name, expected) in [
            ("s1.jsonl", true),
            ("2026-01-02T03_s1.jsonl", true),
            ("s1-topic-4.jsonl", false),
            ("s10.jsonl", false),
            ("s1.jsonl.reset.2026", false),
        ] {
            assert_eq!(
                name_has_thread(Catalog::Openclaw, name, &thread),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_changed_file_may_belong_to_any_catalog() {
        let threads = possible_threads("2026_s1.jsonl");
        let names: Vec<String> = threads
            .iter()
            .map(|(catalog, thread)| format!("{catalog} {thread}"))
            .collect();
        assert_eq!(names, ["claude 2026_s1", "openclaw 2026_s1", "openclaw s1"]);
        assert!(possible_threads("notes.txt").is_empty());
    }
}
