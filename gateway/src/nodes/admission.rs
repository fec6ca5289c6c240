//! Who may come in, and how those who may not are told.

use std::time::Duration;

use quinn::{Connection, SendStream};
use rustls::pki_types::CertificateDer;
use tidings_node::framed;
use tidings_protocol::NodeId;
use tidings_protocol::wire::messages::{Hello, RefusalCode, Refused};
use tidings_protocol::wire::{Message, common_version};
use tokio::sync::mpsc;

use super::authority::node_of;
use super::authority::serial_of;
use super::client_certificates::is_expired;
use super::context::NodeContext;
use super::presence::{DuplicateIdentity, Place};
use crate::state::{NodeRecord, NodeStanding, StateError};

/// The longest agent version kept.
pub(super) const MAX_VERSION_CHARS: usize = 64;
/// How long a node that was turned away has to read why.
const FAREWELL: Duration = Duration::from_secs(2);

/// Who may come in, with its place among the connected and the version both speak.
pub(super) async fn admit(
    context: &NodeContext,
    connection: &Connection,
    hello: &Hello,
    changes: mpsc::Sender<Message>,
) -> Result<(NodeRecord, Place, u32), Refused> {
    let (node_id, certificate) = peer(connection).ok_or_else(|| {
        refusal(
            RefusalCode::UnknownNode,
            "no certificate was shown",
            "join again with a fresh link: tidings nodes invite",
        )
    })?;
    let node = known(context.state.node(node_id.clone()).await)?;
    refuse_revoked(context, &certificate).await?;
    if is_expired(&certificate, context.clock.now()) {
        return Err(refusal(
            RefusalCode::CertificateExpired,
            "the node's certificate has expired",
            "the agent renews it by itself; if it cannot, check both machines' clocks",
        ));
    }
    let version = common_version(hello.oldest_version, hello.newest_version).ok_or_else(|| {
        refusal(
            RefusalCode::Version,
            &format!(
                "the node speaks protocol {} to {}, the gateway another",
                hello.oldest_version, hello.newest_version
            ),
            "update the older of the two",
        )
    })?;
    let place = context
        .presences
        .admit(&node.host, hello.instance, connection, changes)
        .await
        .map_err(|DuplicateIdentity| {
            refusal(
                RefusalCode::DuplicateIdentity,
                "another machine with this node's key is connected",
                "a copied state directory is two nodes with one key: join the copy anew",
            )
        })?;
    // Whoever was revoked between the look above and the place has not been told to go.
    let node = known(context.state.node(node_id).await)?;
    refuse_revoked(context, &certificate).await?;
    Ok((node, place, version))
}

/// Turns away a certificate that was revoked while its node was not. It is not admitted for
/// renewal either: whoever has it may have the key.
async fn refuse_revoked(context: &NodeContext, certificate: &[u8]) -> Result<(), Refused> {
    let serial = serial_of(certificate).unwrap_or_default();
    match context.state.is_revoked(serial).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(refusal(
            RefusalCode::CertificateRevoked,
            "the node's certificate has been revoked",
            "on the gateway: tidings cert renew NODE --out FOLDER; \
             here, with the agent stopped: tidings-node join --certificate FOLDER",
        )),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The node's record, if it may come in.
fn known(found: Result<Option<NodeRecord>, StateError>) -> Result<NodeRecord, Refused> {
    match found {
        Ok(Some(node)) if node.standing == NodeStanding::Active => Ok(node),
        Ok(Some(_)) => Err(refusal(
            RefusalCode::Revoked,
            "this node has been turned away by the gateway's operator",
            "ask there for a new join link (tidings nodes invite); here, with the agent stopped: \
             tidings-node leave, then tidings-node join LINK",
        )),
        Ok(None) => Err(refusal(
            RefusalCode::UnknownNode,
            "this node is not known to this gateway",
            "ask there for a new join link (tidings nodes invite); here, with the agent stopped: \
             tidings-node leave, then tidings-node join LINK",
        )),
        Err(error) => Err(unreadable(&error)),
    }
}

fn unreadable(error: &StateError) -> Refused {
    tracing::error!(%error, "a node could not be looked up");
    refusal(
        RefusalCode::Other,
        "the gateway cannot read its database",
        "see the gateway's log",
    )
}

/// The node behind a connection, and the certificate it showed.
pub(super) fn peer(connection: &Connection) -> Option<(NodeId, CertificateDer<'static>)> {
    let chain = connection.peer_identity()?;
    let chain = chain.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    let leaf = chain.first()?;
    Some((node_of(leaf)?, leaf.clone()))
}

/// A refusal in its parts.
pub(crate) fn refusal(code: RefusalCode, reason: &str, hint: &str) -> Refused {
    Refused {
        code,
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    }
}

/// Says why, and leaves the other side a moment to read it.
pub(super) async fn turn_away(connection: &Connection, mut send: SendStream, refused: Refused) {
    tracing::info!(remote = %connection.remote_address(), code = ?refused.code, "turned away");
    if framed::write(&mut send, &Message::Refused(refused))
        .await
        .is_ok()
        && send.finish().is_ok()
    {
        let _ = tokio::time::timeout(FAREWELL, send.stopped()).await;
    }
    connection.close(0u32.into(), b"refused");
}
