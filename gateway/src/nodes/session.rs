//! One node's connection, from `hello` to its end.

use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tidings_node::connection::{CONTROL_FRAME_BYTES, REQUEST_DEADLINE};
use tidings_node::framed::{self, StreamError};
use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::wire::messages::{Goaway, Hello, RefusalCode, Welcome};
use tidings_protocol::wire::{FrameError, MAX_FRAME_BYTES, Message};
use tidings_protocol::{Host, NodeId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::admission::{MAX_VERSION_CHARS, admit, turn_away};
use super::context::NodeContext;
use super::gate;
use super::presence::{MAX_WAITING_CHANGES, Place};
use super::relay::{SessionInterface, serve_relay};
use super::renewal::{renew, renew_only};
use super::reports::{MAX_REPORTS_IN_FLIGHT, StreamEnd, serve_reports};
use crate::state::NodeRecord;

/// How long a node may take to say hello.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// Streams of one node that are served at once: its reports, a renewal, a ping, and what it
/// relays at most, 16 requests and 32 streams of replies. The next waits.
const MAX_STREAMS: usize = 56;
/// How long a node that was turned away has to read why.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves a node's connection until it ends.
pub(super) async fn serve(
    context: &Arc<NodeContext>,
    sessions: &Arc<dyn SessionInterface>,
    (connection, stranger): (Connection, gate::Place),
    mut stopped: watch::Receiver<bool>,
) {
    let hello = tokio::select! {
        hello = tokio::time::timeout(HELLO_DEADLINE, read_hello(&connection)) => hello,
        _ = stopped.changed() => return connection.close(0u32.into(), b"the gateway stops"),
    };
    let Ok(Some((control, hello))) = hello else {
        connection.close(0u32.into(), b"no hello");
        return;
    };
    let (send, receive) = control;
    let (changes, queue) = mpsc::channel(MAX_WAITING_CHANGES);
    let admitted = admit(context, &connection, &hello, changes).await;
    // No stranger any more, or one that is about to go.
    drop(stranger);
    match admitted {
        Err(refused) if refused.code == RefusalCode::CertificateExpired => {
            renew_only(context, &connection, send, refused).await;
        }
        Err(refused) => turn_away(&connection, send, refused).await,
        Ok((node, place, version)) => {
            let session = Session {
                context: context.clone(),
                sessions: sessions.clone(),
                connection: connection.clone(),
                host: node.host.clone(),
                node: node.node.clone(),
                agent_version: hello
                    .agent_version
                    .chars()
                    .take(MAX_VERSION_CHARS)
                    .collect(),
            };
            tracing::info!(node = %node.host_name, version = hello.agent_version, "node connected");
            let end = session
                .run(node, version, (send, receive), queue, &place, &mut stopped)
                .await;
            let reason = end.unwrap_or_else(|error| match connection.close_reason() {
                Some(reason) => reason.to_string(),
                None => error.to_string(),
            });
            connection.close(0u32.into(), reason.as_bytes());
            let current = place.is_current();
            drop(place);
            if current {
                session.note_disconnected(&reason).await;
            }
        }
    }
}

async fn read_hello(connection: &Connection) -> Option<((SendStream, RecvStream), Hello)> {
    let (send, mut receive) = connection.accept_bi().await.ok()?;
    match framed::read(&mut receive, CONTROL_FRAME_BYTES).await {
        Ok(Some(Message::Hello(hello))) => Some(((send, receive), hello)),
        _ => None,
    }
}

#[derive(Clone)]
struct Session {
    context: Arc<NodeContext>,
    sessions: Arc<dyn SessionInterface>,
    connection: Connection,
    host: Host,
    node: NodeId,
    agent_version: String,
}

impl Session {
    async fn run(
        &self,
        node: NodeRecord,
        version: u32,
        (mut send, receive): (SendStream, RecvStream),
        changes: mpsc::Receiver<Message>,
        place: &Place,
        stopped: &mut watch::Receiver<bool>,
    ) -> Result<String, StreamError> {
        let welcome = Message::Welcome(Welcome {
            version,
            gateway_version: env!("CARGO_PKG_VERSION").to_owned(),
            gateway_time: self.context.clock.now(),
            host_name: node.host_name,
            max_reports_in_flight: MAX_REPORTS_IN_FLIGHT,
        });
        framed::write(&mut send, &welcome).await?;
        let (node, version) = (self.node.clone(), self.agent_version.clone());
        if let Err(error) = self.context.state.node_connected(node, version).await {
            tracing::warn!(%error, "the time of a connect was not written");
        }
        let end = tokio::select! {
            end = read_control(receive, place) => end,
            end = self.send_links(changes) => end,
            end = self.serve_streams() => end,
            _ = stopped.changed() => Ok("the gateway stops".to_owned()),
        };
        if let Ok(reason) = &end {
            say_goodbye(&mut send, reason).await;
        }
        end
    }

    /// All links of the node's host, then each change.
    async fn send_links(
        &self,
        mut changes: mpsc::Receiver<Message>,
    ) -> Result<String, StreamError> {
        let mut stream = self
            .connection
            .open_uni()
            .await
            .map_err(std::io::Error::from)?;
        // The place was taken before this look: a change since then is in the queue.
        let (mut after, mut count) = (LinkId(0), 0);
        loop {
            let page = match self.context.state.links_of(self.host.clone(), after).await {
                Ok(page) => page,
                Err(error) => return Ok(format!("its links cannot be read: {error}")),
            };
            let Some(last) = page.last() else { break };
            after = last.link;
            count += page.len() as u64;
            for mut link in page {
                link.echo = link.echo.told_at(self.context.clock.now());
                framed::write(&mut stream, &Message::Link(Box::new(link))).await?;
            }
        }
        framed::write(&mut stream, &Message::LinksEnd { count }).await?;
        while let Some(change) = changes.recv().await {
            framed::write(&mut stream, &change).await?;
        }
        Ok("replaced by a newer connection".to_owned())
    }

    /// The streams that the node opens: one for its reports, one for each request.
    async fn serve_streams(&self) -> Result<String, StreamError> {
        let mut running: JoinSet<Result<StreamEnd, StreamError>> = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.connection.accept_bi(), if running.len() < MAX_STREAMS => {
                    let (send, receive) = accepted.map_err(std::io::Error::from)?;
                    running.spawn(serve_stream(self.clone(), send, receive));
                }
                Some(ended) = running.join_next() => match ended {
                    Ok(Ok(StreamEnd::Done)) => {}
                    Ok(Ok(StreamEnd::NotRecorded(reason))) => return Ok(reason),
                    Ok(Err(error)) => return Err(error),
                    Err(error) => return Ok(format!("a stream's task failed: {error}")),
                },
            }
        }
    }

    async fn note_disconnected(&self, reason: &str) {
        tracing::info!(host = %self.host, reason, "node disconnected");
        if let Err(error) = self
            .context
            .state
            .node_disconnected(self.node.clone())
            .await
        {
            tracing::warn!(%error, "the time of a disconnect was not written");
        }
    }
}

