//! Server-sent events: how they are written, and a body that they go out by.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use serde::Serialize;
use tidings_protocol::session_api::{ApiError, Reply};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::figures::Open;
use super::routes::Door;
use crate::state::{Effect, TokenRecord};

/// Said while nothing happens, so that nobody on the way takes the connection for dead.
const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// One event: `id`, `event` and `data`, as far as there are any.
pub(super) fn event(id: Option<u64>, name: Option<&str>, data: &impl Serialize) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let name = name
        .map(|name| format!("event: {name}\n"))
        .unwrap_or_default();
    // JSON has no line end in it.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}{name}data: {data}\n\n")
}

/// Only a position: a reader that is cut off before the first event comes back to it.
pub(super) fn position(id: u64) -> String {
    format!("id: {id}\n\n")
}

fn failure(error: &ApiError) -> String {
    event(None, Some("error"), error)
}

/// What a stream holds for as long as somebody reads it: its place, and its count.
pub(super) type Held = (OwnedSemaphorePermit, Open);

/// The body of a stream.
struct Events {
    chunks: mpsc::Receiver<Bytes>,
    _held: Held,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let chunk = self.chunks.poll_recv(context);
        chunk.map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// What a reply is as events.
pub(super) type Written = Box<dyn Fn(&Reply) -> String + Send + Sync>;

/// What goes out, and what ends it.
pub(super) struct Source {
    pub(super) replies: mpsc::Receiver<Reply>,
    /// What a reply is as events.
    pub(super) written: Written,
    pub(super) token: TokenRecord,
}

/// A body of what the source gives, beginning with `first`. The next page is read once this
/// one is on its way: so a slow reader holds two pages, and loses none.
pub(super) fn body(door: &Arc<Door>, source: Source, first: String, held: Held) -> Body {
    let (chunks, received) = mpsc::channel(1);
    let running = Running {
        door: door.clone(),
        effects: door.service.nodes.state.subscribe(),
        stopped: door.stopped.clone(),
        alive: every(door.limits.keep_alive),
        source,
    };
    tokio::spawn(running.run(first, chunks));
    Body::new(Events {
        chunks: received,
        _held: held,
    })
}

fn every(period: std::time::Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

struct Running {
    door: Arc<Door>,
    source: Source,
    effects: broadcast::Receiver<Effect>,
    stopped: watch::Receiver<bool>,
    alive: Interval,
}

impl Running {
    async fn run(mut self, first: String, chunks: mpsc::Sender<Bytes>) {
        let mut stopped = self.stopped.clone();
        let sending = async {
            let mut next = Some(first);
            while let Some(text) = next {
                if !text.is_empty() && chunks.send(text.into()).await.is_err() {
                    return;
                }
                next = self.next().await;
            }
        };
        tokio::select! {
            () = sending => {}
            _ = stopped.changed() => {}
        }
    }

    /// What to send next: events, or nothing yet; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if self.source.replies.is_closed() && self.source.replies.is_empty() {
            return None;
        }
        tokio::select! {
            reply = self.source.replies.recv() => match reply? {
                Reply::Error(error) => {
                    self.source.replies.close();
                    Some(failure(&error))
                }
                reply => Some((self.source.written)(&reply)),
            },
            effect = self.effects.recv() => match effect {
                Ok(Effect::TokenRevoked { token }) if token == self.source.token.id => {
                    self.ended_token().await
                }
                Ok(_) => Some(String::new()),
                Err(RecvError::Lagged(_)) => self.ended_token().await,
                Err(RecvError::Closed) => None,
            },
            _ = self.alive.tick() => {
                let ended = self.ended_token().await?;
                Some(if ended.is_empty() { KEEP_ALIVE.to_owned() } else { ended })
            }
        }
    }

    /// Nothing while the token still opens the door; what is said last once it does not.
    async fn ended_token(&mut self) -> Option<String> {
        match super::bearer::still_good(&self.door.service, &self.source.token).await {
            Ok(()) => Some(String::new()),
            Err(error) => {
                self.source.replies.close();
                while self.source.replies.try_recv().is_ok() {}
                Some(failure(&error))
            }
        }
    }
}
