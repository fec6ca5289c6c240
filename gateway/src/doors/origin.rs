//! Where a call comes from, and what that permits: the one authorisation point.

use tidings_protocol::session_api::{
    Adopt, ApiError, Caller, ErrorType, Privilege, Request, Speaker, TokenScope,
};

use tidings_protocol::{Host, SessionKey};

use super::Service;
use crate::state::{NodeRecord, NodeStanding, SessionAddress};

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The gateway's own socket: whoever can open it runs the gateway.
    Operator,
    /// Whoever shows an API token: an operator's, within its scope.
    Token(TokenScope),
    /// A program on a machine.
    Program {
        /// The machine, as its connection proves.
        host: Host,
        /// The conversation it runs, as it says: programs of one user on one machine trust
        /// each other.
        caller: Option<Caller>,
    },
    /// A session whose turns the gateway itself runs.
    Session(SessionAddress),
}

impl Origin {
    /// Of a call at the gateway's own socket.
    pub(super) fn at_socket(caller: Option<Caller>) -> Self {
        match caller {
            None => Self::Operator,
            caller => Self::Program {
                host: Host::GatewayLocal,
                caller,
            },
        }
    }

    /// True for a program, which speaks as the session of its conversation.
    pub(super) fn is_program(&self) -> bool {
        matches!(self, Self::Program { .. })
    }
}

impl Service {
    /// The request as it may be answered: with the session that its caller speaks as.
    pub(super) async fn authorise(
        &self,
        origin: &Origin,
        mut request: Request,
    ) -> Result<Request, ApiError> {
        let (host, caller) = match origin {
            Origin::Operator => return Ok(request),
            Origin::Token(scope) if *scope >= request.scope() => return Ok(request),
            Origin::Token(scope) => return Err(beyond_scope(*scope, request.scope())),
            Origin::Session(session) => {
                if request.privilege() == Privilege::Operator {
                    return Err(for_the_operator());
                }
                self.check_reach(origin, &request).await?;
                return speaking_as(session, request);
            }
            Origin::Program { host, caller } => (host, caller),
        };
        if request.privilege() == Privilege::Operator {
            return Err(for_the_operator());
        }
        let node = self.node_of(host).await?;
        self.check_reach(origin, &request).await?;
        let adopts = request.adopts_caller();
        match request.speaker() {
            Speaker::Needed(Some(_))
            | Speaker::Welcome(Some(_))
            | Speaker::OperatorOnly(Some(_)) => return Err(names_a_session()),
            Speaker::Nobody | Speaker::OperatorOnly(None) => {}
            Speaker::Needed(speaker) => {
                let caller = caller.as_ref().ok_or_else(nobody_calls)?;
                let session = match self.session_of(host, caller).await? {
                    Some(session) => session,
                    None if adopts => self.adopt_caller(&node, caller).await?,
                    None => return Err(not_adopted(caller)),
                };
                *speaker = Some(session.key().clone());
            }
            Speaker::Welcome(speaker) => {
                if let Some(caller) = caller {
                    let session = self.session_of(host, caller).await?;
                    *speaker = session.map(|session| session.key().clone());
                }
            }
        }
        Ok(request)
    }

    /// The sessions that continue the caller's conversation, the one it speaks as first.
    pub(super) async fn sessions_of(
        &self,
        origin: &Origin,
    ) -> Result<Vec<SessionAddress>, ApiError> {
        let Origin::Program { host, caller } = origin else {
            return Ok(Vec::new());
        };
        self.node_of(host).await?;
        let sessions = self.own_sessions(origin).await?;
        match caller {
            Some(caller) if sessions.is_empty() => Err(not_adopted(caller)),
            _ => Ok(sessions),
        }
    }

