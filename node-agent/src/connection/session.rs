//! One connection to the gateway, from `hello` to its end.

use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tidings_protocol::report::Report;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::wire::messages::{Goaway, Hello, RefusalCode, Refused, Renew, Welcome};
use tidings_protocol::wire::{
    FrameError, MAX_FRAME_BYTES, Message, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
};
use tidings_protocol::{Catalog, EpochMs};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::credentials::Credentials;
use super::silence::until_silent;
use super::transport::{CONTROL_FRAME_BYTES, REQUEST_DEADLINE};
use crate::clock::Clock;
use crate::follow::{Follower, GatewayClock, Moment};
use crate::framed::{self, StreamError};

/// How long the gateway may take to welcome.
const WELCOME_DEADLINE: Duration = Duration::from_secs(10);
/// Signs of life go out this often.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(15);
/// Whether the certificate is due for renewal is looked at this often.
const RENEWAL_INTERVAL: Duration = Duration::from_hours(1);
/// How long a graceful end may take.
const FINISH_DEADLINE: Duration = Duration::from_secs(5);
/// Requests of the gateway that are worked on at once: each may scan directories.
const MAX_REQUESTS: usize = 8;
/// The most reports in flight that this build accepts from a `welcome`.
const MAX_REPORTS_IN_FLIGHT: u32 = 256;

/// How a session ended.
#[derive(Debug)]
pub(super) enum End {
    /// The connection broke, or never came to be.
    Lost(String),
    /// The gateway turned this node away.
    Refused(Refused),
    /// The node has a new certificate, for the next connection.
    Renewed,
    /// This agent was asked to stop.
    Stopped,
}

/// This build's first word.
pub(super) fn hello(instance: [u8; 16], catalogs: Vec<Catalog>) -> Hello {
    Hello {
        oldest_version: OLDEST_PROTOCOL_VERSION,
        newest_version: PROTOCOL_VERSION,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        instance,
        catalogs,
    }
}

/// One session, and what it works with.
pub(super) struct Session<'a> {
    /// The connection.
    pub(super) connection: &'a Connection,
    /// Who follows the links.
    pub(super) follower: &'a Follower,
    /// Who this node is.
    pub(super) credentials: &'a Credentials,
    /// The time.
    pub(super) clock: &'a dyn Clock,
}

