//! Requests about machines that ask to become nodes.

use std::sync::Arc;

use tidings_protocol::HostName;
use tidings_protocol::session_api::{
    ApiError, ErrorType, Node, NodeState, NodesApprove, PairingEvent, PairingNews, PairingRef,
    PairingRejected, PairingRequest, Reply,
};
use tidings_protocol::wire::messages::{Joined, RefusalCode};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use super::Service;
use super::nodes::{given_name, join_address};
use crate::nodes::approvals::{Approvals, Candidate, Verdict, Window, passed};
use crate::nodes::{NodeContext, refusal, sign};
use crate::state::{AuditAction, EnrolRefusal, NameWish, NewNode};

impl Service {
    /// Lets machines ask while somebody listens, and tells of each.
    pub(super) async fn nodes_listen(&self, replies: &mpsc::Sender<Reply>) -> Result<(), ApiError> {
        let address = join_address(None, self.info.listen)?;
        let context = &self.nodes;
        // The window closes when whoever listens has gone, or with its time.
        let window = context.approvals.open();
        tokio::select! {
            _ = tell(&context.approvals, &window, address, replies) => {}
            () = passed(&*context.clock, window.until) => {
                let _ = replies.send(news(PairingEvent::Closed, None)).await;
            }
        }
        Ok(())
    }

    /// Makes a machine that waits a node.
    pub(super) async fn nodes_approve(&self, approve: NodesApprove) -> Result<Node, ApiError> {
        let candidate = self.candidate(&approve.request)?;
        let name = match approve.name.as_deref() {
            Some(name) => NameWish::Given(given_name(name)?),
            None => NameWish::Machine(candidate.request.machine_name.clone()),
        };
        let issued = sign(&self.nodes, &candidate.signing_request)
            .map_err(|refused| ApiError::new(ErrorType::InvalidData, refused.reason))?;
        let certificate = issued.certificate.der.clone();
        let enrolled = self.nodes.state.approve_node(NewNode {
            node: issued.node_id,
            name,
            version: candidate.request.version.clone(),
            certificate: issued.certificate,
        });
        let id = candidate.request.id.to_string();
        let record = match enrolled.await? {
            Ok(record) => record,
            Err(why) => return Err(self.not_enrolled(AuditAction::Approve, id, why).await),
        };
        let joined = Joined {
            node_id: record.node.clone(),
            host_name: record.host_name.clone(),
            certificate,
            authority: self.nodes.authority.certificate().to_vec(),
        };
        let was_told = self
            .nodes
            .approvals
            .settle(candidate.ticket, Verdict::Approved(joined));
        tracing::info!(node = %record.host_name, "a machine was approved");
        let mut node = self.node(record);
        if !was_told {
            let gone = "it has gone before it heard of it: let it ask again, and approve it again";
            node.warnings.push(gone.to_owned());
        }
        Ok(node)
    }

    /// Tells a machine that waits no, or withdraws the join links of that name.
    pub(super) async fn nodes_reject(
        &self,
        reject: PairingRef,
    ) -> Result<PairingRejected, ApiError> {
        let candidate = match self.candidate(&reject.request) {
            Ok(candidate) => candidate,
            Err(error) => return self.withdraw(reject.request, error).await,
        };
        let id = candidate.request.id.to_string();
        let recorded = self
            .nodes
            .state
            .audit(AuditAction::Reject, id.clone(), None);
        recorded.await?;
        let refused = refusal(
            RefusalCode::Rejected,
            "the gateway's operator rejected this machine",
            "ask the operator; with a link it needs no approval: tidings nodes invite",
        );
        let rejected = self
            .nodes
            .approvals
            .settle(candidate.ticket, Verdict::Refused(refused));
        Ok(PairingRejected {
            rejected,
            id,
            machine_name: candidate.request.machine_name,
        })
    }

    /// Withdraws the join links that are meant; without any, the error about the request stands.
    async fn withdraw(&self, name: String, error: ApiError) -> Result<PairingRejected, ApiError> {
        let withdrawn = self.nodes.state.withdraw_invitations(name).await?;
        let first = withdrawn.into_iter().next().ok_or(error)?;
        tracing::info!(id = first.id, "a join link was withdrawn");
        let name = first.name.map(|name| name.to_string());
        Ok(PairingRejected {
            rejected: true,
            machine_name: name.unwrap_or_else(|| first.id.clone()),
            id: first.id,
        })
    }

