//! The session interface, as the gateway answers it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tidings_node::local::socket::Responder;
use tidings_node::wake_command::CommandFigures;
use tidings_protocol::session_api::{ApiError, Call, ErrorType, Reply, Request};
use tidings_protocol::{EpochMs, Host, SessionKey};
use tokio::sync::{mpsc, watch};

use super::origin::Origin;
use super::scope;
use crate::config::Config;
use crate::nodes::{NodeContext, SessionInterface};
use crate::sessions::transcript::cache::Indexes;
use crate::state::{AgentId, AgentIdError, SessionAddress, SessionMark};
use crate::turns::runner::Jobs;

/// What the gateway says about its own process.
#[derive(Debug, Clone)]
pub struct GatewayInfo {
    /// Its state directory.
    pub state_dir: PathBuf,
    /// Where nodes connect.
    pub listen: SocketAddr,
    /// Where HTTP is answered, as the beginning of an address; nothing where it is off.
    pub http: Option<String>,
    /// When it started.
    pub started_at: EpochMs,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// How runs of `wake.command` ended.
    pub wake_commands: Arc<CommandFigures>,
}

/// Answers requests, whichever door they came by.
#[derive(Debug, Clone)]
pub struct Service {
    pub(super) nodes: Arc<NodeContext>,
    pub(super) info: Arc<GatewayInfo>,
    // Takes turns to run; none where nobody runs any.
    pub(super) jobs: Option<Jobs>,
    // Of transcripts whose older pages are read.
    pub(super) indexes: Indexes,
}

