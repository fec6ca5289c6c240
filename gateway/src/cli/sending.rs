//! `tidings sessions send|spawn`: a message to a session, a child with a task.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidings_node::cli::{CommandError, Note, Page};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ChildRuntime, Request, Sent, SessionsSend, SessionsSpawn, Spawned,
};

use super::client::answer;
use super::text::TextArgs;
use super::{Context, suggest};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tidings sessions send agent:main:main 'The build is green again.'\n  \
    tidings sessions send agent:ops:main --from agent:main:main --watch --file request.md")]
pub(super) struct SendArgs {
    /// The session it is for
    #[arg(value_name = "KEY")]
    session: SessionKey,
    #[command(flatten)]
    text: TextArgs,
    /// The session that sends it; else it is yours, and a human's
    #[arg(long, value_name = "KEY")]
    from: Option<SessionKey>,
    /// Has the sender watch the session from then on
    #[arg(long, requires = "from")]
    watch: bool,
    /// Sends only while this transcript continues the session
    #[arg(long, value_name = "ID")]
    expect_session_id: Option<String>,
    /// The agent of a key that names none; else the default agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings sessions spawn agent:main:main --label tests 'Run the tests and report.'")]
pub(super) struct SpawnArgs {
    /// The session whose child it is; it watches the child from then on, unless its key is bare
    #[arg(value_name = "PARENT")]
    parent: SessionKey,
    #[command(flatten)]
    text: TextArgs,
    /// Who runs it
    #[arg(long, default_value = "subagent", value_parser = runtime_parser())]
    runtime: ChildRuntime,
    /// A name to show
    #[arg(long)]
    label: Option<String>,
    /// The child's agent; else the parent's
    #[arg(long)]
    agent: Option<String>,
}

fn runtime_parser() -> impl TypedValueParser<Value = ChildRuntime> {
    PossibleValuesParser::new(ChildRuntime::ALL.map(ChildRuntime::as_str))
        .try_map(|name| ChildRuntime::parse(&name).ok_or("not a runtime"))
}

pub(super) async fn send(args: SendArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let key = args.session.clone();
    let made = match &args.from {
        Some(sender) => made_by_this(sender, context).await,
        None => None,
    };
    let request = Request::SessionsSend(SessionsSend {
        session_key: args.session,
        agent: args.agent,
        message: args.text.read()?,
        sender: args.from,
        watch: args.watch.then_some(true),
        expected_session_id: args.expect_session_id,
    });
    let client = &mut context.client;
    match client.ask(request, answer!(SessionsSend)).await {
        Ok(sent) => {
            context.note(made);
            context.output.answer(&sent, sent_page)
        }
        Err(error) => Err(suggest::sessions(client, error, key.as_str()).await.into()),
    }
}

pub(super) async fn spawn(args: SpawnArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let made = made_by_this(&args.parent, context).await;
    let request = Request::SessionsSpawn(SessionsSpawn {
        parent: Some(args.parent),
        agent: args.agent,
        runtime: args.runtime,
        label: args.label,
        task: args.text.read()?,
    });
    let spawned = context.client.ask(request, answer!(SessionsSpawn)).await?;
    context.note(made);
    context.output.answer(&spawned, spawned_page)
}

/// A session that speaks exists from then on. Where there was none before, whoever speaks as it
/// by hand may have misspelt it.
async fn made_by_this(speaker: &SessionKey, context: &mut Context<'_>) -> Option<Note> {
    let client = &mut context.client;
    if suggest::exists(client, speaker).await {
        return None;
    }
    let hint = suggest::session_hint(client, speaker.as_str()).await;
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Some(Note::Warning(format!(
        "there was no session {speaker}, and there is now{hint}"
    )))
}

fn sent_page(sent: &Sent) -> Page {
    let what = if sent.ran {
        format!(
            "a turn of {} takes message {} now",
            sent.session_key, sent.message_id
        )
    } else {
        format!(
            "message {} waits for the next turn of {}",
            sent.message_id, sent.session_key
        )
    };
    let page = Page::of(format_args!("{what}\n"));
    match (sent.watched, &sent.reason) {
        (Some(true), _) => page.with(Note::Info("watched from here on".to_owned())),
        (Some(false), Some(reason)) => page.with(Note::Warning(format!("not watched: {reason}"))),
        (Some(false) | None, _) => page,
    }
}

fn spawned_page(spawned: &Spawned) -> Page {
    let what = if spawned.ran {
        "it runs its task now"
    } else {
        "its task waits for its first turn"
    };
    let watched = if spawned.watched {
        format!("its parent watches it from version {}", spawned.sequence)
    } else {
        "nobody watches it: a parent with a bare key cannot".to_owned()
    };
    let page = Page::of(format_args!("{}\n", spawned.session_key));
    page.with(Note::Info(format!("{what}; {watched}")))
}
