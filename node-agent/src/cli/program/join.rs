//! `tidings-node join`: pairs this machine with a gateway.
//!
//! A join link is a secret. It is taken as an argument because it is used up at once; a
//! file or stdin keeps it out of process lists. No error repeats it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tidings_protocol::join_link::MAX_JOIN_LINK_BYTES;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::{HostName, JoinLink, NodeId};

use crate::cli::error::file_error;
use crate::cli::{CommandError, CommonArgs, Note, Output, OutputFormat, Page, daemon};
use crate::clock::{Clock, SystemClock};
use crate::connection::{JoinError, NodeIdentity, join};

/// The longest name a machine can be given, in characters: longer ones break tables.
const MAX_NAME_CHARS: usize = 64;
/// How much of a file or of stdin is read: a link, some white space, and one byte more
/// than can be right.
const MAX_READ_BYTES: u64 = 2 * MAX_JOIN_LINK_BYTES as u64;

/// How this machine is to be paired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinOptions {
    /// Where the key and the certificate are to be kept.
    pub state_dir: PathBuf,
    /// The gateway, its pin and the code.
    pub link: JoinLink,
    /// The machine's name, where the invitation gives none; else the system's.
    pub name: Option<String>,
}

/// This machine is a node now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Paired {
    /// Its id.
    pub node_id: NodeId,
    /// Its name in keys.
    pub host_name: HostName,
    /// The gateway's address.
    pub gateway: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings-node join --link-file link.txt\n\n\
    The link comes from `tidings nodes invite` on the gateway's machine.")]
pub(super) struct JoinArgs {
    /// The join link; else it is read from stdin
    #[arg(value_name = "LINK")]
    link: Option<String>,
    /// A file that holds the link and is deleted once it is read; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "link")]
    link_file: Option<PathBuf>,
    /// What this machine is called, where the invitation gives no name
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
}

pub(super) fn run(args: JoinArgs, common: &CommonArgs) -> Result<(), CommandError> {
    let output = common.output();
    let state_dir = common.state_dir()?;
    // Before the link is read, and its file deleted: it is not to be wasted.
    if let Ok(paired) = NodeIdentity::load(&state_dir) {
        return Err(join_error(&paired.into()).into());
    }
    let options = JoinOptions {
        state_dir,
        link: find_link(&args, output)?,
        name: args.name,
    };
    let paired = pair(&options)?;
    let next = format!("tidings-node run{}", common.state_dir_flag());
    output.answer(&paired, |paired| {
        Page::of(format_args!(
            "paired as {} with the gateway at {}\n",
            paired.host_name, paired.gateway
        ))
        .with(Note::Hint(next))
    })?;
    Ok(())
}

fn pair(options: &JoinOptions) -> Result<Paired, ApiError> {
    let system_name = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let name = options.name.clone().unwrap_or_else(system_name);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let joining = join(&options.link, &name, &options.state_dir, &clock);
    let identity = daemon::runtime()?
        .block_on(joining)
        .map_err(|error| join_error(&error))?;
    Ok(Paired {
        node_id: identity.node_id,
        host_name: identity.host_name,
        gateway: identity.gateway,
    })
}

fn join_error(error: &JoinError) -> ApiError {
    let (error_type, hint) = match error {
        JoinError::Resolve { .. } => (
            ErrorType::Unavailable,
            "check the name, or invite with an address: tidings nodes invite --address HOST",
        ),
        JoinError::Unreachable { .. } => (
            ErrorType::Unavailable,
            "check that the gateway runs and that UDP reaches its port; the link still works",
        ),
        JoinError::WrongGateway { .. } => (
            ErrorType::NotPermitted,
            "ask the gateway's operator for a fresh link; nothing was sent",
        ),
        JoinError::Refused(refused) => (ErrorType::NotPermitted, refused.hint.as_str()),
        JoinError::AlreadyPaired { .. } => (
            ErrorType::Conflict,
            "start it: tidings-node run; or give it up first: tidings-node leave",
        ),
        JoinError::Answer(_) | JoinError::Stream(_) | JoinError::Tls(_) => (
            ErrorType::Unavailable,
            "try the same link again; if that fails, update the older of the two",
        ),
        JoinError::Identity(_) => (ErrorType::CannotCreate, "give another --state-dir"),
    };
    ApiError::new(error_type, error.to_string()).with_hint(hint)
}

