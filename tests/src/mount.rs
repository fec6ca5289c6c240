//! Small file systems of a test's own, where the machine lets it mount them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system in memory; dropping it takes it away.
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    /// A file system of so many KiB at `path`, which exists. None where this machine does
    /// not let us: then the test that wants it says that it is skipped.
    pub fn small(path: &Path, kib: u32) -> Option<Self> {
        let options = format!("size={kib}k,mode=0700");
        let mounted = run(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tidings-test"],
            path,
        );
        mounted.then(|| Self(path.to_owned()))
    }

    /// What is in `source`, seen at `path` too, which exists. None as for [`Mount::small`].
    pub fn bind(source: &Path, path: &Path) -> Option<Self> {
        let source = source.to_str()?;
        run("mount", &["--bind", source], path).then(|| Self(path.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// It is there no more, whoever uses it.
    #[track_caller]
    pub fn take_away(&self) {
        assert!(run("umount", &["-l"], &self.0), "umount");
    }

    /// Nothing on it can be written any more.
    #[track_caller]
    pub fn make_read_only(&self) {
        assert!(run("mount", &["-o", "remount,ro"], &self.0), "remount");
    }

    /// It can be written again.
    #[track_caller]
    pub fn make_writable(&self) {
        assert!(run("mount", &["-o", "remount,rw"], &self.0), "remount");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Whoever still has a file open there keeps it until it ends.
        run("umount", &["-l"], &self.0);
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .arg(path)
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
