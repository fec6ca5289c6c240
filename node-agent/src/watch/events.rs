//! What a file event says about a root.

use std::path::Path;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventKind};

use crate::discover::Root;

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// A transcript may have changed, appeared or gone.
    Transcript(&'a Path),
    /// A directory may have appeared.
    Appeared(&'a Path),
    /// A directory has gone, or stands elsewhere now; another may have its name.
    Vanished(&'a Path),
    /// Something happened to the root itself.
    Root,
    /// Events were lost: nothing that was known is certain.
    Lost,
}

/// Tells `each` what the event says, and nothing where it says nothing of interest: our own
/// reading makes events too.
pub(super) fn hear<'a>(root: &Root, event: &'a Event, each: &mut dyn FnMut(Heard<'a>)) {
    if event.need_rescan() {
        each(Heard::Lost);
        return;
    }
    if says_nothing(event.kind) {
        return;
    }
    for path in &event.paths {
        let Ok(relative) = path.strip_prefix(&root.path) else {
            continue;
        };
        if relative.as_os_str().is_empty() {
            each(Heard::Root);
        } else if root.layout.has_transcript(relative) {
            each(Heard::Transcript(path));
        } else if root.layout.has_directory(relative) {
            tell_of_directory(event.kind, path, each);
        }
    }
}

/// Opening and reading, and a rename told a second time.
fn says_nothing(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
        kind => kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)),
    }
}

fn tell_of_directory<'a>(kind: EventKind, path: &'a Path, each: &mut dyn FnMut(Heard<'a>)) {
    match kind {
        // A file that is no transcript, or the contents of one.
        EventKind::Create(CreateKind::File)
        | EventKind::Remove(RemoveKind::File)
        | EventKind::Modify(ModifyKind::Data(_))
        | EventKind::Access(_) => {}
        EventKind::Create(_)
        | EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Name(RenameMode::To)) => {
            each(Heard::Appeared(path));
        }
        _ => each(Heard::Vanished(path)),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Flag, MetadataKind};

    use super::*;
    use crate::discover::{RootSet, Surroundings};

    #[test]
    fn events_are_told_by_kind_and_place() {
        let given = ["claude=/r".parse().expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let created = EventKind::Create(CreateKind::File);
        let made = EventKind::Create(CreateKind::Folder);
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let attributes = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
        let from = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        let to = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let both = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        let removed = EventKind::Remove(RemoveKind::File);
        let removed_folder = EventKind::Remove(RemoveKind::Folder);
        for (kind, path, expected) in [
            (written, "/r/p/s.jsonl", "Transcript"),
            (closed, "/r/p/s.jsonl", "Transcript"),
            (created, "/r/p/s.jsonl", "Transcript"),
            (removed, "/r/p/s.jsonl", "Transcript"),
            (from, "/r/p/s.jsonl", "Transcript"),
            (to, "/r/p/s.jsonl", "Transcript"),
            (attributes, "/r/p/s.jsonl", "Transcript"),
            (both, "/r/p/s.jsonl", ""),
            (open, "/r/p/s.jsonl", ""),
            (written, "/r/p/notes.txt", ""),
            (made, "/r/p/s", ""),
            (made, "/r/p", "Appeared"),
            (to, "/r/p", "Appeared"),
            (attributes, "/r/p", "Appeared"),
            (from, "/r/p", "Vanished"),
            (removed_folder, "/r/p", "Vanished"),
            (created, "/r/file", ""),
            (written, "/r/file", ""),
            (open, "/r/p", ""),
            (removed_folder, "/r", "Root"),
            (attributes, "/r", "Root"),
            (open, "/r", ""),
            (written, "/elsewhere/p/s.jsonl", ""),
        ] {
            let event = Event::new(kind).add_path(path.into());
            let mut heard = String::new();
            hear(&roots.all()[0], &event, &mut |what| {
                heard = match what {
                    Heard::Transcript(_) => "Transcript",
                    Heard::Appeared(_) => "Appeared",
                    Heard::Vanished(_) => "Vanished",
                    Heard::Root => "Root",
                    Heard::Lost => "Lost",
                }
                .to_owned();
            });
            assert_eq!(heard, expected, "{kind:?} {path}");
        }
    }

    #[test]
    fn an_overflow_is_heard_though_it_names_nothing() {
        let given = ["claude=/r".parse().expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        let mut heard = Vec::new();
        hear(&roots.all()[0], &event, &mut |what| heard.push(what));
        assert_eq!(heard, [Heard::Lost]);
    }
}
