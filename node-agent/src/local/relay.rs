//! Session requests of programs on this machine, relayed to the gateway.

use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, RecvStream};
use tidings_protocol::session_api::{ApiError, Call, ErrorType, Reply};
use tidings_protocol::wire::messages::Relay;
use tidings_protocol::wire::{FrameError, Message};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use super::replies::{ReplyError, whole_reply};
use crate::connection::Agent;
use crate::framed::{self, StreamError};

/// Requests that wait for the gateway at once; the next waits for a place.
const MAX_REQUESTS: usize = 16;
/// Streams of replies open at once. Each takes a stream of the connection for as long as its
/// program runs, so that the next is told to try later.
const MAX_FOLLOWS: usize = 32;
/// How long an answer may take, the wait for a place included: somewhat less than a program
/// waits for it, so that it learns why.
const ANSWER_DEADLINE: Duration = Duration::from_secs(50);
/// The most parts of one answer: 16 MiB.
const MAX_PARTS: usize = 64;

/// Relays calls over an agent's connection.
#[derive(Debug)]
pub(super) struct Relayer {
    agent: Agent,
    requests: Semaphore,
    follows: Arc<Semaphore>,
}

impl Relayer {
    /// Relays over this agent's connection.
    pub(super) fn new(agent: Agent) -> Self {
        Self {
            agent,
            requests: Semaphore::new(MAX_REQUESTS),
            follows: Arc::new(Semaphore::new(MAX_FOLLOWS)),
        }
    }

    /// The gateway's reply to a call.
    pub(super) async fn answer(&self, call: Call) -> Reply {
        match timeout(ANSWER_DEADLINE, self.relay(&call)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => Reply::Error(explain(&self.agent, error)),
            Err(_) => Reply::Error(self.late()),
        }
    }

    async fn relay(&self, call: &Call) -> Result<Reply, RelayError> {
        let gateway = self.agent.gateway()?;
        // It is never closed: an error cannot come.
        let _place = self.requests.acquire().await;
        let mut replies = ask(&gateway, call).await?;
        Ok(whole_reply(&mut replies, MAX_PARTS).await?)
    }

    /// The gateway's replies to a call for a stream.
    pub(super) fn follow(&self, call: Call) -> mpsc::Receiver<Reply> {
        let (sender, receiver) = mpsc::channel(1);
        let began = (|| {
            let place = self.follows.clone().try_acquire_owned();
            Ok((self.agent.gateway()?, place.map_err(|_| full())?))
        })();
        let (gateway, place) = match began {
            Ok(began) => began,
            Err(error) => {
                // The channel has room for one and nobody else holds it.
                let _ = sender.try_send(Reply::Error(error));
                return receiver;
            }
        };
        let agent = self.agent.clone();
        tokio::spawn(async move {
            tokio::select! {
                error = pass_on(&gateway, &call, &sender, place) => {
                    let error = explain(&agent, error);
                    let _ = sender.send(Reply::Error(error)).await;
                }
                () = sender.closed() => {}
            }
        });
        receiver
    }

    fn late(&self) -> ApiError {
        ApiError::new(
            ErrorType::Unavailable,
            format!(
                "the gateway at {} did not answer within {} s",
                self.agent.gateway_address(),
                ANSWER_DEADLINE.as_secs()
            ),
        )
        .with_hint("its log says what it is doing; tidings-node status how the connection stands")
    }
}

/// Why there is no answer.
enum RelayError {
    /// This one is the answer.
    Api(ApiError),
    /// The stream to the gateway broke.
    Reply(ReplyError),
}

impl From<ApiError> for RelayError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<ReplyError> for RelayError {
    fn from(error: ReplyError) -> Self {
        Self::Reply(error)
    }
}

impl From<StreamError> for RelayError {
    fn from(error: StreamError) -> Self {
        Self::Reply(error.into())
    }
}

/// Asks the gateway on a stream of its own.
async fn ask(gateway: &Connection, call: &Call) -> Result<RecvStream, StreamError> {
    let (mut send, receive) = gateway.open_bi().await.map_err(std::io::Error::from)?;
    let relay = Message::Relay(Relay {
        caller: call.caller.clone(),
    });
    framed::write(&mut send, &relay).await?;
    framed::write(&mut send, &call.request).await?;
    let _ = send.finish();
    Ok(receive)
}

/// Passes replies on as they come, until the gateway ends them.
async fn pass_on(
    gateway: &Connection,
    call: &Call,
    replies: &mpsc::Sender<Reply>,
    _place: OwnedSemaphorePermit,
) -> RelayError {
    let mut receive = match timeout(ANSWER_DEADLINE, ask(gateway, call)).await {
        Ok(Ok(receive)) => receive,
        Ok(Err(error)) => return error.into(),
        Err(_) => return ReplyError::Ended.into(),
    };
    loop {
        match whole_reply(&mut receive, MAX_PARTS).await {
            Ok(Reply::Error(error)) => return error.into(),
            Ok(reply) => {
                let _ = replies.send(reply).await;
            }
            Err(error) => return error.into(),
        }
    }
}

fn explain(agent: &Agent, error: RelayError) -> ApiError {
    let address = agent.gateway_address();
    match error {
        RelayError::Api(error) => error,
        // Not a reply but a message of the node protocol: it does not know `relay`.
        RelayError::Reply(ReplyError::Stream(StreamError::Frame(FrameError::Unsupported {
            ..
        }))) => ApiError::new(
            ErrorType::Unsupported,
            format!("the gateway at {address} does not answer session requests of a node"),
        )
        .with_hint("update the gateway"),
        RelayError::Reply(error) => ApiError::new(
            ErrorType::Unavailable,
            format!("the gateway at {address} went away before it had answered: {error}"),
        )
        .with_hint("ask again: the node agent connects anew by itself"),
    }
}

fn full() -> ApiError {
    ApiError::new(
        ErrorType::TryLater,
        format!("{MAX_FOLLOWS} programs of this machine follow the gateway already"),
    )
    .with_hint("end one of them")
}
