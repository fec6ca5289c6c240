//! Requests about nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use tidings_node::cli::format::span;
use tidings_node::clock::MAX_SKEW_MS;
use tidings_protocol::join_link::{JoinCode, JoinLink, check_address};
use tidings_protocol::session_api::{
    ApiError, ErrorType, Invitation, MAX_NODE_NAME_CHARS, Node, NodeRef, NodeRemoved, NodeState,
    Nodes, NodesInvite, NodesRename, RootStatus,
};
use tidings_protocol::wire::messages::RootPresence;
use tidings_protocol::{EpochMs, Host, HostName};

use super::Service;
use super::pairing::waiting_node;
use crate::nodes::authority::random;
use crate::state::{NewInvitation, NodeRecord, NodeStanding};

/// A join link works this long.
const INVITATION_MS: EpochMs = 10 * 60 * 1_000;

impl Service {
    pub(super) async fn nodes_invite(&self, invite: NodesInvite) -> Result<Invitation, ApiError> {
        let address = join_address(invite.address.as_deref(), self.info.listen)?;
        let host_name = invite.name.as_deref().map(given_name).transpose()?;
        let code = random()
            .map(JoinCode::from_bytes)
            .map_err(|error| ApiError::new(ErrorType::Internal, error.to_string()))?;
        let invitation = NewInvitation {
            code: code.clone(),
            host_name: host_name.clone(),
            expires_at: self.nodes.clock.now() + INVITATION_MS,
        };
        let expires_at = invitation.expires_at;
        self.nodes.state.create_invitation(invitation).await?;
        let link = JoinLink {
            code,
            address,
            ca_pin: self.nodes.authority.pin(),
        };
        Ok(Invitation {
            link: link.to_string(),
            name: host_name.map(|name| name.to_string()),
            expires_at,
        })
    }

    pub(super) async fn nodes_list(&self) -> Result<Nodes, ApiError> {
        let records = self.nodes.state.nodes().await?;
        let nodes = records
            .into_iter()
            .filter(|record| record.standing != NodeStanding::Removed)
            .map(|record| self.node(record));
        let waiting = self.nodes.approvals.waiting().into_iter().map(waiting_node);
        Ok(Nodes {
            nodes: nodes.chain(waiting).collect(),
            invitations: self.nodes.state.open_invitations().await?,
        })
    }

    pub(super) async fn nodes_show(&self, node: NodeRef) -> Result<Node, ApiError> {
        if let Some(candidate) = self.nodes.approvals.find(&node.node) {
            return Ok(waiting_node(candidate.request));
        }
        let record = self.listed_node(&node.node).await?;
        let (id, host_name) = (record.node.clone(), record.host_name.clone());
        let audit = self.nodes.state.audit_of(id, host_name).await?;
        let seen = self.nodes.presences.seen(&record.host);
        let presence = seen.and_then(|seen| seen.presence);
        let roots = presence.map(|(presence, _)| presence.roots);
        Ok(Node {
            roots: roots.into_iter().flatten().map(root).collect(),
            audit,
            ..self.node(record)
        })
    }

    pub(super) async fn nodes_rename(&self, rename: NodesRename) -> Result<Node, ApiError> {
        let record = self.listed_node(&rename.node).await?;
        let name = display_name(&rename.name)?;
        let taken = |node: &NodeRecord| node.host_name.as_str() == name && node.node != record.node;
        if self.nodes.state.nodes().await?.iter().any(taken) {
            let message = format!("{name} is the host name of another node");
            return Err(ApiError::new(ErrorType::Conflict, message)
                .with_hint("choose a name that means one machine"));
        }
        let id = record.node.clone();
        self.nodes.state.rename_node(id, name.to_owned()).await?;
        self.nodes_show(by_id(&record)).await
    }

    /// Turns the node's key away. Its connection ends with the effect of the commit.
    pub(super) async fn nodes_revoke(&self, node: NodeRef) -> Result<Node, ApiError> {
        let record = self.listed_node(&node.node).await?;
        self.set_standing(&record, NodeStanding::Revoked).await?;
        self.nodes_show(by_id(&record)).await
    }

