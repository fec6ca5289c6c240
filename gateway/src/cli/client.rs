//! The gateway, as a command asks it.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tidings_node::cli::door::ANSWER_DEADLINE;
use tidings_node::cli::{CommonArgs, Connection, Door, Note, Output};
use tidings_node::local::socket::GATEWAY_SOCKET;
use tidings_protocol::session_api::{ApiError, Reply, Request};
use tokio::time::timeout;

/// How long a command waits before it says that it does.
const SILENCE: Duration = Duration::from_secs(2);

/// Asks one gateway; connects when it is first asked, and keeps the connection.
#[derive(Debug)]
pub(super) struct Client {
    door: Door,
    connection: Option<Connection>,
    output: Option<Output>,
}

impl Client {
    /// A client of the gateway of this state directory.
    pub(super) fn new(common: &CommonArgs) -> Result<Self, ApiError> {
        let mut client = Self::of(&common.state_dir()?);
        client.door.start = format!("tidings gateway run{}", common.state_dir_flag());
        client.output = Some(common.output());
        Ok(client)
    }

    /// Where the gateway answers.
    pub(super) fn into_door(self) -> Door {
        self.door
    }

    /// A client of the gateway whose state directory this is.
    pub(super) fn of(state_dir: &Path) -> Self {
        Self {
            door: Door {
                socket: state_dir.join(GATEWAY_SOCKET),
                service: "gateway",
                start: format!("tidings gateway run --state-dir {}", state_dir.display()),
                deadline: ANSWER_DEADLINE,
            },
            connection: None,
            output: None,
        }
    }

    /// Asks, and gives what `take` finds in the answer. An answer of another kind is an
    /// error.
    pub(super) async fn ask<T>(
        &mut self,
        request: Request,
        take: impl FnOnce(Reply) -> Option<T>,
    ) -> Result<T, ApiError> {
        let output = self.output;
        let connection = self.connection().await?;
        let reply = {
            let mut asked = pin!(connection.ask(&request));
            if let Ok(reply) = timeout(SILENCE, &mut asked).await {
                reply?
            } else {
                say_that_it_waits(output);
                asked.await?
            }
        };
        take(reply).ok_or_else(|| connection.unexpected())
    }

    /// Asks what is answered again and again, on a connection of its own.
    pub(super) async fn stream(&self, request: &Request) -> Result<Connection, ApiError> {
        let mut connection = self.door.clone().connect().await?;
        connection.send(request).await?;
        Ok(connection)
    }

    /// The connection itself, for a stream of answers.
    pub(super) async fn connection(&mut self) -> Result<&mut Connection, ApiError> {
        if self.connection.is_none() {
            self.connection = Some(self.door.clone().connect().await?);
        }
        Ok(self.connection.as_mut().expect("connected above"))
    }
}

fn say_that_it_waits(output: Option<Output>) {
    let waits = format!(
        "the gateway has not answered for {SILENCE:?}: waiting for it, {ANSWER_DEADLINE:?} in all"
    );
    if let Some(output) = output {
        output.note(&Note::Info(waits));
    }
}

/// What [`Client::ask`] takes out of a reply: the body of the one variant that answers.
macro_rules! answer {
    ($variant:ident) => {
        |reply| match reply {
            tidings_protocol::session_api::Reply::$variant(body) => Some(body),
            _ => None,
        }
    };
}
pub(super) use answer;
