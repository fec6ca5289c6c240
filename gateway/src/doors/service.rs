//! The session interface, as the gateway answers it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tidings_node::local::socket::{Follow, Responder};
use tidings_protocol::EpochMs;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request};
use tokio::sync::{mpsc, watch};

use crate::config::Config;
use crate::nodes::NodeContext;
use crate::state::{AgentId, AgentIdError, SessionAddress};

/// What the gateway says about its own process.
#[derive(Debug, Clone)]
pub struct GatewayInfo {
    /// Its state directory.
    pub state_dir: PathBuf,
    /// Where nodes connect.
    pub listen: SocketAddr,
    /// When it started.
    pub started_at: EpochMs,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
}

/// Answers requests, whichever door they came by.
#[derive(Debug, Clone)]
pub struct Service {
    pub(super) nodes: Arc<NodeContext>,
    pub(super) info: Arc<GatewayInfo>,
}

impl Service {
    /// Answers with what the nodes and the database know.
    #[must_use]
    pub fn new(nodes: Arc<NodeContext>, info: GatewayInfo) -> Self {
        Self {
            nodes,
            info: Arc::new(info),
        }
    }

    async fn reply(&self, request: Request) -> Result<Reply, ApiError> {
        Ok(match request {
            Request::Status {} => Reply::Status(Box::new(self.status().await?)),
            Request::NodesInvite(invite) => Reply::NodesInvite(self.nodes_invite(invite).await?),
            Request::NodesList {} => Reply::NodesList(self.nodes_list().await?),
            Request::NodesShow(node) => Reply::Node(Box::new(self.nodes_show(node).await?)),
            Request::NodesRename(rename) => Reply::Node(Box::new(self.nodes_rename(rename).await?)),
            Request::NodesRevoke(node) => Reply::Node(Box::new(self.nodes_revoke(node).await?)),
            Request::NodesRemove(node) => Reply::NodesRemove(self.nodes_remove(node).await?),
            Request::CatalogList(list) => Reply::CatalogList(self.catalog_list(list).await?),
            Request::Adopt(adopt) => Reply::Adopt(self.adopt(adopt).await?),
            Request::SessionsList(list) => Reply::SessionsList(self.sessions_list(list).await?),
            Request::SessionShow(session) => {
                Reply::SessionShow(Box::new(self.session_show(session).await?))
            }
            Request::SessionStatus(query) => {
                Reply::SessionStatus(self.session_status(query).await?)
            }
            Request::WatchAdd(pair) => Reply::WatchAdd(self.watch_add(pair).await?),
            Request::WatchRemove(pair) => Reply::WatchRemove(self.watch_remove(pair).await?),
            Request::WatchList(filter) => Reply::WatchList(self.nodes.state.watches(filter).await?),
            Request::NoticesList(watcher) => {
                Reply::Notices(self.nodes.state.notices(watcher.session_key).await?)
            }
            Request::NoticesDrain(watcher) => {
                Reply::Notices(self.nodes.state.drain(watcher.session_key).await?)
            }
            Request::TurnBegin(session) => Reply::TurnBegin(self.turn_begin(session).await?),
            Request::TurnConfirm(lease) => Reply::TurnSettled(self.turn_confirm(&lease).await?),
            Request::TurnRelease(lease) => Reply::TurnSettled(self.turn_release(&lease).await?),
            Request::TurnEnd(session) => Reply::TurnEnd(self.turn_end(session).await?),
            Request::SignalsList(query) => Reply::Signals(self.signals_list(query).await?),
            Request::SignalsWhy { sequence } => {
                Reply::SignalsWhy(self.nodes.state.signal_why(sequence).await?)
            }
            Request::SignalsRecord(record) => {
                Reply::SignalsRecord(self.signals_record(record).await?)
            }
            Request::Backup(backup) => Reply::Backup(self.backup(backup).await?),
            Request::Check {} => Reply::Check(self.check().await?),
            Request::NodeStatus {} | Request::SignalsFollow(_) | Request::WakesFollow {} => {
                return Err(ApiError::new(
                    ErrorType::Unsupported,
                    "the gateway does not answer this request on this door",
                ));
            }
        })
    }

    /// The session of a key; a bare one belongs to `agent`, else to the default agent.
    pub(super) fn address(
        &self,
        key: SessionKey,
        agent: Option<&str>,
    ) -> Result<SessionAddress, ApiError> {
        let agent = self.agent(agent)?;
        SessionAddress::resolve(key, &agent).map_err(bad_agent)
    }

    /// The agent of this name, else the default agent.
    pub(super) fn agent(&self, name: Option<&str>) -> Result<AgentId, ApiError> {
        let config = self.info.config.borrow();
        AgentId::parse(name.unwrap_or(&config.agents.default)).map_err(bad_agent)
    }
}

impl Responder for Service {
    async fn answer(&self, request: Request) -> Reply {
        self.reply(request).await.unwrap_or_else(Reply::Error)
    }

    fn follow(&self, stream: Follow) -> mpsc::Receiver<Reply> {
        match stream {
            Follow::Signals(query) => self.signals_follow(query),
            Follow::Wakes => self.wakes_follow(),
        }
    }
}

fn bad_agent(error: AgentIdError) -> ApiError {
    ApiError::new(ErrorType::InvalidRequest, error.to_string())
}
