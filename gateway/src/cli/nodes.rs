//! `tidings nodes`: the machines whose transcripts are followed.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use tidings_node::cli::{CommandError, Page};
use tidings_protocol::session_api::{
    Node, NodeRef, NodesApprove, NodesInvite, NodesRename, PairingRef, Request,
};

use super::args::host_parser;
use super::client::answer;
use super::node_pages::{
    approved_page, invitation_page, node_page, nodes_page, rejected_page, removed_page,
    renamed_page, revoked_page,
};
use super::{Context, listen, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum NodesCommand {
    /// Prints a join link for one new machine
    Invite(InviteArgs),
    /// Lets machines ask to become nodes, and shows who asks, for ten minutes
    #[command(
        after_help = "Example:\n  tidings nodes listen\n\nThen, on the new machine:\n  \
        tidings-node join HOST:PORT"
    )]
    Listen,
    /// Makes a machine that asks a node, once both show the same six words
    Approve(ApproveArgs),
    /// Tells a machine that asks no, or withdraws a join link that nobody has used
    #[command(
        after_help = "Examples:\n  tidings nodes reject 0123456789abcdef0123456789abcdef\n  \
            tidings nodes reject laptop"
    )]
    Reject(RejectArgs),
    /// Lists the nodes, who asks to become one, and the join links that nobody has used
    #[command(after_help = "Example:\n  tidings nodes list")]
    List,
    /// Shows one node, with where it looks for transcripts
    #[command(after_help = "Example:\n  tidings nodes show laptop")]
    Show(NodeArgs),
    /// Changes what a node is called; its name in session keys is fixed
    #[command(after_help = "Example:\n  tidings nodes rename laptop \"Ada's laptop\"")]
    Rename(RenameArgs),
    /// Turns a node's key away for good and ends its connection
    #[command(after_help = "Example:\n  tidings nodes revoke laptop")]
    Revoke(NodeArgs),
    /// Takes a node off the list; its machine may pair again
    #[command(after_help = "Example:\n  tidings nodes remove laptop")]
    Remove(NodeArgs),
}

#[derive(Debug, Args)]
pub(super) struct NodeArgs {
    /// The node: its host name or its id
    #[arg(value_name = "NODE", value_parser = host_parser())]
    node: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings nodes approve acorn window tulip canyon sparrow napkin --name laptop")]
pub(super) struct ApproveArgs {
    #[command(flatten)]
    request: RequestArgs,
    /// What the new node is called; else as its machine
    #[arg(long)]
    name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// The six words that the machine shows, or its id
    #[arg(value_name = "WORDS|ID", required = true, num_args = 1..=6)]
    request: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct RejectArgs {
    /// The six words that the machine shows, or its id; of a join link, its name or its id
    #[arg(value_name = "WORDS|ID|NAME", required = true, num_args = 1..=6)]
    request: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct RenameArgs {
    /// The node: its host name or its id
    #[arg(value_name = "NODE", value_parser = host_parser())]
    node: String,
    /// What it is to be called
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings nodes invite --name laptop\n\n\
    Then, on the laptop:\n  tidings-node join LINK")]
pub(super) struct InviteArgs {
    /// What the new node is called; else as its machine
    #[arg(long)]
    name: Option<String>,
    /// Where the new node finds this gateway, as HOST:PORT; else where it listens
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

pub(super) async fn run(
    command: NodesCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        NodesCommand::Invite(args) => {
            let request = Request::NodesInvite(NodesInvite {
                name: args.name,
                address: args.address,
            });
            let invitation = context.client.ask(request, answer!(NodesInvite)).await?;
            context.output.answer(&invitation, invitation_page)
        }
        NodesCommand::Listen => listen::run(context).await,
        NodesCommand::Approve(args) => {
            let request = Request::NodesApprove(NodesApprove {
                request: args.request.joined(),
                name: args.name,
            });
            let node = context.client.ask(request, answer!(Node)).await?;
            context.output.answer(&node, |node| approved_page(node))
        }
        NodesCommand::Reject(args) => {
            let request = Request::NodesReject(PairingRef {
                request: args.request.join(" "),
            });
            let rejected = context.client.ask(request, answer!(NodesReject)).await?;
            context.output.answer(&rejected, rejected_page)
        }
        NodesCommand::List => {
            let request = Request::NodesList {};
            let nodes = context.client.ask(request, answer!(NodesList)).await?;
            context.output.answer(&nodes, nodes_page)
        }
        NodesCommand::Show(args) => {
            let request = Request::NodesShow(args.to_ref());
            ask_about(&args.node, request, node_page, context).await
        }
        NodesCommand::Rename(args) => {
            let node = args.node.clone();
            let request = Request::NodesRename(NodesRename {
                node: args.node,
                name: args.name,
            });
            ask_about(&node, request, renamed_page, context).await
        }
        NodesCommand::Revoke(args) => {
            let request = Request::NodesRevoke(args.to_ref());
            ask_about(&args.node, request, revoked_page, context).await
        }
        NodesCommand::Remove(args) => {
            let request = Request::NodesRemove(args.to_ref());
            let client = &mut context.client;
            match client.ask(request, answer!(NodesRemove)).await {
                Ok(removed) => context.output.answer(&removed, removed_page),
                Err(error) => Err(suggest::nodes(client, error, &args.node).await.into()),
            }
        }
    }
}

/// Asks what is answered by one node.
async fn ask_about(
    name: &str,
    request: Request,
    page: fn(&Node) -> Page,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let client = &mut context.client;
    match client.ask(request, answer!(Node)).await {
        Ok(node) => context.output.answer(&node, |node| page(node)),
        Err(error) => Err(suggest::nodes(client, error, name).await.into()),
    }
}

impl RequestArgs {
    fn joined(&self) -> String {
        self.request.join(" ")
    }
}

impl NodeArgs {
    fn to_ref(&self) -> NodeRef {
        NodeRef {
            node: self.node.clone(),
        }
    }
}
