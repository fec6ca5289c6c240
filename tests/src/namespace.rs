//! Limits of the kernel that bind one agent and nobody else.

use std::path::Path;
use std::process::Command;

use crate::scratch::Scratch;

/// A user namespace for a process, with a limit of its own on what a user may take.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// The limit's name below `/proc/sys/user`, and the limit.
    limit: Option<(&'static str, u32)>,
}

impl Namespace {
    /// In which a user may have so many file watches. None where this machine does not let
    /// us: then the test that wants it says that it is skipped.
    pub fn with_watches(scratch: &Scratch, watches: u32) -> Option<Self> {
        Self::probed(scratch, Some(("max_inotify_watches", watches)))
    }

    /// In which a user may have so many file watchers.
    pub fn with_watchers(scratch: &Scratch, watchers: u32) -> Option<Self> {
        Self::probed(scratch, Some(("max_inotify_instances", watchers)))
    }

    /// In which what belongs to another user than ours cannot be read, whoever we are.
    pub fn of_another_user(scratch: &Scratch) -> Option<Self> {
        Self::probed(scratch, None)
    }

    fn probed(scratch: &Scratch, limit: Option<(&'static str, u32)>) -> Option<Self> {
        let namespace = Self { limit };
        let status = namespace.command(scratch, Path::new("true")).status();
        status
            .is_ok_and(|status| status.success())
            .then_some(namespace)
    }

    /// `program`, run in it.
    pub(crate) fn command(&self, scratch: &Scratch, program: &Path) -> Command {
        let mut command = scratch.command(Path::new("unshare"));
        command.args(["--user", "--map-root-user", "sh", "-c"]);
        match self.limit {
            Some((name, limit)) => command.arg(format!(
                "echo {limit} > /proc/sys/user/{name} && exec \"$0\" \"$@\""
            )),
            None => command.arg("exec \"$0\" \"$@\""),
        };
        command.arg(program);
        command
    }
}