async fn say_goodbye(control: &mut SendStream, reason: &str) {
    let goaway = Message::Goaway(Goaway {
        reason: reason.to_owned(),
    });
    if framed::write(control, &goaway).await.is_ok() && control.finish().is_ok() {
        let _ = tokio::time::timeout(FAREWELL, control.stopped()).await;
    }
}

/// The node's signs of life, until it says goodbye.
async fn read_control(mut control: RecvStream, place: &Place) -> Result<String, StreamError> {
    loop {
        match framed::read(&mut control, CONTROL_FRAME_BYTES).await {
            Ok(None) => return Ok("the node closed the connection".to_owned()),
            Ok(Some(Message::Presence(presence))) => place.note(presence),
            Ok(Some(Message::Goaway(goaway))) => return Ok(goaway.reason),
            Ok(Some(message)) => tracing::debug!(message = message.name(), "ignored on control"),
            Err(StreamError::Frame(FrameError::Unsupported { name })) => {
                tracing::debug!(name, "unknown message ignored on control");
            }
            Err(error) => return Err(error),
        }
    }
}

/// One stream of the node: its first message says what it is for.
async fn serve_stream(
    session: Session,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<StreamEnd, StreamError> {
    let answer = match framed::read(&mut receive, MAX_FRAME_BYTES).await {
        // Nothing, or a request that its side gave up half written.
        Ok(None) | Err(StreamError::Torn | StreamError::Io(_)) => return Ok(StreamEnd::Done),
        Ok(Some(Message::Report(first))) => {
            return serve_reports(session.context, session.host, *first, send, receive).await;
        }
        Ok(Some(Message::Relay(relay))) => {
            let Session { sessions, host, .. } = session;
            serve_relay(&*sessions, host, relay.caller, (send, receive)).await?;
            return Ok(StreamEnd::Done);
        }
        Ok(Some(Message::Ping {})) => Message::Pong {},
        Ok(Some(Message::Renew(request))) => renew(&session.context, &session.node, &request).await,
        Ok(Some(other)) => Message::Failed(ApiError::new(
            ErrorType::NotPermitted,
            format!(
                "a gateway does not answer {} over a node's connection",
                other.name()
            ),
        )),
        Err(StreamError::Frame(FrameError::Unsupported { name })) => Message::Unsupported { name },
        Err(error) => return Err(error),
    };
    tokio::time::timeout(REQUEST_DEADLINE, framed::write(&mut send, &answer))
        .await
        .unwrap_or(Ok(()))?;
    let _ = send.finish();
    Ok(StreamEnd::Done)
}
