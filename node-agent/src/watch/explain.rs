//! What an operator is told of a root that is not watched as it should be, and of the way out.

use notify::{Error, ErrorKind};
use rustix::io::Errno;

use super::post::Lost;
use crate::discover::Root;

/// Why a directory is not watched.
pub(super) fn unwatched(root: &Root, error: &Error) -> String {
    let path = error.paths.first().unwrap_or(&root.path).display();
    let polled = "until then it is read once a minute";
    match &error.kind {
        ErrorKind::MaxFilesWatch => format!(
            "{path} cannot be watched: all file watches of this user are taken; raise \
             fs.inotify.max_user_watches (sysctl), {polled}"
        ),
        ErrorKind::Io(error) if Errno::from_io_error(error) == Some(Errno::MFILE) => format!(
            "{path} cannot be watched: all file watchers of this user are taken; raise \
             fs.inotify.max_user_instances (sysctl), {polled}"
        ),
        ErrorKind::Io(error) => format!("{path} cannot be watched: {error}; {polled}"),
        _ => format!("{path} cannot be watched; {polled}"),
    }
}

/// That file events were lost.
pub(super) fn lost_events(root: &Root, lost: Lost) -> String {
    let times = match lost.times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    format!(
        "{}: file events came faster than they were taken, {times}; everything was looked at \
         again, so nothing is missed; if it goes on, raise fs.inotify.max_queued_events (sysctl)",
        root.path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;
    use crate::discover::{RootSet, Surroundings};

    #[test]
    fn what_cannot_be_watched_is_said_with_the_way_out() {
        let given = ["claude=/r".parse().expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        let root = &roots.all()[0];
        let io = |code| Error::io(io::Error::from_raw_os_error(code));
        for (error, words) in [
            (
                Error::new(ErrorKind::MaxFilesWatch).add_path("/r/p".into()),
                "/r/p cannot be watched: all file watches of this user are taken; raise \
                 fs.inotify.max_user_watches (sysctl), until then it is read once a minute",
            ),
            (
                io(Errno::MFILE.raw_os_error()),
                "/r cannot be watched: all file watchers of this user are taken; raise \
                 fs.inotify.max_user_instances (sysctl), until then it is read once a minute",
            ),
            (
                io(Errno::ACCESS.raw_os_error()).add_path("/r/q".into()),
                "/r/q cannot be watched: Permission denied (os error 13); until then it is read once a minute",
            ),
        ] {
            assert_eq!(unwatched(root, &error), words);
        }
    }

    #[test]
    fn lost_events_are_said_with_how_often() {
        let given = ["claude=/r".parse().expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        for (times, often) in [(1, "taken, once;"), (2, "taken, 2 times;")] {
            let last_at = Duration::ZERO;
            let said = lost_events(&roots.all()[0], Lost { times, last_at });
            assert!(said.starts_with("/r: ") && said.contains(often), "{said}");
        }
    }
}
