//! `tidings token`: what programs show at the HTTP door.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use tidings_node::cli::format::{utc, utc_or_nothing};
use tidings_node::cli::{Column, CommandError, Note, Page, Table, nearest};
use tidings_protocol::session_api::{
    ApiError, ErrorType, Request, TokenCreate, TokenCreated, TokenRef, TokenRow, TokenScope,
    TokenState, Tokens,
};

use super::Context;
use super::client::answer;
use crate::config::Age;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Makes a token and prints it, this once
    Create(CreateArgs),
    /// Lists tokens: what they permit, when they were last used, when they end
    #[command(after_help = "Example:\n  tidings token list")]
    List,
    /// Ends a token; what it opened is closed
    #[command(after_help = "Example:\n  tidings token revoke dashboard")]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tidings token create dashboard --scope read --expires 30d\n\n\
    read: requests that change nothing. write: what sessions do as well. admin: what operators \
    do as well."
)]
pub(super) struct CreateArgs {
    /// What it is called
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// What it permits
    #[arg(long, value_parser = scope_parser())]
    scope: TokenScope,
    /// After how long it ends by itself, as in 30d or 12h; else when it is revoked
    #[arg(long, value_name = "DURATION", value_parser = parse_age)]
    expires: Option<Age>,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// What it is called
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

fn scope_parser() -> impl TypedValueParser<Value = TokenScope> {
    PossibleValuesParser::new(TokenScope::ALL.map(TokenScope::as_str))
        .try_map(|name| TokenScope::parse(&name).ok_or("no such scope"))
}

fn parse_age(text: &str) -> Result<Age, &'static str> {
    Age::parse(text).ok_or("a duration is a whole number with a unit: 30d, 12h, 90m, 45s")
}

pub(super) async fn run(
    command: TokenCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        TokenCommand::Create(args) => {
            let millis = |age: Age| u64::try_from(age.0.as_millis()).unwrap_or(u64::MAX);
            let request = Request::TokenCreate(TokenCreate {
                name: args.name,
                scope: args.scope,
                expires_in_ms: args.expires.map(millis),
            });
            let created = context.client.ask(request, answer!(TokenCreate)).await?;
            context.output.answer(&created, created_page)
        }
        TokenCommand::List => {
            let request = Request::TokenList {};
            let tokens = context.client.ask(request, answer!(TokenList)).await?;
            context.output.answer(&tokens, list_page)
        }
        TokenCommand::Revoke(args) => {
            let request = Request::TokenRevoke(TokenRef {
                name: args.name.clone(),
            });
            match context.client.ask(request, answer!(TokenRevoke)).await {
                Ok(revoked) => context.output.answer(&revoked, revoked_page),
                Err(error) => Err(suggested(context, error, &args.name).await.into()),
            }
        }
    }
}

/// Completes an error about a token that is not in use.
async fn suggested(context: &mut Context<'_>, error: ApiError, given: &str) -> ApiError {
    if error.error_type != ErrorType::NotFound {
        return error;
    }
    let request = Request::TokenList {};
    let Ok(Tokens { tokens }) = context.client.ask(request, answer!(TokenList)).await else {
        return error;
    };
    let names: Vec<&str> = tokens
        .iter()
        .filter(|row| row.state == TokenState::Active)
        .map(|row| row.name.as_str())
        .collect();
    let hint = nearest::hint(given, "tokens", &names, names.len(), "tidings token list");
    error.with_hint(hint)
}

/// The token alone is the data: it goes into a file or a variable.
fn created_page(created: &TokenCreated) -> Page {
    let end = match created.expires_at {
        Some(end) => format!("until {} UTC", utc(end)),
        None => "until it is revoked".to_owned(),
    };
    Page::of(format!("{}\n", created.token.0))
        .with(Note::Info(format!(
            "{}: permits {}, {end}; it is not shown again",
            created.name, created.scope
        )))
        .with(Note::Hint(
            "show it as `Authorization: Bearer TOKEN`; tidings status says where".to_owned(),
        ))
}

fn revoked_page(revoked: &TokenRow) -> Page {
    Page::of(format!("{} is revoked\n", revoked.name))
}

fn list_page(page: &Tokens) -> Page {
    if page.tokens.is_empty() {
        return Page::empty("no tokens", "tidings token create NAME --scope read");
    }
    Page::of(
        Table::new([
            Column::left("NAME"),
            Column::left("SCOPE"),
            Column::left("STATE"),
            Column::left("MADE (UTC)"),
            Column::left("LAST USED (UTC)").where_filled(),
            Column::left("ENDS (UTC)").where_filled(),
        ])
        .with_rows(&page.tokens, |row| {
            [
                row.name.clone(),
                row.scope.to_string(),
                row.state.as_str().to_owned(),
                utc(row.created_at),
                utc_or_nothing(row.last_used_at),
                utc_or_nothing(row.revoked_at.or(row.expires_at)),
            ]
        }),
    )
}