    /// The same, none of them where the conversation was not adopted.
    pub(super) async fn own_sessions(
        &self,
        origin: &Origin,
    ) -> Result<Vec<SessionAddress>, ApiError> {
        let (host, caller) = match origin {
            Origin::Operator | Origin::Token(_) => return Ok(Vec::new()),
            Origin::Session(session) => return Ok(vec![session.clone()]),
            Origin::Program { host, caller } => (host, caller),
        };
        let caller = caller.as_ref().ok_or_else(nobody_calls)?;
        let thread = (caller.catalog, caller.thread_id.clone());
        Ok(self.nodes.state.sessions_of(host.clone(), thread).await?)
    }

    /// The session that a conversation speaks as, if it was adopted.
    async fn session_of(
        &self,
        host: &Host,
        caller: &Caller,
    ) -> Result<Option<SessionAddress>, ApiError> {
        let thread = (caller.catalog, caller.thread_id.clone());
        let sessions = self.nodes.state.sessions_of(host.clone(), thread).await?;
        Ok(sessions.into_iter().next())
    }

    async fn adopt_caller(
        &self,
        node: &NodeRecord,
        caller: &Caller,
    ) -> Result<SessionAddress, ApiError> {
        let adopt = Adopt {
            catalog: caller.catalog,
            host: node.host_name.to_string(),
            thread_id: caller.thread_id.clone(),
            agent: None,
            watch_by: None,
        };
        let adopted = self.adopt(adopt).await?;
        self.address(adopted.session_key, None)
    }

    /// The node of a host. Its connection ends soon after it is revoked or removed; what was
    /// on its way until then is not answered either.
    pub(super) async fn node_of(&self, host: &Host) -> Result<NodeRecord, ApiError> {
        let node = self.nodes.state.node_of_host(host.clone()).await?;
        node.filter(|node| node.standing == NodeStanding::Active)
            .ok_or_else(|| {
                ApiError::new(
                    ErrorType::NotPermitted,
                    format!("{host} is no node of this gateway now"),
                )
                .with_hint("tidings nodes list shows the nodes")
            })
    }
}

/// The request of a session that the gateway runs.
fn speaking_as(session: &SessionAddress, mut request: Request) -> Result<Request, ApiError> {
    match request.speaker() {
        Speaker::Needed(Some(_)) | Speaker::Welcome(Some(_)) | Speaker::OperatorOnly(Some(_)) => {
            return Err(names_a_session());
        }
        Speaker::Nobody | Speaker::OperatorOnly(None) => {}
        Speaker::Needed(speaker) | Speaker::Welcome(speaker) => {
            *speaker = Some(session.key().clone());
        }
    }
    Ok(request)
}

/// The session that speaks, where the request or its caller named one.
pub(super) fn named(speaker: Option<SessionKey>) -> Result<SessionKey, ApiError> {
    speaker.ok_or_else(|| {
        ApiError::new(
            ErrorType::InvalidRequest,
            "nobody said which session this is for",
        )
        .with_hint("give its session key, or introduce the caller (catalog and thread)")
    })
}

fn for_the_operator() -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        "this is an operator's request: a program does not make it for its session",
    )
    .with_hint("ask at the gateway's own socket, as its operator")
}

fn beyond_scope(given: TokenScope, needed: TokenScope) -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        format!("this takes a token of scope {needed}, and this one has {given}"),
    )
    .with_hint(format!("tidings token create NAME --scope {needed}"))
}

fn names_a_session() -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        "a program does not choose the session it speaks as: the gateway derives it from the \
         caller's conversation",
    )
    .with_hint("leave the session key out, and introduce the caller (catalog and thread)")
}

pub(super) fn nobody_calls() -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        "nobody said which conversation makes this request",
    )
    .with_hint("introduce the caller (catalog and thread) before asking")
}

fn not_adopted(caller: &Caller) -> ApiError {
    ApiError::new(
        ErrorType::NotFound,
        format!(
            "the {} thread {} is no session of this gateway",
            caller.catalog, caller.thread_id
        ),
    )
    .with_hint("it becomes one when it watches a session, or by tidings sessions adopt")
}