impl Session<'_> {
    /// Runs the session until it ends. `welcomed` is called once the gateway has welcomed, with
    /// what its clock shows.
    pub(super) async fn run(
        &self,
        hello: Hello,
        welcomed: impl FnOnce(EpochMs),
        stopped: &mut watch::Receiver<bool>,
    ) -> End {
        let asked = Moment::of(self.clock);
        let greeting = tokio::time::timeout(WELCOME_DEADLINE, self.greet(hello));
        let (welcome, control) = match greeting.await {
            Err(_) => return End::Lost("the gateway did not welcome in time".to_owned()),
            Ok(Err(error)) => return End::Lost(lost(self.connection, &error)),
            Ok(Ok((Message::Welcome(welcome), control))) => (welcome, control),
            Ok(Ok((Message::Refused(refused), _))) => return self.refused(refused).await,
            Ok(Ok(_)) => return End::Lost("the gateway did not welcome".to_owned()),
        };
        welcomed(welcome.gateway_time);
        let (reports, queue) = mpsc::channel(reports_in_flight(&welcome));
        let gateway = GatewayClock {
            showed: welcome.gateway_time,
            asked,
        };
        self.follower.connected(reports, gateway);
        self.serve(queue, control, stopped).await
    }

    async fn greet(
        &self,
        hello: Hello,
    ) -> Result<(Message, (SendStream, RecvStream)), StreamError> {
        let (mut send, mut receive) = self
            .connection
            .open_bi()
            .await
            .map_err(std::io::Error::from)?;
        framed::write(&mut send, &Message::Hello(hello)).await?;
        let answer = framed::read(&mut receive, CONTROL_FRAME_BYTES)
            .await?
            .ok_or(StreamError::Torn)?;
        Ok((answer, (send, receive)))
    }

    /// With an expired certificate there is one way back: ask for a new one here and now.
    async fn refused(&self, refused: Refused) -> End {
        if refused.code != RefusalCode::CertificateExpired {
            return End::Refused(refused);
        }
        match self.renew().await {
            Ok(()) => End::Renewed,
            Err(reason) => End::Refused(Refused {
                reason: format!("{}; renewal failed: {reason}", refused.reason),
                ..refused
            }),
        }
    }

    async fn serve(
        &self,
        queue: mpsc::Receiver<Report>,
        (mut control_out, control_in): (SendStream, RecvStream),
        stopped: &mut watch::Receiver<bool>,
    ) -> End {
        let (connection, follower) = (self.connection, self.follower);
        let mut tasks = JoinSet::new();
        tasks.spawn(read_control(control_in));
        tasks.spawn(read_links(connection.clone(), follower.clone()));
        tasks.spawn(send_reports(connection.clone(), follower.clone(), queue));
        tasks.spawn(answer_requests(connection.clone(), follower.clone()));
        tasks.spawn(notice_silence(connection.clone()));
        let mut presence = tokio::time::interval(PRESENCE_INTERVAL);
        let mut renewal = tokio::time::interval(RENEWAL_INTERVAL);
        let reason = loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    Some(Ok(Err(error))) => break lost(connection, &error),
                    Some(Ok(Ok(reason))) => break reason,
                    Some(Err(error)) => break format!("a task of the session failed: {error}"),
                    None => break "the session ended".to_owned(),
                },
                _ = presence.tick() => {
                    let message = Message::Presence(follower.presence().await);
                    if let Err(error) = framed::write(&mut control_out, &message).await {
                        break lost(connection, &error);
                    }
                }
                _ = renewal.tick() => self.renew_if_due().await,
                _ = stopped.changed() => {
                    let _ = tokio::time::timeout(FINISH_DEADLINE, follower.finish()).await;
                    say_goodbye(&mut control_out).await;
                    connection.close(0u32.into(), b"goaway");
                    tasks.shutdown().await;
                    return End::Stopped;
                }
            }
        };
        connection.close(0u32.into(), b"");
        // No answer of this session may reach the follower once the next one has begun.
        tasks.shutdown().await;
        End::Lost(reason)
    }

    /// A failed renewal is tried again an hour later: ten days are left.
    async fn renew_if_due(&self) {
        if !self.credentials.renewal_is_due(self.clock.now()) {
            return;
        }
        match self.renew().await {
            Ok(()) => tracing::info!("the certificate was renewed"),
            Err(reason) => tracing::warn!(reason, "the certificate could not be renewed"),
        }
    }

    async fn renew(&self) -> Result<(), String> {
        let signing_request = self
            .credentials
            .signing_request()
            .map_err(|error| error.to_string())?;
        let request = Message::Renew(Renew { signing_request });
        let asked = tokio::time::timeout(REQUEST_DEADLINE, self.ask(&request));
        match asked.await {
            Err(_) => Err("no answer in time".to_owned()),
            Ok(Err(error)) => Err(lost(self.connection, &error)),
            Ok(Ok(Message::Renewed(renewed))) => self
                .credentials
                .install(renewed.certificate)
                .map_err(|error| error.to_string()),
            Ok(Ok(Message::Failed(error))) => Err(error.message),
            Ok(Ok(other)) => Err(format!("the answer is {}", other.name())),
        }
    }

    async fn ask(&self, request: &Message) -> Result<Message, StreamError> {
        let (mut send, mut receive) = self
            .connection
            .open_bi()
            .await
            .map_err(std::io::Error::from)?;
        framed::write(&mut send, request).await?;
        let _ = send.finish();
        framed::read(&mut receive, CONTROL_FRAME_BYTES)
            .await?
            .ok_or(StreamError::Torn)
    }
}

/// How many reports may wait for their answers at once.
fn reports_in_flight(welcome: &Welcome) -> usize {
    let in_flight = welcome
        .max_reports_in_flight
        .clamp(1, MAX_REPORTS_IN_FLIGHT);
    in_flight as usize
}

async fn say_goodbye(control: &mut SendStream) {
    let goaway = Message::Goaway(Goaway {
        reason: "the node agent stops".to_owned(),
    });
    // The end of the connection says the same, a little later.
    if framed::write(control, &goaway).await.is_ok() && control.finish().is_ok() {
        let _ = tokio::time::timeout(FINISH_DEADLINE, control.stopped()).await;
    }
}

/// A gateway that is heard no more is gone, whatever the transport still waits for.
async fn notice_silence(connection: Connection) -> Result<String, StreamError> {
    until_silent(&connection).await;
    Ok("nothing has been heard of the gateway for 25 s".to_owned())
}

