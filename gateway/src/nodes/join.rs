//! Pairing by join link: a code that works once, a signing request, a certificate.

use tidings_protocol::join_link::JoinCode;
use tidings_protocol::wire::messages::{Join, Joined, RefusalCode, Refused};

use super::admission::{MAX_VERSION_CHARS, refusal};
use super::context::NodeContext;
use super::pairing::{JOINS, failed, revoked, sign};
use crate::state::{InvitationStanding, RedeemRefusal, Redeemed, Redemption};

/// Makes a machine with a join code a node.
pub(super) async fn redeem(context: &NodeContext, join: Join) -> Result<Joined, Refused> {
    let _permit = JOINS.acquire().await.map_err(|error| failed(&error))?;
    let code = JoinCode::from_bytes(join.code);
    // A look first: a stranger's guess costs a read, not a signature.
    match context.state.invitation(code.clone()).await {
        Ok(InvitationStanding::Open | InvitationStanding::Redeemed(_)) => {}
        Ok(InvitationStanding::Unknown) => return Err(refused(RedeemRefusal::Unknown)),
        Ok(InvitationStanding::Expired) => return Err(refused(RedeemRefusal::Expired)),
        Err(error) => return Err(failed(&error)),
    }
    let issued = sign(context, &join.signing_request)?;
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
        RedeemRefusal::Revoked => revoked(),
        RedeemRefusal::NameTaken { free } => refusal(
            RefusalCode::NameTaken,
            "the host name of the invitation is taken",
            &format!("invite with a free name: tidings nodes invite --name {free}"),
        ),
    }
}
