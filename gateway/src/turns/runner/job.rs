//! What can be run in a session, and where its news go.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidings_protocol::session_api::{ApiError, ChatDone, ChatNews, PrivateText, SessionCompacted};
use tokio::sync::{mpsc, oneshot};

use crate::state::SessionAddress;

/// What is to be run.
#[derive(Debug)]
pub(crate) enum Job {
    /// A person says something.
    Chat {
        /// What.
        message: PrivateText,
        /// Who hears of it.
        news: News,
    },
    /// The session takes what waits for it.
    Due,
    /// What it took before is still without an answer, so many failures later.
    Again(u32),
    /// A child takes its task; its parent hears how its run ends.
    Child,
    /// The history is compacted because somebody asked for it.
    Compact {
        /// What the summary is to dwell on.
        instructions: Option<PrivateText>,
        /// Who waits for it.
        news: News,
        /// Who hears of it.
        answer: oneshot::Sender<Result<SessionCompacted, ApiError>>,
    },
}

/// A job, and where it is run.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(super) session: SessionAddress,
    pub(super) job: Job,
}

/// How many pieces wait for a listener, before they are put together.
const PIECES: usize = 64;

/// The longest piece: it fits a frame.
const MAX_PIECE_BYTES: usize = 64 * 1024;

/// Where it is heard how a turn goes.
pub(crate) type Listening = mpsc::Receiver<Result<ChatNews, ApiError>>;

/// Hears how a turn goes. Nobody waits for a slow listener: what it has no room for is put
/// together, which is no more than the turn's answers have.
#[derive(Default)]
pub(crate) struct News {
    listener: Option<mpsc::Sender<Result<ChatNews, ApiError>>>,
    held: Mutex<String>,
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").finish_non_exhaustive()
    }
}

impl News {
    /// Somebody listens.
    pub(crate) fn heard() -> (Self, Listening) {
        let (listener, listening) = mpsc::channel(PIECES);
        let news = Self {
            listener: Some(listener),
            held: Mutex::default(),
        };
        (news, listening)
    }

    /// A piece of text; none where it is empty.
    pub(super) fn text(&self, text: &str) {
        let Some(listener) = &self.listener else {
            return;
        };
        let mut held = self.held();
        held.push_str(text);
        while !held.is_empty() {
            let Ok(room) = listener.try_reserve() else {
                return;
            };
            let end = held.floor_char_boundary(MAX_PIECE_BYTES);
            let text: String = held.drain(..end).collect();
            room.send(Ok(ChatNews::Text { text: text.into() }));
        }
    }

    /// A line of the gateway's own; a listener that is far behind does without.
    pub(super) fn note(&self, text: String) {
        if let Some(listener) = &self.listener {
            let _ = listener.try_send(Ok(ChatNews::Note { text }));
        }
    }

    /// Waits until whoever listened has gone; for ever where nobody ever listened.
    pub(super) async fn gone(&self) {
        match &self.listener {
            Some(listener) => listener.closed().await,
            None => std::future::pending().await,
        }
    }

    /// True where somebody listened, and has gone.
    pub(super) fn is_gone(&self) -> bool {
        self.listener.as_ref().is_some_and(mpsc::Sender::is_closed)
    }

    /// The last that is heard.
    pub(super) async fn end(self, end: Result<ChatDone, ApiError>) {
        let Some(listener) = &self.listener else {
            return;
        };
        let mut held = std::mem::take(&mut *self.held());
        while !held.is_empty() {
            let rest = held.split_off(held.floor_char_boundary(MAX_PIECE_BYTES));
            let text = std::mem::replace(&mut held, rest).into();
            // Whoever has gone misses nothing: the turn is over.
            let _ = listener.send(Ok(ChatNews::Text { text })).await;
        }
        let _ = listener.send(end.map(ChatNews::Done)).await;
    }

    fn held(&self) -> MutexGuard<'_, String> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// True where whoever asked for it has gone.
    pub(super) fn is_unwanted(&self) -> bool {
        match self {
            Self::Chat { news, .. } | Self::Compact { news, .. } => news.is_gone(),
            Self::Due | Self::Again(_) | Self::Child => false,
        }
    }

    /// True where a job that waits already does all that this one would.
    pub(super) fn is_covered_by(&self, waiting: &Self) -> bool {
        matches!(
            (self, waiting),
            (Self::Due, Self::Due | Self::Again(_) | Self::Child)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_asked_for_who_has_gone_is_not_wanted_any_more() {
        let (news, listening) = News::heard();
        let job = Job::Chat {
            message: "Hello".into(),
            news,
        };
        assert!(!job.is_unwanted());
        drop(listening);
        assert!(job.is_unwanted());
        for (job, why) in [(Job::Due, "a wake"), (Job::Child, "a child")] {
            assert!(!job.is_unwanted(), "nobody waits for {why}");
        }
    }
}
