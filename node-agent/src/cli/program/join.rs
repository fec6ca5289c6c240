//! `tidings-node join`: makes this machine a node of a gateway, by a link, by asking for
//! approval, or with a certificate that somebody carried here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tidings_protocol::join_link::check_address;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::wire::messages::RefusalCode;
use tidings_protocol::{HostName, NodeId};

use super::join_link::{self, Source};
use super::{approval, certificate};
use crate::cli::{CommandError, CommonArgs, Note, Page, daemon};
use crate::clock::{Clock, SystemClock};
use crate::connection::{JoinError, NodeIdentity, join};

/// The longest name a machine can be given, in characters: longer ones break tables.
const MAX_NAME_CHARS: usize = 64;

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

impl From<NodeIdentity> for Paired {
    fn from(identity: NodeIdentity) -> Self {
        Self {
            node_id: identity.node_id,
            host_name: identity.host_name,
            gateway: identity.gateway,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings-node join --link-file link.txt\n  \
    tidings-node join gw.example.org:7430\n  \
    tidings-node join --certificate laptop/\n\n\
    A link comes from `tidings nodes invite` on the gateway's machine. Without one, the\n\
    gateway must listen (`tidings nodes listen`), and somebody there approves the six words.")]
pub(super) struct JoinArgs {
    /// The join link, or the gateway's address to ask for approval; else a link is read from
    /// stdin
    #[arg(value_name = "LINK|HOST:PORT")]
    link: Option<String>,
    /// A file that holds the link and is deleted once it is read; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "link")]
    link_file: Option<PathBuf>,
    /// What `tidings cert issue` wrote for this machine: a file, or a folder that may hold the
    /// key too
    #[arg(long, value_name = "PATH", conflicts_with_all = ["link", "link_file", "name"])]
    certificate: Option<PathBuf>,
    /// What this machine is called, where the gateway's operator gives no name
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
}

pub(super) fn run(args: JoinArgs, common: &CommonArgs) -> Result<(), CommandError> {
    let output = common.output();
    let state_dir = common.state_dir()?;
    let identity = if let Some(path) = &args.certificate {
        // A paired machine may be given another certificate for the key that it has.
        certificate::take(path, &state_dir)?
    } else {
        let source = source(args.link.as_deref(), args.link_file.as_deref());
        if let Ok(paired) = NodeIdentity::load(&state_dir) {
            return again(paired, source, common);
        }
        let name = args.name.unwrap_or_else(system_name);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        if let Some(address) = gateway_to_ask(args.link.as_deref()) {
            let approval = approval::wait(address, &name, &state_dir, &clock, output);
            daemon::runtime()?.block_on(approval)?
        } else {
            let link = join_link::find(source, output)?;
            daemon::runtime()?
                .block_on(join(&link, &name, &state_dir, &clock))
                .map_err(|error| join_error(&error))?
        }
    };
    paired_page(identity, common)
}

/// A machine that is paired gets the same answer by the link it joined by, and no other: one that
/// is for another is left as it is.
fn again(
    paired: NodeIdentity,
    source: Source<'_>,
    common: &CommonArgs,
) -> Result<(), CommandError> {
    if let Some(by) = paired.joined_by
        && join_link::is_the_one(source, &by, common.output())
    {
        return paired_page(paired, common);
    }
    Err(join_error(&paired.into()).into())
}

fn paired_page(identity: NodeIdentity, common: &CommonArgs) -> Result<(), CommandError> {
    let next = format!("tidings-node run{}", common.state_dir_flag());
    common.output().answer(&Paired::from(identity), |paired| {
        Page::of(format_args!(
            "paired as {} with the gateway at {}\n",
            paired.host_name, paired.gateway
        ))
        .with(Note::Hint(next))
    })
}

/// The address of a gateway that is to be asked without a link.
fn gateway_to_ask(given: Option<&str>) -> Option<&str> {
    given
        .map(str::trim)
        .filter(|text| check_address(text).is_ok())
}

fn source<'a>(link: Option<&'a str>, file: Option<&'a Path>) -> Source<'a> {
    match (link, file) {
        (Some(text), _) => Source::Argument(text),
        (None, Some(file)) if file != Path::new("-") => Source::File(file),
        (None, _) => Source::Stdin,
    }
}

fn system_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

pub(super) fn join_error(error: &JoinError) -> ApiError {
    let (error_type, hint) = match error {
        JoinError::Resolve { .. } => (
            ErrorType::Unavailable,
            "check the name, or invite with an address: tidings nodes invite --address HOST",
        ),
        JoinError::Unreachable { .. } => (
            ErrorType::Unavailable,
            "check that the gateway runs and that UDP reaches its port; nothing was sent",
        ),
        JoinError::WrongGateway { .. } => (
            ErrorType::NotPermitted,
            "ask the gateway's operator for a fresh link; nothing was sent",
        ),
        JoinError::Clock(_) => (
            ErrorType::Unavailable,
            "then run the same command again; nothing was sent",
        ),
        JoinError::Refused(refused) => (refusal_type(refused.code), refused.hint.as_str()),
        JoinError::AlreadyPaired { .. } => (
            ErrorType::Conflict,
            "start it: tidings-node run; or give it up first: tidings-node leave",
        ),
        JoinError::Answer(_) | JoinError::Stream(_) | JoinError::Tls(_) => (
            ErrorType::Unavailable,
            "run the same command again; if that fails, update the older of the two",
        ),
        JoinError::Identity(_) => (ErrorType::CannotCreate, "give another --state-dir"),
    };
    ApiError::new(error_type, error.to_string()).with_hint(hint)
}

/// Whether asking again can help.
fn refusal_type(code: RefusalCode) -> ErrorType {
    match code {
        RefusalCode::TooMany => ErrorType::TryLater,
        RefusalCode::NotListening | RefusalCode::TimedOut => ErrorType::Unavailable,
        _ => ErrorType::NotPermitted,
    }
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

    #[test]
    fn an_address_alone_asks_for_approval_and_whatever_else_is_a_link() {
        for (given, asks) in [
            (Some("gw.example.org:7430"), true),
            (Some(" [::1]:7430\n"), true),
            (Some("127.0.0.1:1"), true),
            (Some("gw.example.org"), false),
            (Some("tidings://join/07@gw:1?ca=09"), false),
            (Some("https://gw:1"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(gateway_to_ask(given).is_some(), asks, "{given:?}");
        }
    }

    #[test]
    fn a_name_is_short_and_printable() {
        assert_eq!(parse_name(" Ada's laptop "), Ok("Ada's laptop".to_owned()));
        for bad in ["", "  ", "a\nb", &"n".repeat(65)] {
            assert!(parse_name(bad).is_err(), "{bad:?}");
        }
    }
}
