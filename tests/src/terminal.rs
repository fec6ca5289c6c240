//! A command in a terminal of its own: what is typed there, and what it shows.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::answer::end;
use crate::clock::DEADLINE;
use crate::scratch::Scratch;
use crate::spawn::spawn;

/// What is typed to interrupt a command.
pub const CTRL_C: &str = "\x03";
/// What is typed where one has no more to say.
pub const CTRL_D: &str = "\x04";

/// A command in a terminal; dropping it kills it.
#[derive(Debug)]
pub struct Terminal {
    keyboard: File,
    screen: Arc<Screen>,
    // So many characters were looked at.
    looked_at: usize,
    child: Child,
}

#[derive(Debug, Default)]
struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shown {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Terminal {
    /// Runs a program in a terminal of its own: Ctrl-C there reaches it and nobody else.
    pub(crate) fn run(scratch: &Scratch, program: &Path, arguments: &[&str]) -> Self {
        let (mut shows, line) = open();
        let handle = || OwnedFd::from(line.try_clone().expect("a terminal"));
        // The leader of a session, whose terminal is its standard input.
        let mut command = scratch.command(Path::new("setsid"));
        command.arg("--ctty").arg(program).args(arguments);
        command.stdin(handle()).stdout(handle()).stderr(handle());
        let child = spawn(&mut command);
        let (keyboard, screen) = (
            shows.try_clone().expect("a terminal"),
            Arc::new(Screen::default()),
        );
        let showing = Arc::clone(&screen);
        thread::spawn(move || showing.fill_from(&mut shows));
        Self {
            keyboard,
            screen,
            looked_at: 0,
            child,
        }
    }

    /// Types this.
    #[track_caller]
    pub fn type_in(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("a keyboard");
    }

    /// Waits until this is shown behind what was looked at, and gives what stands before it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let began = Instant::now();
        let mut shown = self.screen.shown();
        loop {
            let page = page(&shown.bytes);
            let new = &page[self.looked_at..];
            if let Some(at) = new.find(text) {
                self.looked_at += at + text.len();
                return new[..at].to_owned();
            }
            let left = DEADLINE.saturating_sub(began.elapsed());
            assert!(!shown.is_over && !left.is_zero(), "no {text:?} in {page}");
            let waited = self.screen.changed.wait_timeout(shown, left);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for its end: its exit code, and all that was shown.
    #[track_caller]
    pub fn wait_for_end(mut self) -> (i32, String) {
        let began = Instant::now();
        let mut shown = self.screen.shown();
        while !shown.is_over {
            let left = DEADLINE.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "no end: {}", page(&shown.bytes));
            let waited = self.screen.changed.wait_timeout(shown, left);
            shown = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let page = page(&shown.bytes);
        drop(shown);
        let status = self.child.wait().expect("the end of a command");
        (status.code().unwrap_or(-1), page)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Screen {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is shown until nobody has the terminal open any more, which is an error.
    fn fill_from(&self, shows: &mut File) {
        let mut piece = [0; 1024];
        while let Ok(length @ 1..) = shows.read(&mut piece) {
            self.shown().bytes.extend_from_slice(&piece[..length]);
            self.changed.notify_all();
        }
        self.shown().is_over = true;
        self.changed.notify_all();
    }
}

/// A terminal: the side of who sits there, and the side of a command.
fn open() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let person = openpt(flags).expect("a terminal");
    grantpt(&person).expect("a terminal");
    unlockpt(&person).expect("a terminal");
    let name = ptsname(&person, Vec::new()).expect("its name");
    let name = PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
    let command = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOCTTY.bits().cast_signed())
        .open(name)
        .expect("the other side");
    (File::from(person), command)
}

/// What was shown, as lines.
fn page(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}
