//! `tidings sessions compact`: a summary in the place of a session's history.

use clap::Args;
use tidings_node::cli::{CommandError, Note, Page};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ApiError, ErrorType, PrivateText, Reply, Request, SessionCompact, SessionCompacted,
};

use super::{Context, suggest};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings sessions compact agent:main:main --instructions 'Keep the port numbers.'")]
pub(super) struct CompactArgs {
    /// The session
    #[arg(value_name = "KEY")]
    session: SessionKey,
    /// What the summary is to dwell on
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// The agent of a key that names none; else the default agent
    #[arg(long)]
    agent: Option<String>,
}

pub(super) async fn run(args: CompactArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let key = args.session.clone();
    let request = Request::SessionCompact(SessionCompact {
        session_key: args.session,
        agent: args.agent,
        instructions: args.instructions.map(PrivateText),
    });
    match ask(&request, context).await {
        Ok(done) => context.output.answer(&done, page),
        Err(error) => {
            let client = &mut context.client;
            Err(suggest::sessions(client, error, key.as_str()).await.into())
        }
    }
}

/// A summary takes as long as the model does: nobody gives up before.
async fn ask(request: &Request, context: &Context<'_>) -> Result<SessionCompacted, ApiError> {
    let mut connection = context.client.stream(request).await?;
    match connection.next().await? {
        Some(Reply::SessionCompact(done)) => Ok(done),
        Some(_) => Err(connection.unexpected()),
        None => Err(ApiError::new(
            ErrorType::Unavailable,
            "the gateway has gone before the history was compacted",
        )
        .with_hint("the session is what it was: try again")),
    }
}

fn page(done: &SessionCompacted) -> Page {
    if !done.compacted {
        return Page::default().with(Note::Info("there is nothing to compact".to_owned()));
    }
    Page::of(format_args!(
        "{} is compacted: {} tokens before, about {} now\n",
        done.session_key, done.tokens_before, done.tokens_after
    ))
}
