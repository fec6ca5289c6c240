//! Reads what was appended to a transcript and decides what it means.
//!
//! A [`Tailer`] follows one link. It owns no thread and no clock: whoever drives it calls
//! [`Tailer::read`] on a thread that may block, and gets at most one page per call.

mod adopt;
mod backwards;
mod draft;
mod glued;
mod head;
mod lines;
mod locate;
mod long;
mod open;
mod places;
mod reading;
mod recent;
mod reduce;
mod resync;
mod tailer;

use std::path::PathBuf;
use std::time::Duration;

use tidings_protocol::report::{Evidence, Inconclusive};
use tidings_protocol::{EpochMs, Marker, ThreadId};

pub use adopt::open_at_end;
pub use head::thread_head;
pub use places::Places;
pub use tailer::Tailer;

pub(crate) use lines::{Lines, Step, lines_of};
pub(crate) use long::{LongPiece, LongWhat};
pub(crate) use open::{OpenFile, open_inside, open_regular};

/// What a tailer needs from the world for one look at its file.
#[derive(Clone, Copy)]
pub struct Probe<'a> {
    /// The directories around the file.
    pub places: &'a dyn Places,
    /// Wall-clock time.
    pub now: EpochMs,
    /// Time that never goes back; it tells how long a file has not grown.
    pub monotonic: Duration,
}

/// What one look at a file found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, for the length of a call; a box would only add an allocation"
)]
pub enum Reading {
    /// The file is there; this was read.
    Page(Page),
    /// The file is definitely gone.
    Missing,
    /// Nothing can be said now.
    Inconclusive(Inconclusive),
}

/// At most one report's worth of a file, maybe nothing new at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// How far the file is classified with this page.
    pub marker: Marker,
    /// Where the file is now.
    pub path: PathBuf,
    /// How large it was.
    pub size: u64,
    /// The human turns of this page, in file order.
    pub turns: Vec<Evidence>,
    /// The delivered messages that were found as echoes.
    pub echoed: Vec<u64>,
    /// How many records of this page no rule knew.
    pub unclassified: u32,
    /// There is more to read: call again at once.
    pub more: bool,
    /// Look again after this long even if no event comes: an unterminated last record or a
    /// waiting candidate may be settled then.
    pub look_again: Option<Duration>,
}

/// What a listing shows of a thread, from a bounded look at its file.
#[derive(Clone, PartialEq, Eq)]
pub struct ThreadHead {
    /// The thread's id as the file tells it (Claude: its name).
    pub thread_id: Option<ThreadId>,
    /// The working directory the file names last.
    pub cwd: Option<String>,
    /// The title or summary that the program wrote.
    pub title: Option<String>,
    /// The beginning of the first human message; only where it was asked for.
    pub first_prompt: Option<String>,
    /// The file's size.
    pub size_bytes: u64,
    /// The file's last change.
    pub updated_at: EpochMs,
}

/// Whether a listing may show what a human wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPrompt {
    /// Somebody asked for it.
    Show,
    /// Nobody did.
    Hide,
}

/// Why a file cannot be opened for following or listing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// Nothing is there; retrying helps only if it comes back.
    #[error("{} is not there", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A directory, a FIFO, a device: not something a program writes transcripts to.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The file, all links resolved, is not in a root of its catalog.
    #[error("{} is outside the configured roots", path.display())]
    OutsideRoots {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused, or the file changed while it was read; retrying may
    /// help.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl std::fmt::Debug for ThreadHead {
    /// Titles may be made of what a human wrote, so neither is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadHead")
            .field("thread_id", &self.thread_id)
            .field("cwd", &self.cwd)
            .field("size_bytes", &self.size_bytes)
            .field("updated_at", &self.updated_at)
            .finish_non_exhaustive()
    }
}
