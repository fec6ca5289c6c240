//! Pairing by join link: a code that works once, a signing request, a certificate.

use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tidings_node::framed;
use tidings_protocol::join_link::JoinCode;
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Join, Joined, MAX_TEXT_BYTES, RefusalCode, Refused};
use tokio::sync::Semaphore;

use super::admission::{MAX_VERSION_CHARS, refusal, turn_away};
use super::authority::{AuthorityError, MAX_SIGNING_REQUEST_BYTES};
use super::context::NodeContext;
use crate::state::{InvitationStanding, RedeemRefusal, Redeemed, Redemption};

/// How long pairing may take.
const JOIN_DEADLINE: Duration = Duration::from_secs(10);
/// The largest join request.
const MAX_JOIN_BYTES: usize = MAX_SIGNING_REQUEST_BYTES + 4 * MAX_TEXT_BYTES;
/// Join requests worked on at once: each costs two signatures.
static JOINS: Semaphore = Semaphore::const_new(4);

/// Serves one machine that wants to become a node.
pub(super) async fn serve(context: &NodeContext, connection: Connection) {
    if tokio::time::timeout(JOIN_DEADLINE, pair(context, &connection))
        .await
        .is_err()
    {
        connection.close(0u32.into(), b"pairing took too long");
    }
}

async fn pair(context: &NodeContext, connection: &Connection) {
    let Ok((mut send, receive)) = connection.accept_bi().await else {
        return;
    };
    let Some(join) = read_join(receive).await else {
        let reason = "the join request cannot be read";
        let refused = refusal(RefusalCode::Other, reason, "update the older of the two");
        return turn_away(connection, send, refused).await;
    };
    match admit(context, join).await {
        Err(refused) => turn_away(connection, send, refused).await,
        Ok(joined) => {
            tracing::info!(node = %joined.host_name, "node joined");
            say_joined(&mut send, joined).await;
        }
    }
}

async fn read_join(mut receive: RecvStream) -> Option<Join> {
    match framed::read(&mut receive, MAX_JOIN_BYTES).await {
        Ok(Some(Message::Join(join))) if join.machine_name.len() <= MAX_TEXT_BYTES => Some(join),
        _ => None,
    }
}

async fn say_joined(send: &mut SendStream, joined: Joined) {
    // A machine that misses this asks again with the same code and key, for the same answer.
    if framed::write(send, &Message::Joined(joined)).await.is_ok() && send.finish().is_ok() {
        let _ = send.stopped().await;
    }
}

async fn admit(context: &NodeContext, join: Join) -> Result<Joined, Refused> {
    let _permit = JOINS.acquire().await.map_err(|error| failed(&error))?;
    let code = JoinCode::from_bytes(join.code);
    // A look first: a stranger's guess costs a read, not a signature.
    match context.state.invitation(code.clone()).await {
        Ok(InvitationStanding::Open | InvitationStanding::Redeemed(_)) => {}
        Ok(InvitationStanding::Unknown) => return Err(refused(RedeemRefusal::Unknown)),
        Ok(InvitationStanding::Expired) => return Err(refused(RedeemRefusal::Expired)),
        Err(error) => return Err(failed(&error)),
    }
    let issued = context
        .authority
        .sign_node(&join.signing_request, context.clock.now())
        .map_err(|error| match error {
            AuthorityError::SigningRequest(_) => refusal(
                RefusalCode::SigningRequest,
                &error.to_string(),
                "update the node's agent",
            ),
            error => failed(&error),
        })?;
    let redemption = Redemption {
        code,
        node: issued.node_id,
        machine_name: join.machine_name,
        version: join.agent_version.chars().take(MAX_VERSION_CHARS).collect(),
        certificate: issued.certificate,
    };
    match context.state.redeem_invitation(redemption).await {
        Ok(Redeemed::Joined { node, certificate }) => Ok(Joined {
            node_id: node.node,
            host_name: node.host_name,
            certificate,
            authority: context.authority.certificate().to_vec(),
        }),
        Ok(Redeemed::Refused(why)) => Err(refused(why)),
        Err(error) => Err(failed(&error)),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "pairing failed");
    refusal(
        RefusalCode::Other,
        "the gateway could not record the node",
        "see the gateway's log, then try again",
    )
}

fn refused(why: RedeemRefusal) -> Refused {
    const ANEW: &str = "make a new link on the gateway: tidings nodes invite";
    match why {
        RedeemRefusal::Unknown => refusal(
            RefusalCode::JoinCode,
            "the join link is not one of this gateway's",
            ANEW,
        ),
        RedeemRefusal::Expired => refusal(RefusalCode::JoinCode, "the join link has expired", ANEW),
        RedeemRefusal::Used => refusal(
            RefusalCode::JoinCode,
            "the join link has been used by another machine",
            ANEW,
        ),
        RedeemRefusal::Revoked => refusal(
            RefusalCode::Revoked,
            "this machine's key has been revoked",
            "join with a new key: tidings-node join --state-dir <new directory>",
        ),
        RedeemRefusal::NameTaken { free } => refusal(
            RefusalCode::NameTaken,
            "the host name of the invitation is taken",
            &format!("invite with a free name: tidings nodes invite --name {free}"),
        ),
    }
}
