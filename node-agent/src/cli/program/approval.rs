//! `tidings-node join HOST:PORT`: asks for approval and waits for it.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tidings_protocol::NodeId;
use tidings_protocol::pairing::PairingWords;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::join::join_error;
use crate::cli::{CommandError, Note, Output, OutputFormat, daemon};
use crate::clock::Clock;
use crate::connection::{Asking, IdentityFileError, NodeIdentity};

/// Printed, for scripts, once there are words to compare.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Waiting<'a> {
    event: &'static str,
    words: PairingWords,
    node_id: NodeId,
    gateway: &'a str,
}

/// Asks, shows the words, and keeps the identity that comes back.
pub(super) async fn wait(
    address: &str,
    name: &str,
    state_dir: &Path,
    clock: &Arc<dyn Clock>,
    output: Output,
) -> Result<NodeIdentity, CommandError> {
    let stopped = daemon::stop_signal()?;
    let asking = Asking::ask(address, name, state_dir, clock)
        .await
        .map_err(|error| join_error(&error))?;
    let words = asking.words();
    show(&asking, address, output)?;
    let identity = tokio::select! {
        approved = asking.approved() => approved.map_err(|error| join_error(&error))?,
        () = stopped => return Err(not_waited_for().into()),
    };
    if must_confirm(output) && !confirmed(words, io::stdin().lock(), io::stderr()) {
        return Err(not_the_same().into());
    }
    identity
        .save(state_dir)
        .map_err(|error| cannot_keep(&error))?;
    Ok(identity)
}

/// The words: for a person among the progress, for a script as an object of its own.
fn show(asking: &Asking, address: &str, output: Output) -> Result<(), CommandError> {
    let words = asking.words();
    if output.format() == OutputFormat::Json {
        let waiting = Waiting {
            event: "waiting",
            words,
            node_id: asking.node_id(),
            gateway: address,
        };
        return output.item(&waiting, |_| String::new());
    }
    for line in [
        "this machine shows these six words:".to_owned(),
        format!("    {words}"),
        format!("on the gateway, if it shows the same: tidings nodes approve {words}"),
        "waiting for approval, ten minutes at most".to_owned(),
    ] {
        output.note(&Note::Info(line));
    }
    Ok(())
}

/// A script has compared by itself; a person at a terminal is asked. Whoever stands between
/// can approve this machine in the gateway's name, but cannot show the gateway these words.
fn must_confirm(output: Output) -> bool {
    output.format() == OutputFormat::Human && io::stdin().is_terminal()
}

fn confirmed(words: PairingWords, mut answers: impl BufRead, mut screen: impl Write) -> bool {
    let mut answer = String::new();
    let asked = writeln!(
        screen,
        "approved. Did the gateway show the same words ({words})? Type yes:"
    );
    asked.is_ok() && answers.read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

fn not_the_same() -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        "the pairing is given up: the words were not confirmed",
    )
    .with_hint("if they differ, somebody stands between: use tidings nodes invite, and its link")
}

fn not_waited_for() -> ApiError {
    ApiError::new(
        ErrorType::Unavailable,
        "stopped before anybody approved this machine",
    )
    .with_hint("the same command asks again")
}

fn cannot_keep(error: &IdentityFileError) -> ApiError {
    ApiError::new(ErrorType::CannotCreate, error.to_string()).with_hint("give another --state-dir")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_confirms() {
        let words = "acorn window tulip canyon sparrow napkin"
            .parse()
            .expect("words");
        for (answer, expected) in [
            ("yes\n", true),
            (" yes ", true),
            ("y\n", false),
            ("no\n", false),
            ("", false),
        ] {
            let mut screen = Vec::new();
            let given = confirmed(words, answer.as_bytes(), &mut screen);
            assert_eq!(given, expected, "{answer:?}");
            let shown = String::from_utf8(screen).expect("text");
            assert!(shown.contains("canyon sparrow"), "{shown}");
        }
    }
}
