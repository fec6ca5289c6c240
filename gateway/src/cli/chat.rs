//! `tidings chat`: talks to a session that the gateway runs.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use tidings_node::cli::{CommandError, Note, Output, OutputFormat};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ApiError, Chat, ChatDone, ChatNews, ErrorType, PrivateText, Reply, Request,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Context;
use crate::state::MAX_MESSAGE_BYTES;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tidings chat\n  \
    tidings chat --session agent:ops:main --message 'Is the build green?'\n\n\
    In a conversation: /status, /new, /reset, /compact [what to dwell on]\n\
    In a terminal, Ctrl-C ends a turn and Ctrl-D the conversation")]
pub(super) struct ChatArgs {
    /// The session; else the default agent's main session
    #[arg(long, value_name = "KEY")]
    session: Option<SessionKey>,
    /// The agent of a key that names none, or whose main session it is
    #[arg(long)]
    agent: Option<String>,
    /// Says this and ends with the answer; else each line of stdin is said
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
}

/// What is said before each line in a terminal.
const PROMPT: &str = "> ";
/// The same after what was typed so far was dropped.
const PROMPT_AGAIN: &str = "\n> ";

/// Ctrl-C of a person in a terminal: it ends a turn, and not the conversation. Anybody else's
/// ends the command, as it does everywhere.
struct Interrupts(Option<Signal>);

impl Interrupts {
    /// Listens to them where a person types.
    fn heard() -> Result<Self, ApiError> {
        if !io::stdin().is_terminal() {
            return Ok(Self(None));
        }
        let signal = signal(SignalKind::interrupt()).map_err(|error| {
            let message = format!("Ctrl-C cannot be listened to: {error}");
            ApiError::new(ErrorType::Internal, message)
        })?;
        Ok(Self(Some(signal)))
    }

    /// The next one; never where nobody types.
    async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

pub(super) async fn run(args: ChatArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let chat = |message: String| Chat {
        session_key: args.session.clone(),
        agent: args.agent.clone(),
        message: PrivateText(message),
    };
    if let Some(message) = args.message.clone() {
        return say(chat(message), context).await;
    }
    let mut interrupts = Interrupts::heard()?;
    while let Some(line) = next_line(context.output, &mut interrupts).await? {
        if line.trim().is_empty() {
            continue;
        }
        let said = tokio::select! {
            said = say(chat(line), context) => Some(said),
            () = interrupts.next() => None,
        };
        // The gateway sees that nobody listens any more, and ends the turn.
        let Some(said) = said else {
            context.output.piece("\n")?;
            let cancelled = "the turn is cancelled; Ctrl-D ends the conversation";
            context.output.note(&Note::Info(cancelled.to_owned()));
            continue;
        };
        match said {
            // A conversation goes on after a turn that came to nothing.
            Err(CommandError::Api(error)) if io::stdin().is_terminal() && may_pass(&error) => {
                context.output.note(&Note::Warning(error.message));
                if let Some(hint) = error.hint {
                    context.output.note(&Note::Hint(hint));
                }
            }
            said => said?,
        }
    }
    Ok(())
}

fn may_pass(error: &ApiError) -> bool {
    !matches!(error.error_type, ErrorType::Configuration)
}

/// Says something, and shows the answer as it comes.
async fn say(chat: Chat, context: &mut Context<'_>) -> Result<(), CommandError> {
    let mut connection = context.client.stream(&Request::Chat(chat)).await?;
    let mut is_shown = false;
    loop {
        match connection.next().await? {
            Some(Reply::Chat(ChatNews::Text { text })) => {
                is_shown = true;
                context.output.piece(&text.0)?;
            }
            Some(Reply::Chat(ChatNews::Note { text })) => {
                context.output.note(&Note::Info(text));
            }
            Some(Reply::Chat(ChatNews::Done(done))) => {
                if is_shown {
                    context.output.piece("\n")?;
                }
                return finish(&done, context);
            }
            Some(_) => return Err(connection.unexpected().into()),
            None => return Err(gone().into()),
        }
    }
}

fn finish(done: &ChatDone, context: &Context<'_>) -> Result<(), CommandError> {
    match context.output.format() {
        OutputFormat::Json => context.output.item(done, |_| String::new()),
        OutputFormat::Human => Ok(()),
    }
}

/// The next line that is typed; `None` at the end.
async fn next_line(
    output: Output,
    interrupts: &mut Interrupts,
) -> Result<Option<String>, ApiError> {
    let mut reading = tokio::task::spawn_blocking(move || {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            output.prompt(PROMPT);
        }
        let mut line = String::new();
        let limit = MAX_MESSAGE_BYTES as u64 + 1;
        let read = io::Read::take(stdin.lock(), limit).read_line(&mut line)?;
        Ok::<_, io::Error>((read > 0).then_some(line))
    });
    let read = loop {
        tokio::select! {
            read = &mut reading => break read.unwrap_or_else(|error| Err(error.into())),
            // What was typed so far the terminal has dropped.
            () = interrupts.next() => output.prompt(PROMPT_AGAIN),
        }
    };
    let unreadable = |error: io::Error| {
        ApiError::new(
            ErrorType::InvalidData,
            format!("stdin is not read: {error}"),
        )
    };
    let line = read.map_err(unreadable)?;
    Ok(line.map(|line| line.trim_end_matches(['\n', '\r']).to_owned()))
}

fn gone() -> ApiError {
    ApiError::new(
        ErrorType::Unavailable,
        "the gateway has gone before the turn was over",
    )
    .with_hint("what was said is kept in the session's transcript: tidings sessions history KEY")
}
