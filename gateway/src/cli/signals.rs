//! `tidings signals`: the durable log of what happened to sessions.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, value_parser};
use tidings_node::cli::format::utc;
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::key::KeyError;
use tidings_protocol::session_api::{
    ApiError, ErrorType, MAX_SIGNALS_PER_PAGE, Recorded, Request, SignalWhy, Signals, SignalsQuery,
    SignalsRecord,
};
use tidings_protocol::signal::RunOutcome;
use tidings_protocol::{Actor, SessionKey, SignalKind};

use super::args::parse_sequence;
use super::client::answer;
use super::session_pages::actor_name;
use super::signals_follow::{FollowArgs, follow};
use super::{Context, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum SignalsCommand {
    /// Lists signals, oldest first
    List(ListArgs),
    /// Prints signals as they are recorded
    Follow(FollowArgs),
    /// Prints why an upstream signal was recorded: the file, the bytes and the rule
    #[command(after_help = "Example:\n  tidings signals why 42")]
    Why {
        /// The signal's sequence
        #[arg(value_parser = parse_sequence)]
        sequence: u64,
    },
    /// Records a signal by hand: in the log and for its watchers, and nowhere else
    Record(RecordArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings signals list --session agent:main:main --after 42")]
pub(super) struct ListArgs {
    /// Only of this session
    #[arg(long, value_name = "KEY")]
    session: Option<SessionKey>,
    /// Only after this sequence
    #[arg(long, value_name = "SEQUENCE", value_parser = parse_sequence)]
    after: Option<u64>,
    /// How many, 100 unless told otherwise, at most 10000
    #[arg(long, value_name = "N",
        value_parser = value_parser!(u32).range(1..=i64::from(MAX_SIGNALS_PER_PAGE)))]
    limit: Option<u32>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tidings signals record --session agent:main:main \
    --kind human_direct_message --actor human --channel telegram"
)]
pub(super) struct RecordArgs {
    /// The session it is about
    #[arg(long, value_name = "KEY")]
    session: SessionKey,
    /// What happened
    #[arg(long, value_parser = kind_parser())]
    kind: SignalKind,
    /// Who did it: `human`, `system`, or the acting session's key
    #[arg(long, value_parser = parse_actor)]
    actor: String,
    /// For child_spawned: the parent, whose watch begins; else the actor
    #[arg(long, value_name = "KEY")]
    parent: Option<SessionKey>,
    /// The channel a message came by
    #[arg(long)]
    channel: Option<String>,
    /// For run_failed: how the run ended
    #[arg(long, value_parser = outcome_parser())]
    outcome: Option<RunOutcome>,
    /// The run it belongs to
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// One line instead of the kind's own
    #[arg(long, value_name = "LINE")]
    summary: Option<String>,
    /// Records only once per session under this key
    #[arg(long, value_name = "TEXT")]
    dedupe_key: Option<String>,
}

pub(super) async fn run(
    command: SignalsCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        SignalsCommand::List(args) => list(args, context).await,
        SignalsCommand::Follow(args) => follow(args, context).await,
        SignalsCommand::Why { sequence } => {
            let request = Request::SignalsWhy { sequence };
            let why = context.client.ask(request, answer!(SignalsWhy)).await;
            let why = why.map_err(with_the_list)?;
            context.output.answer(&why, why_page)
        }
        SignalsCommand::Record(args) => {
            let request = Request::SignalsRecord(args.into_request());
            let recorded = context.client.ask(request, answer!(SignalsRecord)).await?;
            context.output.answer(&recorded, recorded_page)
        }
    }
}

async fn list(args: ListArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let request = Request::SignalsList(SignalsQuery {
        session: args.session.clone(),
        after: args.after,
        limit: args.limit,
    });
    let signals = context.client.ask(request, answer!(Signals)).await?;
    if signals.signals.is_empty()
        && let Some(session) = &args.session
    {
        suggest::unknown_session(context, session).await;
    }
    context.output.answer(&signals, list_page)
}