    /// Takes the node off the list. One that is revoked stays there: the list is what its
    /// key is turned away by.
    pub(super) async fn nodes_remove(&self, node: NodeRef) -> Result<NodeRemoved, ApiError> {
        let record = self.listed_node(&node.node).await?;
        if record.standing == NodeStanding::Revoked {
            let message = format!("{} is revoked, and a revoked node stays", record.host_name);
            return Err(ApiError::new(ErrorType::Conflict, message).with_hint(
                "its machine can join again with a new key: tidings-node leave, then join",
            ));
        }
        self.set_standing(&record, NodeStanding::Removed).await?;
        Ok(NodeRemoved {
            removed: true,
            id: record.node,
            host_name: record.host_name,
        })
    }

    async fn set_standing(
        &self,
        record: &NodeRecord,
        standing: NodeStanding,
    ) -> Result<(), ApiError> {
        if record.host == Host::GatewayLocal {
            let message = "the gateway's own machine stays a node";
            return Err(ApiError::new(ErrorType::InvalidRequest, message)
                .with_hint("tidings gateway run --no-local-node leaves its transcripts alone"));
        }
        let id = record.node.clone();
        self.nodes.state.set_node_standing(id, standing).await?;
        tracing::info!(node = %record.host_name, ?standing, "a node's standing was changed");
        Ok(())
    }

    /// The node of this id or host name, whether or not it is turned away.
    pub(super) async fn listed_node(&self, name: &str) -> Result<NodeRecord, ApiError> {
        let mut nodes = self.nodes.state.nodes().await?;
        nodes.retain(|node| node.standing != NodeStanding::Removed);
        find("node", name, &nodes)
    }

    /// A node's record together with what its presence says.
    pub(super) fn node(&self, record: NodeRecord) -> Node {
        let seen = self.nodes.presences.seen(&record.host);
        let status = match (&record.standing, &seen) {
            (NodeStanding::Revoked | NodeStanding::Removed, _) => NodeState::Revoked,
            (NodeStanding::Active, None) => NodeState::Offline,
            (NodeStanding::Active, Some(seen)) if seen.stalled => NodeState::Stalled,
            (NodeStanding::Active, Some(_)) => NodeState::Connected,
        };
        let sign_of_life = seen
            .as_ref()
            .and_then(|seen| Some(seen.presence.as_ref()?.1));
        let presence = seen.and_then(|seen| seen.presence);
        let warnings = presence.map_or_else(Vec::new, |(presence, at)| {
            let ahead = skew_warning(presence.node_time.saturating_sub(at));
            ahead.into_iter().chain(presence.warnings).collect()
        });
        Node {
            id: record.node,
            name: record.name,
            host_name: record.host_name,
            host: record.host,
            status,
            last_seen_at: record.last_seen_at.max(sign_of_life),
            version: record.version,
            certificate_not_after: record.certificate_not_after,
            warnings,
            roots: Vec::new(),
            request: None,
            audit: Vec::new(),
        }
    }
}

/// The one of these nodes that has this id, host name or host, else this display name. `what` they are called in the
/// error where there is none.
pub(super) fn find(what: &str, name: &str, nodes: &[NodeRecord]) -> Result<NodeRecord, ApiError> {
    // What is fixed comes first: a display name never hides another node's host name.
    let fixed = |node: &&NodeRecord| {
        node.host_name.as_str() == name
            || node.node.as_str() == name
            || node.host.to_string() == name
    };
    let called = |node: &&NodeRecord| node.name == name;
    if let Some(node) = nodes
        .iter()
        .find(fixed)
        .or_else(|| nodes.iter().find(called))
    {
        return Ok(node.clone());
    }
    let names: Vec<&str> = nodes.iter().map(|node| node.host_name.as_str()).collect();
    let exists = match names.as_slice() {
        [] => "there is none yet; tidings nodes invite".to_owned(),
        names => format!("there is {}", names.join(", ")),
    };
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Err(ApiError::new(ErrorType::NotFound, format!("no {what} {name}")).with_hint(exists))
}

/// A node's clock that is set wrong makes its certificate look too young or too old.
fn skew_warning(node_ahead_ms: i64) -> Option<String> {
    if node_ahead_ms.abs() <= MAX_SKEW_MS {
        return None;
    }
    let way = if node_ahead_ms > 0 {
        "ahead of"
    } else {
        "behind"
    };
    let by = span(node_ahead_ms);
    Some(format!("its clock is {by} {way} the gateway's"))
}

