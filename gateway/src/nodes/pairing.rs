//! Machines that want to become nodes: by a join link, or by asking somebody to approve them.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{Connection, RecvStream, SendStream};
use tidings_node::connection::public_key_of;
use tidings_node::framed;
use tidings_protocol::pairing::GatewaySide;
use tidings_protocol::session_api::{MAX_NODE_NAME_CHARS, PairingRequest};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{
    Ask, Joined, MAX_TEXT_BYTES, NonceOf, RefusalCode, Refused,
};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::admission::{MAX_VERSION_CHARS, refusal, turn_away};
use super::approvals::{Pending, Verdict};
use super::authority::{AuthorityError, Issued, MAX_SIGNING_REQUEST_BYTES, asker, random};
use super::context::NodeContext;
use super::gate::Place;
use super::join;
use crate::state::NodeStanding;

/// How long a machine may take for each of its words.
const STEP_DEADLINE: Duration = Duration::from_secs(10);
/// The largest join request.
const MAX_JOIN_BYTES: usize = MAX_SIGNING_REQUEST_BYTES + 4 * MAX_TEXT_BYTES;
/// Join requests worked on at once: each costs two signatures.
pub(super) static JOINS: Semaphore = Semaphore::const_new(4);

/// Serves one machine that wants to become a node. `place` is what it takes of the gate until
/// it waits for people.
pub(super) async fn serve(context: &NodeContext, connection: Connection, place: Place) {
    let Ok(Ok((mut send, mut receive))) = timeout(STEP_DEADLINE, connection.accept_bi()).await
    else {
        return connection.close(0u32.into(), b"pairing took too long");
    };
    let outcome = match next(&mut receive).await {
        Some(Message::Join(join)) if join.machine_name.len() <= MAX_TEXT_BYTES => {
            join::redeem(context, join).await
        }
        Some(Message::Ask(ask)) if ask.machine_name.len() <= MAX_TEXT_BYTES => {
            let streams = (&mut send, &mut receive);
            let asked = ask_people(context, connection.remote_address(), streams, ask).await;
            drop(place);
            match asked {
                Ok((pending, verdict)) => decided(&connection, &pending, verdict).await,
                Err(refused) => Err(refused),
            }
        }
        _ => Err(unreadable()),
    };
    match outcome {
        Err(refused) => turn_away(&connection, send, refused).await,
        Ok(joined) => {
            tracing::info!(node = %joined.host_name, "node joined");
            say_joined(&mut send, joined).await;
        }
    }
}

/// Says that there were too many attempts.
pub(super) async fn turn_away_for_now(connection: Connection) {
    let Ok(Ok((send, _))) = timeout(STEP_DEADLINE, connection.accept_bi()).await else {
        return connection.close(0u32.into(), b"too many attempts to join");
    };
    let refused = refusal(
        RefusalCode::TooMany,
        "too many attempts to join from this address",
        "wait a minute, then try again",
    );
    turn_away(&connection, send, refused).await;
}

/// The machine's next word, in time.
async fn next(receive: &mut RecvStream) -> Option<Message> {
    let read = timeout(STEP_DEADLINE, framed::read(receive, MAX_JOIN_BYTES));
    read.await.ok()?.ok()?
}

async fn say_joined(send: &mut SendStream, joined: Joined) {
    // A machine that misses this asks again with the same key: by its link for the same
    // answer, else for another approval.
    if framed::write(send, &Message::Joined(joined)).await.is_ok() && send.finish().is_ok() {
        let _ = timeout(STEP_DEADLINE, send.stopped()).await;
    }
}