    /// Why a machine does not become a node, for whoever wanted it to; and for the record.
    pub(super) async fn not_enrolled(
        &self,
        action: AuditAction,
        target: String,
        refusal: EnrolRefusal,
    ) -> ApiError {
        let (message, hint) = match refusal {
            EnrolRefusal::Revoked => (
                "this machine's key has been revoked",
                "its machine can join with a new key: tidings-node leave, then join".to_owned(),
            ),
            EnrolRefusal::NameTaken { free } => {
                ("the host name is taken", format!("{free} is free"))
            }
        };
        let refused = Some(message.to_owned());
        if let Err(error) = self.nodes.state.audit(action, target, refused).await {
            tracing::warn!(%error, "a refusal was not recorded");
        }
        ApiError::new(ErrorType::Conflict, message).with_hint(hint)
    }

    fn candidate(&self, named: &str) -> Result<Candidate, ApiError> {
        self.nodes
            .approvals
            .find(named)
            .ok_or_else(|| nobody_waits(&self.nodes))
    }
}

/// What the list of nodes shows of a machine that waits.
pub(super) fn waiting_node(request: PairingRequest) -> Node {
    Node {
        id: request.id.clone(),
        name: request.machine_name.clone(),
        host_name: HostName::slug(&request.machine_name),
        host: tidings_protocol::Host::Node(request.id.clone()),
        status: NodeState::Pending,
        last_seen_at: None,
        version: Some(request.version.clone()),
        certificate_not_after: None,
        warnings: Vec::new(),
        roots: Vec::new(),
        request: Some(request),
        audit: Vec::new(),
    }
}

fn nobody_waits(context: &NodeContext) -> ApiError {
    let message = "no machine that waits shows these words, or has this id";
    let hint = match context.approvals.waiting().len() {
        0 => "none waits: tidings nodes listen, then tidings-node join HOST:PORT on that machine",
        _ => "compare once more; if the words differ, somebody may stand between: reject it",
    };
    ApiError::new(ErrorType::NotFound, message).with_hint(hint)
}

/// Tells whoever listens of everything, until it goes.
async fn tell(
    approvals: &Arc<Approvals>,
    window: &Window,
    address: String,
    replies: &mpsc::Sender<Reply>,
) -> Result<(), mpsc::error::SendError<Reply>> {
    // Subscribed before the look: what comes between the two is told twice, never not.
    let mut happens = approvals.news();
    let listening = PairingNews {
        event: PairingEvent::Listening,
        address: Some(address),
        until: Some(window.until),
        request: None,
    };
    replies.send(Reply::NodesListen(listening)).await?;
    tell_waiting(approvals, replies).await?;
    loop {
        match next(&mut happens).await {
            Next::News(news) => replies.send(Reply::NodesListen(news)).await?,
            Next::Afresh => tell_waiting(approvals, replies).await?,
            Next::End => return Ok(()),
        }
    }
}

async fn tell_waiting(
    approvals: &Arc<Approvals>,
    replies: &mpsc::Sender<Reply>,
) -> Result<(), mpsc::error::SendError<Reply>> {
    for request in approvals.waiting() {
        let requested = news(PairingEvent::Requested, Some(request));
        replies.send(requested).await?;
    }
    Ok(())
}

/// What to tell next.
enum Next {
    News(PairingNews),
    /// Some news were missed.
    Afresh,
    End,
}

async fn next(happens: &mut broadcast::Receiver<PairingNews>) -> Next {
    match happens.recv().await {
        Ok(news) => Next::News(news),
        Err(RecvError::Lagged(_)) => Next::Afresh,
        Err(RecvError::Closed) => Next::End,
    }
}

fn news(event: PairingEvent, request: Option<PairingRequest>) -> Reply {
    Reply::NodesListen(PairingNews {
        event,
        address: None,
        until: None,
        request,
    })
}