fn by_id(record: &NodeRecord) -> NodeRef {
    NodeRef {
        node: record.node.to_string(),
    }
}

fn root(root: RootPresence) -> RootStatus {
    RootStatus {
        catalog: root.catalog,
        path: root.path,
        state: root.state.as_str().to_owned(),
    }
}

/// A name that a table can show: it comes back as it was given.
fn display_name(name: &str) -> Result<&str, ApiError> {
    let name = name.trim();
    let wrong = if name.is_empty() {
        "must not be empty".to_owned()
    } else if name.chars().any(char::is_control) {
        "must not have control characters".to_owned()
    } else if name.chars().count() > MAX_NODE_NAME_CHARS {
        format!("has at most {MAX_NODE_NAME_CHARS} characters")
    } else {
        return Ok(name);
    };
    let message = format!("a node's name {wrong}");
    Err(ApiError::new(ErrorType::InvalidRequest, message))
}

/// The host name that an operator gives.
pub(super) fn given_name(name: &str) -> Result<HostName, ApiError> {
    if name.trim() == HostName::LOCAL {
        let message = "the name local belongs to the gateway's own machine";
        return Err(ApiError::new(ErrorType::InvalidRequest, message));
    }
    Ok(HostName::slug(name))
}

/// The address for a join link: the one given (with the listen port where it names none),
/// else the listen address, else this machine's first address that is not loopback.
pub(super) fn join_address(given: Option<&str>, listen: SocketAddr) -> Result<String, ApiError> {
    let address = match given {
        Some(given) if check_address(given).is_ok() => given.to_owned(),
        Some(host) => match host.parse::<Ipv6Addr>() {
            Ok(v6) => format!("[{v6}]:{}", listen.port()),
            Err(_) => format!("{host}:{}", listen.port()),
        },
        None if !listen.ip().is_unspecified() => listen.to_string(),
        None => SocketAddr::new(outward_address(), listen.port()).to_string(),
    };
    check_address(&address).map_err(|error| {
        ApiError::new(ErrorType::InvalidRequest, error.to_string())
            .with_hint("--address <host or host:port that the new machine can reach>")
    })?;
    Ok(address)
}

/// The address that this machine would speak from to the outside. Connecting a UDP socket
/// sends nothing; it only asks the routing table. Without a route it is loopback.
fn outward_address() -> IpAddr {
    let ask = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_unspecified()).then_some(address)
    };
    // Addresses set aside for documentation: never anybody's.
    let v4 = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1));
    let v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    ask(Ipv4Addr::UNSPECIFIED.into(), v4)
        .or_else(|| ask(Ipv6Addr::UNSPECIFIED.into(), v6))
        .unwrap_or(Ipv4Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_name_is_taken_as_it_is_or_refused() {
        let longest = "ü".repeat(MAX_NODE_NAME_CHARS);
        for (given, taken) in [
            ("Ada's laptop", Some("Ada's laptop")),
            ("  laptop\n", Some("laptop")),
            (&longest, Some(longest.as_str())),
            ("", None),
            (" ", None),
            ("two\nlines", None),
            ("\u{1b}[31m", None),
            (&format!("{longest}x"), None),
        ] {
            assert_eq!(display_name(given).ok(), taken, "{given:?}");
        }
    }

    #[test]
    fn the_address_of_a_join_link_is_the_one_given_or_the_listen_address() {
        let listen: SocketAddr = "127.0.0.1:7430".parse().expect("address");
        for (given, address) in [
            (None, Some("127.0.0.1:7430")),
            (Some("gw.example.org"), Some("gw.example.org:7430")),
            (Some("gw.example.org:9"), Some("gw.example.org:9")),
            (Some("fe80::1"), Some("[fe80::1]:7430")),
            (Some("[::1]:9"), Some("[::1]:9")),
            (Some("two words"), None),
            (Some(""), None),
        ] {
            assert_eq!(
                join_address(given, listen).ok().as_deref(),
                address,
                "{given:?}"
            );
        }
        let any: SocketAddr = "[::]:7430".parse().expect("address");
        let address = join_address(None, any).expect("some address");
        assert!(
            address.ends_with(":7430") && !address.starts_with("[::]"),
            "{address}"
        );
    }
}