fn find_link(args: &JoinArgs, output: Output) -> Result<JoinLink, ApiError> {
    match (&args.link, &args.link_file) {
        (Some(text), _) => parse(text),
        (None, Some(file)) if file != Path::new("-") => link_of_file(file, output),
        (None, _) => link_of_stdin(output),
    }
}

/// Reads the link and deletes the file. A file that holds no link is not ours to delete.
fn link_of_file(path: &Path, output: Output) -> Result<JoinLink, ApiError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_READ_BYTES).read_to_end(&mut text))
        .map_err(|error| file_error(path, &error))?;
    let link = parse(&String::from_utf8_lossy(&text))?;
    if let Err(error) = std::fs::remove_file(path) {
        output.note(&Note::Warning(format!(
            "{} still holds the join link: {error}",
            path.display()
        )));
    }
    Ok(link)
}

fn link_of_stdin(output: Output) -> Result<JoinLink, ApiError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        if output.format() == OutputFormat::Json {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                "there is no join link: none is given, and stdin is a terminal",
            )
            .with_hint("tidings-node join LINK, or --link-file FILE"));
        }
        output.note(&Note::Info("paste the join link:".to_owned()));
    }
    first_line(stdin).and_then(|line| parse(&line))
}

/// The first line, so that a person need not end the input to be heard.
fn first_line(input: impl Read) -> Result<String, ApiError> {
    let mut line = Vec::new();
    BufReader::new(input.take(MAX_READ_BYTES))
        .read_until(b'\n', &mut line)
        .map_err(|error| file_error(Path::new("stdin"), &error))?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn parse(text: &str) -> Result<JoinLink, ApiError> {
    JoinLink::parse(text).map_err(|error| {
        ApiError::new(ErrorType::InvalidRequest, format!("no join link: {error}"))
            .with_hint("tidings nodes invite, on the gateway's machine, prints one")
    })
}

fn parse_name(text: &str) -> Result<String, &'static str> {
    let name = text.trim();
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) {
        Ok(name.to_owned())
    } else {
        Err("a name has 1 to 64 characters, none of them a control character")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> String {
        let (code, pin) = ("07".repeat(16), "09".repeat(32));
        format!("tidings://join/{code}@gw.example.org:7430?ca={pin}")
    }

    fn args(link: Option<&str>, link_file: Option<&Path>) -> JoinArgs {
        JoinArgs {
            link: link.map(str::to_owned),
            link_file: link_file.map(Path::to_owned),
            name: None,
        }
    }

    fn found(args: &JoinArgs) -> Result<String, ErrorType> {
        let link = find_link(args, Output::default());
        link.map(|link| link.to_string())
            .map_err(|error| error.error_type)
    }

    #[test]
    fn a_link_is_taken_as_given() {
        assert_eq!(found(&args(Some(&link()), None)), Ok(link()));
        let no_link = args(Some("x"), None);
        assert_eq!(found(&no_link), Err(ErrorType::InvalidRequest));
    }

    #[test]
    fn a_file_is_deleted_once_its_link_is_read_and_only_then() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let file = dir.path().join("link.txt");
        for (text, expected, is_left) in [
            (link() + "\r\n", Ok(link()), false),
            (
                "somebody's notes".to_owned(),
                Err(ErrorType::InvalidRequest),
                true,
            ),
            (
                link() + &"x".repeat(10_000),
                Err(ErrorType::InvalidRequest),
                true,
            ),
        ] {
            std::fs::write(&file, text).expect("write");
            assert_eq!(found(&args(None, Some(&file))), expected);
            assert_eq!(file.exists(), is_left);
        }
        let missing = dir.path().join("missing.txt");
        let missing = args(None, Some(&missing));
        assert_eq!(found(&missing), Err(ErrorType::NotFound));
        let directory = args(None, Some(dir.path()));
        assert_eq!(found(&directory), Err(ErrorType::InvalidData));
    }

    #[test]
    fn of_stdin_the_first_line_counts_and_no_more_than_a_link_can_have() {
        let line = |text: &str| first_line(text.as_bytes()).expect("line");
        assert_eq!(line("a\nb\n"), "a\n");
        assert_eq!(line(""), "");
        assert_eq!(line(&"x".repeat(10_000)).len(), 2 * MAX_JOIN_LINK_BYTES);
    }

    #[test]
    fn a_name_is_short_and_printable() {
        assert_eq!(parse_name(" Ada's laptop "), Ok("Ada's laptop".to_owned()));
        for bad in ["", "  ", "a\nb", &"n".repeat(65)] {
            assert!(parse_name(bad).is_err(), "{bad:?}");
        }
    }
}
