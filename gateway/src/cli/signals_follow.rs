//! `tidings signals follow`: the log as it grows, until one side goes.

use std::fs::File;
use std::os::fd::AsFd;

use clap::Args;
use serde::Serialize;
use tidings_node::cli::CommandError;
use tidings_node::cli::format::utc;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request, SignalRow, SignalsQuery};
use tokio::io::Interest;
use tokio::net::unix::pipe;

use super::Context;
use super::args::parse_sequence;
use super::client::answer;
use super::session_pages::actor_name;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings signals follow --json --after 42")]
pub(super) struct FollowArgs {
    /// Only of this session
    #[arg(long, value_name = "KEY")]
    session: Option<SessionKey>,
    /// From this sequence on; else from now on
    #[arg(long, value_name = "SEQUENCE", value_parser = parse_sequence)]
    after: Option<u64>,
}

pub(super) async fn follow(
    args: FollowArgs,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    // With a place to begin, there is one to go on from even if nothing comes.
    let mut last_seen = if let Some(after) = args.after {
        after
    } else {
        let status = context.client.ask(Request::Status {}, answer!(Status));
        status.await?.counts.head
    };
    let request = Request::SignalsFollow(SignalsQuery {
        session: args.session,
        after: Some(last_seen),
        limit: None,
    });
    let connection = context.client.connection().await?;
    connection.send(&request).await?;
    let reader_gone = stdout_closed();
    tokio::pin!(reader_gone);
    loop {
        let reply = tokio::select! {
            reply = connection.next() => reply?,
            () = &mut reader_gone => return Ok(()),
        };
        match reply {
            Some(Reply::Signals(page)) => {
                if let Some(oldest) = page.earliest_available_sequence {
                    context.output.item(&Gap::before(oldest), Gap::line)?;
                }
                for signal in &page.signals {
                    context.output.item(signal, line)?;
                    last_seen = signal.sequence;
                }
            }
            Some(_) => return Err(connection.unexpected().into()),
            None => return Err(gateway_gone(last_seen).into()),
        }
    }
}

/// Said first where signals after the one to go on from are kept no more.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Gap {
    event: &'static str,
    earliest_available_sequence: u64,
}

impl Gap {
    fn before(earliest_available_sequence: u64) -> Self {
        Self {
            event: "gap",
            earliest_available_sequence,
        }
    }

    fn line(&self) -> String {
        let oldest = self.earliest_available_sequence;
        format!("signals before {oldest} are kept no more: read the sessions afresh")
    }
}

fn gateway_gone(last_seen: u64) -> ApiError {
    ApiError::new(
        ErrorType::Unavailable,
        format!("the gateway has gone; the last sequence seen is {last_seen}"),
    )
    .with_hint(format!(
        "the same command with --after {last_seen} goes on from there"
    ))
}

/// A signal as people read it.
pub(super) fn line(signal: &SignalRow) -> String {
    format!(
        "{:>8}  {}  {:<20}  {}  {}  {}",
        signal.sequence,
        utc(signal.occurred_at),
        signal.kind.as_str(),
        actor_name(signal.actor_type, signal.actor_id.as_deref()),
        signal.session_key,
        signal.summary,
    )
}

/// Ends when nobody reads our stdout any more, so that a command in a pipe ends with the
/// pipe and not with the next signal. Where stdout is no pipe it never ends.
pub(super) async fn stdout_closed() {
    if let Ok(stdout) = stdout_as_pipe()
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// A second handle on stdout, only to be waited on: nothing is written through it, and the
/// mode that it shares with the first stays as it is.
fn stdout_as_pipe() -> std::io::Result<pipe::Sender> {
    let copy = std::io::stdout().as_fd().try_clone_to_owned()?;
    pipe::Sender::from_file_unchecked(File::from(copy))
}
