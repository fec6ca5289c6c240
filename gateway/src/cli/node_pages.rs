//! How nodes look: the pages of `tidings nodes`.

use std::fmt::Write as _;
use std::io::IsTerminal;

use tidings_node::cli::format::{utc, utc_or_nothing};
use tidings_node::cli::{Column, Note, Page, Table};
use tidings_protocol::session_api::{
    Invitation, Node, NodeRemoved, NodeState, Nodes, PairingRejected,
};

use super::qr;

/// The link alone on stdout; where a person looks on, its QR code too.
pub(super) fn invitation_page(invitation: &Invitation) -> Page {
    let node = invitation.name.as_deref().unwrap_or("one machine");
    let page = Page::of(format_args!("{}\n", invitation.link))
        .with(Note::Info(format!(
            "this link pairs {node}, once and until {} UTC; till then it is a secret",
            utc(invitation.expires_at)
        )))
        .with(Note::Hint(
            "on that machine: tidings-node join LINK".to_owned(),
        ));
    let code = code_for_a_camera(&invitation.link).map(Note::Info);
    code.into_iter().fold(page, Page::with)
}

/// The link as a QR code, where a person looks at it: it would only clutter a log.
fn code_for_a_camera(link: &str) -> Option<String> {
    let code = std::io::stderr().is_terminal().then(|| qr::draw(link));
    code.flatten()
}

pub(super) fn nodes_page(nodes: &Nodes) -> Page {
    if nodes.nodes.is_empty() {
        return Page::empty("no nodes", "tidings nodes invite --name laptop");
    }
    let invited = nodes.invitations.iter().map(|invitation| {
        let name = invitation.name.as_ref().map(ToString::to_string);
        let name = name.unwrap_or_else(|| invitation.id.clone());
        Note::Info(format!(
            "a join link for {name} works until {} UTC; tidings nodes reject {name} withdraws it",
            utc(invitation.expires_at)
        ))
    });
    invited.fold(nodes_table(&nodes.nodes), Page::with)
}

/// The nodes as a table, and what they warn of.
pub(super) fn nodes_table(nodes: &[Node]) -> Page {
    let table = Table::new([
        Column::left("NODE"),
        Column::left("CALLED").where_filled(),
        Column::left("STATUS"),
        Column::left("LAST SEEN (UTC)"),
        Column::left("VERSION"),
        Column::left("CERTIFICATE UNTIL (UTC)"),
        Column::left("ID"),
    ])
    .with_rows(nodes, |node| {
        let host_name = node.host_name.as_str();
        [
            host_name.to_owned(),
            Some(&node.name)
                .filter(|name| *name != host_name)
                .cloned()
                .unwrap_or_default(),
            state_name(node.status).to_owned(),
            utc_or_nothing(node.last_seen_at),
            node.version.clone().unwrap_or_default(),
            utc_or_nothing(node.certificate_not_after),
            node.id.to_string(),
        ]
    });
    let warnings = nodes.iter().flat_map(warnings);
    let waiting = nodes.iter().filter_map(|node| node.request.as_ref());
    let waiting = waiting.map(|request| {
        Note::Hint(format!(
            "{} waits for approval: tidings nodes approve {}",
            request.machine_name, request.words
        ))
    });
    Page {
        text: table.to_string(),
        notes: warnings.chain(waiting).collect(),
    }
}

/// One node, with where it looks for transcripts.
pub(super) fn node_page(node: &Node) -> Page {
    let mut text = format!(
        "node         {}\n\
         called       {}\n\
         status       {}\n\
         last seen    {}\n\
         version      {}\n\
         certificate  {}\n\
         id           {}\n",
        node.host_name,
        node.name,
        state_name(node.status),
        node.last_seen_at
            .map_or_else(|| "never".to_owned(), |at| format!("{} UTC", utc(at))),
        node.version.as_deref().unwrap_or("unknown"),
        node.certificate_not_after
            .map_or_else(|| "none".to_owned(), |at| format!("until {} UTC", utc(at))),
        node.id,
    );
    if !node.roots.is_empty() {
        let roots = Table::new([
            Column::left("CATALOG"),
            Column::left("STATE"),
            Column::left("ROOT"),
        ])
        .with_rows(&node.roots, |root| {
            [
                root.catalog.to_string(),
                root.state.clone(),
                root.path.clone(),
            ]
        });
        text.extend(["\n", &roots.to_string()]);
    }
    if let Some(request) = &node.request {
        let until = utc(request.expires_at);
        let _ = write!(
            text,
            "\nasks from    {}\nwords        {}\nwaits        until {until} UTC\n",
            request.address, request.words
        );
    }
    if !node.audit.is_empty() {
        let audit = Table::new([
            Column::left("WHEN (UTC)"),
            Column::left("WHO"),
            Column::left("WHAT"),
            Column::left("OUTCOME"),
        ])
        .with_rows(&node.audit, |line| {
            [
                utc(line.at),
                line.actor.clone(),
                line.action.clone(),
                line.outcome.clone(),
            ]
        });
        text.extend(["\n", &audit.to_string()]);
    }
    Page {
        text,
        notes: warnings(node).collect(),
    }
}

pub(super) fn approved_page(node: &Node) -> Page {
    let page = Page::of(format_args!("{} is a node now\n", node.host_name));
    warnings(node).fold(page, Page::with)
}

pub(super) fn rejected_page(rejected: &PairingRejected) -> Page {
    Page::of(format_args!("{} is rejected\n", rejected.machine_name))
}

pub(super) fn renamed_page(node: &Node) -> Page {
    Page::of(format_args!(
        "{} is called {} now\n",
        node.host_name, node.name
    ))
}

pub(super) fn revoked_page(node: &Node) -> Page {
    Page::of(format_args!("{} is revoked\n", node.host_name)).with(Note::Info(
        "its connection has ended, and its key is turned away from now on".to_owned(),
    ))
}

pub(super) fn removed_page(removed: &NodeRemoved) -> Page {
    Page::of(format_args!("{} is removed\n", removed.host_name)).with(Note::Hint(format!(
        "its machine may pair again, and is {} again then: tidings nodes invite",
        removed.host_name
    )))
}

/// What a node's agent warns of.
fn warnings(node: &Node) -> impl Iterator<Item = Note> {
    let called = |warning| Note::Warning(format!("{}: {warning}", node.host_name));
    node.warnings.iter().map(called)
}

fn state_name(state: NodeState) -> &'static str {
    match state {
        NodeState::Connected => "connected",
        NodeState::Stalled => "stalled",
        NodeState::Offline => "offline",
        NodeState::Pending => "pending",
        NodeState::Revoked => "revoked",
    }
}