/// What the gateway says on the control stream until it says goodbye.
async fn read_control(mut control: RecvStream) -> Result<String, StreamError> {
    loop {
        match next(&mut control, CONTROL_FRAME_BYTES).await? {
            None => return Ok("the gateway closed the connection".to_owned()),
            Some(Message::Goaway(goaway)) => return Ok(format!("the gateway: {}", goaway.reason)),
            Some(message) => tracing::debug!(message = message.name(), "ignored on control"),
        }
    }
}

/// The links this node follows: all of them first, then each change.
async fn read_links(connection: Connection, follower: Follower) -> Result<String, StreamError> {
    let mut links = connection
        .accept_uni()
        .await
        .map_err(std::io::Error::from)?;
    loop {
        match next(&mut links, MAX_FRAME_BYTES).await? {
            None => return Ok("the gateway closed the links".to_owned()),
            Some(Message::Link(link)) => follower.link(*link),
            Some(Message::LinkRemoved { link }) => follower.link_removed(link),
            Some(Message::LinksEnd { count }) => {
                tracing::debug!(count, "all links are known");
                follower.links_end();
            }
            Some(message) => tracing::debug!(message = message.name(), "ignored on links"),
        }
    }
}

/// Sends reports and hands their answers back.
async fn send_reports(
    connection: Connection,
    follower: Follower,
    mut queue: mpsc::Receiver<Report>,
) -> Result<String, StreamError> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(std::io::Error::from)?;
    let write = async {
        while let Some(report) = queue.recv().await {
            tracing::trace!(?report, "report");
            framed::write(&mut send, &Message::Report(Box::new(report))).await?;
        }
        Ok::<_, StreamError>("the follower ended the session".to_owned())
    };
    let read = async {
        loop {
            match next(&mut receive, MAX_FRAME_BYTES).await? {
                None => return Ok("the gateway closed the reports".to_owned()),
                Some(Message::ReportAnswer(answer)) => {
                    tracing::trace!(?answer, "answer");
                    follower.answer(answer);
                }
                Some(message) => tracing::debug!(message = message.name(), "ignored on reports"),
            }
        }
    };
    tokio::select! {
        end = write => end,
        end = read => end,
    }
}

/// Answers the gateway's requests, each on its own stream.
async fn answer_requests(
    connection: Connection,
    follower: Follower,
) -> Result<String, StreamError> {
    let mut running = JoinSet::new();
    loop {
        let (send, receive) = connection.accept_bi().await.map_err(std::io::Error::from)?;
        while running.len() >= MAX_REQUESTS {
            let _ = running.join_next().await;
        }
        while running.try_join_next().is_some() {}
        running.spawn(answer_request(send, receive, follower.clone()));
    }
}

async fn answer_request(mut send: SendStream, mut receive: RecvStream, follower: Follower) {
    let read = framed::read::<Message, _>(&mut receive, CONTROL_FRAME_BYTES);
    let answer = match tokio::time::timeout(REQUEST_DEADLINE, read).await {
        Ok(Ok(Some(request))) => answer_to(request, &follower).await,
        Ok(Err(StreamError::Frame(FrameError::Unsupported { name }))) => {
            Message::Unsupported { name }
        }
        Ok(Ok(None) | Err(_)) | Err(_) => return,
    };
    if framed::write(&mut send, &answer).await.is_ok() {
        let _ = send.finish();
    }
}

async fn answer_to(request: Message, follower: &Follower) -> Message {
    match request {
        Message::CatalogPage(page) => Message::CatalogThreads(follower.catalog_page(page).await),
        Message::OpenThread(open) => match follower.open_thread(open).await {
            Ok(opened) => Message::ThreadOpened(Box::new(opened)),
            Err(error) => Message::Failed(error),
        },
        Message::HistoryPage(page) => match follower.history(page).await {
            Ok(items) => Message::HistoryItems(items),
            Err(error) => Message::Failed(error),
        },
        Message::Ping {} => Message::Pong {},
        other => Message::Failed(ApiError::new(
            ErrorType::Unsupported,
            format!("a node does not answer {}", other.name()),
        )),
    }
}

/// The next message; those that this build does not know are passed over.
async fn next(stream: &mut RecvStream, limit: usize) -> Result<Option<Message>, StreamError> {
    loop {
        match framed::read(stream, limit).await {
            Err(StreamError::Frame(FrameError::Unsupported { name })) => {
                tracing::debug!(name, "unknown message ignored");
            }
            other => return other,
        }
    }
}

/// Why the connection broke: its own reason says more than the stream's error.
fn lost(connection: &Connection, error: &StreamError) -> String {
    match connection.close_reason() {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}
