//! The options of the two verbs that run a gateway themselves.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use tidings_node::cli::{CommonArgs, OutputFormat};
use tidings_node::discover::RootArgument;
use tidings_protocol::session_api::ApiError;

/// Where nodes connect, unless told otherwise: every address of this machine.
pub const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 7430);
/// The same for a quickstart: this machine only.
const QUICKSTART_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7430);
/// Where HTTP is answered, unless told otherwise: this machine only.
pub const DEFAULT_HTTP: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7431);

/// How a gateway is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Where everything is kept.
    pub state_dir: PathBuf,
    /// Where nodes connect.
    pub listen: SocketAddr,
    /// Where HTTP is answered.
    pub http: HttpOption,
    /// Whether this machine's own transcripts are followed.
    pub local_node: LocalNode,
    /// Where this machine's transcripts are, by catalog; a catalog that is not named has
    /// its default places.
    pub roots: Vec<RootArgument>,
    /// A configuration file to read besides the usual ones.
    pub config: Option<PathBuf>,
    /// For whom it prints.
    pub output: OutputFormat,
}

/// Where HTTP is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpOption {
    /// At this address.
    Listen(SocketAddr),
    /// Nowhere.
    Off,
}

/// Whether a gateway follows its own machine's transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalNode {
    /// By a node agent inside the gateway's process.
    Embedded,
    /// Not at all.
    None,
}

/// How the quickstart is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickstartOptions {
    /// Where everything is kept, for [`QuickstartEnd::Stay`].
    pub state_dir: PathBuf,
    /// Where nodes connect, for [`QuickstartEnd::Stay`].
    pub listen: SocketAddr,
    /// What happens at its end.
    pub end: QuickstartEnd,
    /// For whom it prints.
    pub output: OutputFormat,
}

/// What happens at the end of the quickstart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuickstartEnd {
    /// The gateway stays, on this machine's own state and addresses.
    Stay,
    /// Everything goes: it ran on scratch state and ephemeral ports.
    Once,
}

/// `tidings gateway run`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings gateway run --root claude=/srv/agents/projects")]
pub(super) struct GatewayRunArgs {
    /// Where nodes connect (QUIC)
    #[arg(long, value_name = "ADDRESS", default_value_t = DEFAULT_LISTEN, value_parser = parse_address)]
    listen: SocketAddr,
    /// Where HTTP is answered, or `off`; off loopback with TLS only (http.tlsCert, http.tlsKey)
    #[arg(long, value_name = "ADDRESS|off", default_value_t = HttpOption::Listen(DEFAULT_HTTP))]
    http: HttpOption,
    /// Leaves this machine's own transcripts alone
    #[arg(long)]
    no_local_node: bool,
    /// A directory with transcripts of a catalog, instead of that catalog's usual ones
    #[arg(long = "root", value_name = "CATALOG=DIR")]
    roots: Vec<RootArgument>,
    /// A configuration file to read after the usual ones
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// `tidings quickstart`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings quickstart --once")]
pub(super) struct QuickstartArgs {
    /// On scratch state and free ports, leaving nothing behind
    #[arg(long)]
    once: bool,
    /// Where nodes connect (QUIC), if no gateway runs yet
    #[arg(long, value_name = "ADDRESS", default_value_t = QUICKSTART_LISTEN, value_parser = parse_address, conflicts_with = "once")]
    listen: SocketAddr,
}

impl GatewayRunArgs {
    pub(super) fn into_options(self, common: &CommonArgs) -> Result<RunOptions, ApiError> {
        Ok(RunOptions {
            state_dir: common.state_dir()?,
            listen: self.listen,
            http: self.http,
            local_node: if self.no_local_node {
                LocalNode::None
            } else {
                LocalNode::Embedded
            },
            roots: self.roots,
            config: self.config,
            output: common.output().format(),
        })
    }
}

impl QuickstartArgs {
    pub(super) fn into_options(self, common: &CommonArgs) -> Result<QuickstartOptions, ApiError> {
        Ok(QuickstartOptions {
            state_dir: common.state_dir()?,
            listen: self.listen,
            end: if self.once {
                QuickstartEnd::Once
            } else {
                QuickstartEnd::Stay
            },
            output: common.output().format(),
        })
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an address is IP:PORT, such as 127.0.0.1:7430 or [::]:7430")
}

impl FromStr for HttpOption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        parse_address(text).map(Self::Listen)
    }
}

impl std::fmt::Display for HttpOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(address) => address.fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tidings_protocol::Catalog;

    use super::super::args::{Cli, Command, GatewayCommand};
    use super::*;

    fn options(line: &str) -> RunOptions {
        let words = line.split_whitespace();
        let cli = Cli::try_parse_from(words).expect(line);
        match cli.command {
            Some(Command::Gateway(GatewayCommand::Run(args))) => {
                args.into_options(&cli.common).expect("options")
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_gateway_runs_by_default_on_the_usual_ports_with_its_own_node() {
        assert_eq!(
            options("tidings gateway run --state-dir /s"),
            RunOptions {
                state_dir: PathBuf::from("/s"),
                listen: DEFAULT_LISTEN,
                http: HttpOption::Listen(DEFAULT_HTTP),
                local_node: LocalNode::Embedded,
                roots: vec![],
                config: None,
                output: OutputFormat::Human,
            }
        );
    }

    #[test]
    fn every_option_of_a_gateway_arrives() {
        let line = "tidings --json gateway run --listen 127.0.0.1:0 --http off \
            --no-local-node --root claude=/a --root codex=/b --config /c.toml --state-dir /s";
        let root = |catalog, dir| RootArgument {
            catalog,
            directory: PathBuf::from(dir),
        };
        assert_eq!(
            options(line),
            RunOptions {
                state_dir: PathBuf::from("/s"),
                listen: "127.0.0.1:0".parse().expect("address"),
                http: HttpOption::Off,
                local_node: LocalNode::None,
                roots: vec![root(Catalog::Claude, "/a"), root(Catalog::Codex, "/b")],
                config: Some(PathBuf::from("/c.toml")),
                output: OutputFormat::Json,
            }
        );
    }

    #[test]
    fn http_is_an_address_or_off() {
        for (text, expected) in [
            ("off", Some(HttpOption::Off)),
            ("127.0.0.1:7431", Some(HttpOption::Listen(DEFAULT_HTTP))),
            ("7431", None),
            ("OFF", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }
}