impl RecordArgs {
    fn into_request(self) -> SignalsRecord {
        SignalsRecord {
            session: self.session,
            kind: self.kind,
            actor: self.actor,
            parent: self.parent,
            channel: self.channel,
            outcome: self.outcome,
            run_id: self.run_id,
            summary: self.summary,
            dedupe_key: self.dedupe_key,
        }
    }
}

fn kind_parser() -> impl TypedValueParser<Value = SignalKind> {
    PossibleValuesParser::new(SignalKind::ALL.map(SignalKind::as_str))
        .try_map(|name| SignalKind::parse(&name).ok_or("not a kind of signal"))
}

fn outcome_parser() -> impl TypedValueParser<Value = RunOutcome> {
    PossibleValuesParser::new(["error", "timeout", "cancelled"])
        .try_map(|name| RunOutcome::parse(&name).ok_or("not an outcome"))
}

/// A sequence that does not exist is like no other; the log says which do.
fn with_the_list(error: ApiError) -> ApiError {
    if error.error_type == ErrorType::NotFound && error.hint.is_none() {
        error.with_hint("tidings signals list")
    } else {
        error
    }
}

/// Refuses here what the gateway would refuse, with the right option named.
fn parse_actor(text: &str) -> Result<String, KeyError> {
    Ok(match Actor::parse(text)? {
        Actor::Agent(key) => key.to_string(),
        other => other.actor_type().as_str().to_owned(),
    })
}

fn list_page(page: &Signals) -> Page {
    let listed = table_page(page);
    match page.earliest_available_sequence {
        Some(oldest) => listed.with(Note::Warning(format!(
            "signals before {oldest} are kept no more: read the sessions afresh"
        ))),
        None => listed,
    }
}

fn table_page(page: &Signals) -> Page {
    if page.signals.is_empty() {
        return Page::empty("no signals", "tidings signals follow waits for the next");
    }
    let table = Table::new([
        Column::right("SEQUENCE"),
        Column::left("OCCURRED (UTC)"),
        Column::left("KIND"),
        Column::left("ACTOR"),
        Column::left("SESSION"),
        Column::left("SUMMARY"),
    ])
    .with_rows(&page.signals, |signal| {
        [
            signal.sequence.to_string(),
            utc(signal.occurred_at),
            signal.kind.to_string(),
            actor_name(signal.actor_type, signal.actor_id.as_deref()),
            signal.session_key.to_string(),
            signal.summary.clone(),
        ]
    });
    Page::of(table)
}

fn why_page(why: &SignalWhy) -> Page {
    if why.evidence.is_empty() {
        return Page::empty(
            format!("no transcript caused signal {}", why.sequence),
            "tidings signals list shows who recorded it",
        );
    }
    let table = Table::new([
        Column::left("NODE"),
        Column::left("CATALOG"),
        Column::left("FILE"),
        Column::right("FROM BYTE"),
        Column::right("TO BYTE"),
        Column::left("RULE"),
        Column::left("RECORD").where_filled(),
    ])
    .with_rows(&why.evidence, |turn| {
        [
            turn.node.to_string(),
            turn.catalog.to_string(),
            turn.file.clone(),
            turn.byte_start.to_string(),
            turn.byte_end.to_string(),
            turn.rule.clone(),
            turn.record_id.clone().unwrap_or_default(),
        ]
    });
    Page::of(table)
}

fn recorded_page(recorded: &Recorded) -> Page {
    let what = match (recorded.recorded, &recorded.reason) {
        (true, _) => "recorded".to_owned(),
        (false, Some(reason)) => format!("not recorded: {reason}"),
        (false, None) => "not recorded".to_owned(),
    };
    let page = match recorded.sequence {
        Some(sequence) => Page::of(format_args!("{what}, sequence {sequence}\n")),
        None => Page::of(format_args!("{what}\n")),
    };
    match recorded.sequence {
        Some(sequence) if !recorded.recorded => page.with(Note::Hint(format!(
            "tidings signals list --after {} shows the one it repeats",
            sequence.saturating_sub(1)
        ))),
        _ => page,
    }
}