impl Service {
    /// Answers with what the nodes and the database know.
    #[must_use]
    pub fn new(nodes: Arc<NodeContext>, info: GatewayInfo) -> Self {
        Self {
            nodes,
            info: Arc::new(info),
            jobs: None,
            indexes: Indexes::default(),
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a table: one row for each request, and whoever looks for one finds it here"
    )]
    pub(super) async fn reply(&self, origin: &Origin, request: Request) -> Result<Reply, ApiError> {
        Ok(match self.authorise(origin, request).await? {
            Request::Status {} => Reply::Status(Box::new(self.status().await?)),
            Request::NodesInvite(invite) => Reply::NodesInvite(self.nodes_invite(invite).await?),
            Request::NodesList {} => Reply::NodesList(self.nodes_list().await?),
            Request::NodesShow(node) => Reply::Node(Box::new(self.nodes_show(node).await?)),
            Request::NodesRename(rename) => Reply::Node(Box::new(self.nodes_rename(rename).await?)),
            Request::NodesRevoke(node) => Reply::Node(Box::new(self.nodes_revoke(node).await?)),
            Request::NodesRemove(node) => Reply::NodesRemove(self.nodes_remove(node).await?),
            Request::NodesApprove(approve) => {
                Reply::Node(Box::new(self.nodes_approve(approve).await?))
            }
            Request::NodesReject(reject) => Reply::NodesReject(self.nodes_reject(reject).await?),
            Request::CertIssue(issue) => Reply::CertIssued(Box::new(self.cert_issue(issue).await?)),
            Request::CertRenew(renew) => Reply::CertIssued(Box::new(self.cert_renew(renew).await?)),
            Request::CertRevoke(named) => Reply::CertRevoked(self.cert_revoke(named).await?),
            Request::CertInspect(named) => Reply::CertInspect(self.cert_inspect(named).await?),
            Request::TokenCreate(create) => Reply::TokenCreate(self.token_create(create).await?),
            Request::TokenList {} => Reply::TokenList(self.token_list().await?),
            Request::TokenRevoke(named) => Reply::TokenRevoke(self.token_revoke(named).await?),
            Request::CatalogList(list) => Reply::CatalogList(self.catalog_list(list).await?),
            Request::Adopt(adopt) => Reply::Adopt(self.adopt(adopt).await?),
            Request::SessionsList(list) => {
                let visible = self.visible_to(origin).await?;
                Reply::SessionsList(self.sessions_list(list, visible).await?)
            }
            Request::SessionShow(session) => {
                Reply::SessionShow(Box::new(self.session_show(session).await?))
            }
            Request::SessionArchive(session) => {
                self.session_mark(session, SessionMark::Archive).await?
            }
            Request::SessionUnarchive(session) => {
                self.session_mark(session, SessionMark::Unarchive).await?
            }
            Request::SessionPin(session) => self.session_mark(session, SessionMark::Pin).await?,
            Request::SessionUnpin(session) => {
                self.session_mark(session, SessionMark::Unpin).await?
            }
            Request::SessionStatus(query) => {
                Reply::SessionStatus(self.session_status(query).await?)
            }
            Request::SessionsHistory(history) => {
                Reply::SessionsHistory(self.sessions_history(history).await?)
            }
            Request::SessionsSend(send) => Reply::SessionsSend(self.sessions_send(send).await?),
            Request::SessionsSpawn(spawn) => {
                Reply::SessionsSpawn(self.sessions_spawn(spawn).await?)
            }
            Request::RunFinished(run) => Reply::RunFinished(self.run_finished(run).await?),
            Request::GoalSet(set) => Reply::Goal(self.goal_set(set).await?),
            Request::GoalClear(clear) => Reply::Goal(self.goal_clear(clear).await?),
            Request::MessageRecorded(message) => {
                Reply::Recorded(self.message_recorded(message).await?)
            }
            Request::CompactionRecorded(compaction) => {
                Reply::Recorded(self.compaction_recorded(compaction).await?)
            }
            Request::SessionReset(session) => {
                Reply::SessionReset(self.session_reset(session).await?)
            }
            Request::SessionDelete(session) => {
                Reply::SessionDelete(self.session_delete(session).await?)
            }
            Request::AgentsList {} => Reply::AgentsList(self.agents_list().await?),
            Request::AgentsDelete(agent) => Reply::AgentsDelete(self.agents_delete(agent).await?),
            Request::SessionsCleanup(cleanup) => {
                Reply::SessionsCleanup(self.sessions_cleanup(cleanup).await?)
            }
            Request::CronRunBegin(begin) => Reply::CronRunBegin(self.cron_run_begin(begin).await?),
            Request::CronRunsList(list) => Reply::CronRunsList(self.cron_runs_list(list).await?),
            Request::WatchAdd(pair) => Reply::WatchAdd(self.watch_add(pair).await?),
            Request::WatchRemove(pair) => Reply::WatchRemove(self.watch_remove(pair).await?),
            Request::WatchList(filter) => Reply::WatchList(self.nodes.state.watches(filter).await?),
            Request::NoticesList(watcher) => Reply::Notices(self.notices_list(watcher).await?),
            Request::NoticesDrain(watcher) => Reply::Notices(self.notices_drain(watcher).await?),
            Request::TurnBegin(session) => Reply::TurnBegin(self.turn_begin(session).await?),
            Request::TurnConfirm(lease) => Reply::TurnSettled(self.turn_confirm(&lease).await?),
            Request::TurnRelease(lease) => Reply::TurnSettled(self.turn_release(&lease).await?),
            Request::TurnEnd(session) => Reply::TurnEnd(self.turn_end(session).await?),
            Request::HookEvent(event) => Reply::HookEvent(self.hook_event(origin, event).await?),
            Request::SignalsList(query) => Reply::Signals(self.signals_list(query).await?),
            Request::SignalsWhy { sequence } => {
                Reply::SignalsWhy(self.nodes.state.signal_why(sequence).await?)
            }
            Request::SignalsRecord(record) => {
                Reply::SignalsRecord(self.signals_record(record).await?)
            }
            Request::Backup(backup) => Reply::Backup(self.backup(backup).await?),
            Request::Check {} => Reply::Check(self.check().await?),
            Request::NodeStatus {}
            | Request::NodesListen {}
            | Request::SignalsFollow(_)
            | Request::Chat(_)
            | Request::SessionCompact(_)
            | Request::WakesFollow {} => {
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
        let config = self.info.config.borrow();
        scope::session_of(key, &agent, &config.session).map_err(bad_agent)
    }

    /// The key that a watcher's key means. One that means no session stays as it is, and is
    /// refused where it is used.
    pub(super) fn watcher(&self, key: SessionKey) -> SessionKey {
        match self.address(key.clone(), None) {
            Ok(address) => address.key().clone(),
            Err(_) => key,
        }
    }

    /// The agent of this name, else the default agent.
    pub(super) fn agent(&self, name: Option<&str>) -> Result<AgentId, ApiError> {
        let config = self.info.config.borrow();
        AgentId::parse(name.unwrap_or(&config.agents.default)).map_err(bad_agent)
    }
}

impl Service {
    /// Sends the replies to a request until they end, or nobody reads them.
    async fn answer_into(self, origin: Origin, request: Request, replies: mpsc::Sender<Reply>) {
        let ended = if request.is_stream() {
            self.stream(&origin, request, &replies).await
        } else {
            match self.reply(&origin, request).await {
                Ok(reply) => {
                    let _ = replies.send(reply).await;
                    Ok(())
                }
                Err(error) => Err(error),
            }
        };
        if let Err(error) = ended {
            let _ = replies.send(Reply::Error(error)).await;
        }
    }

    async fn stream(
        &self,
        origin: &Origin,
        request: Request,
        replies: &mpsc::Sender<Reply>,
    ) -> Result<(), ApiError> {
        match self.authorise(origin, request).await? {
            Request::SignalsFollow(query) => self.signals_follow(query, replies).await,
            Request::NodesListen {} => self.nodes_listen(replies).await,
            Request::Chat(chat) => self.chat(chat, replies).await,
            Request::SessionCompact(compact) => {
                let _ = replies.send(self.session_compact(compact).await?).await;
                Ok(())
            }
            Request::WakesFollow {} => {
                let whose = self.wakes_of(origin).await?;
                self.wakes_follow(&whose, replies).await
            }
            _ => Err(ApiError::new(
                ErrorType::Internal,
                "this request is answered once",
            )),
        }
    }

    /// The replies to a request, until the receiver is dropped.
    pub(super) fn replies_to(&self, origin: Origin, request: Request) -> mpsc::Receiver<Reply> {
        let (replies, receiver) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            let gone = replies.clone();
            tokio::select! {
                () = service.answer_into(origin, request, replies) => {}
                () = gone.closed() => {}
            }
        });
        receiver
    }
}

impl Responder for Service {
    async fn answer(&self, call: Call) -> Reply {
        let origin = Origin::at_socket(call.caller);
        let reply = self.reply(&origin, call.request).await;
        reply.unwrap_or_else(Reply::Error)
    }

    fn follow(&self, call: Call) -> mpsc::Receiver<Reply> {
        self.replies_to(Origin::at_socket(call.caller), call.request)
    }
}

impl SessionInterface for Service {
    fn replies(&self, host: Host, call: Call) -> mpsc::Receiver<Reply> {
        let origin = Origin::Program {
            host,
            caller: call.caller,
        };
        self.replies_to(origin, call.request)
    }
}

fn bad_agent(error: AgentIdError) -> ApiError {
    ApiError::new(ErrorType::InvalidRequest, error.to_string())
}