/// Lets a machine ask, and shows its words. What becomes of it will be told by the receiver.
async fn ask_people(
    context: &NodeContext,
    from: SocketAddr,
    (send, receive): (&mut SendStream, &mut RecvStream),
    ask: Ask,
) -> Result<(Pending, oneshot::Receiver<Verdict>), Refused> {
    // First what costs nothing, then the signature of the request, then the database.
    context.approvals.must_be_open()?;
    let (node, node_key) = {
        let _permit = JOINS.acquire().await.map_err(|error| failed(&error))?;
        asker(&ask.signing_request).map_err(|error| no_good(&error))?
    };
    let known = context.state.node(node.clone()).await;
    if known.is_ok_and(|known| known.is_some_and(|n| n.standing == NodeStanding::Revoked)) {
        return Err(revoked());
    }
    let now = context.clock.monotonic();
    if !context.requests.may_try(from.ip(), now) {
        return Err(refusal(
            RefusalCode::TooMany,
            "too many machines have asked within a minute",
            "wait a minute, then ask again",
        ));
    }
    let pending = context.approvals.arrive(&node, from.ip())?;
    // Every request is a guess that an attacker has: the words are seen before it is given up.
    context.requests.count(from.ip(), now);
    let nonce = random().map_err(|error| failed(&error))?;
    let side = GatewaySide::new(node_key, ask.commitment, nonce);
    let answer = Message::Nonce(NonceOf {
        nonce: *side.nonce(),
    });
    framed::write(send, &answer)
        .await
        .map_err(|_| unreadable())?;
    let Some(Message::Reveal(revealed)) = next(receive).await else {
        return Err(unreadable());
    };
    let (authority_key, _) =
        public_key_of(context.authority.certificate()).map_err(|error| failed(&error))?;
    let words = side
        .revealed(&authority_key, &revealed.nonce)
        .map_err(|error| {
            tracing::warn!(remote = %from, %error, "a machine that asks was turned away");
            refusal(
                RefusalCode::Other,
                &error.to_string(),
                "ask again; if it stays so, somebody stands between the two machines",
            )
        })?;
    let request = PairingRequest {
        id: node,
        machine_name: one_line(&ask.machine_name),
        version: ask.agent_version.chars().take(MAX_VERSION_CHARS).collect(),
        address: SocketAddr::new(from.ip().to_canonical(), from.port()).to_string(),
        words,
        expires_at: 0,
    };
    tracing::info!(remote = %from, node = %request.id, "a machine asks to become a node");
    let verdict = pending.show(request, ask.signing_request);
    framed::write(send, &Message::Shown {})
        .await
        .map_err(|_| unreadable())?;
    Ok((pending, verdict))
}

/// Waits for what people decide, as long as the machine waits.
async fn decided(
    connection: &Connection,
    pending: &Pending,
    verdict: oneshot::Receiver<Verdict>,
) -> Result<Joined, Refused> {
    tokio::select! {
        verdict = verdict => match verdict {
            Ok(Verdict::Approved(joined)) => Ok(joined),
            Ok(Verdict::Refused(refused)) => Err(refused),
            Err(_) => Err(asked_anew()),
        },
        refused = pending.expired() => Err(refused),
        _ = connection.closed() => Err(unreadable()),
    }
}

/// Signs a certificate for the key of a request.
pub(crate) fn sign(context: &NodeContext, request: &[u8]) -> Result<Issued, Refused> {
    context
        .authority
        .sign_node(request, context.clock.now())
        .map_err(|error| no_good(&error))
}

fn no_good(error: &AuthorityError) -> Refused {
    match error {
        AuthorityError::SigningRequest(_) => refusal(
            RefusalCode::SigningRequest,
            &error.to_string(),
            "update the node's agent",
        ),
        error => failed(error),
    }
}

/// A fault of ours.
pub(super) fn failed(error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "pairing failed");
    refusal(
        RefusalCode::Other,
        "the gateway could not record the node",
        "see the gateway's log, then try again",
    )
}

/// A key that was turned away for good.
pub(super) fn revoked() -> Refused {
    refusal(
        RefusalCode::Revoked,
        "this machine's key has been revoked",
        "join with a new key: tidings-node join --state-dir <new directory>",
    )
}

fn unreadable() -> Refused {
    refusal(
        RefusalCode::Other,
        "the join request cannot be read",
        "update the older of the two",
    )
}

fn asked_anew() -> Refused {
    refusal(
        RefusalCode::Other,
        "this machine has asked anew, and this request counts no more",
        "compare the words of the newer request",
    )
}

fn one_line(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(MAX_NODE_NAME_CHARS).collect()
}
