//! The session interface: one set of typed requests behind every door.
//!
//! Field names are camelCase on every door and in `--json`; times are epoch milliseconds.
//! A stream (`signals_follow`, `wakes_follow`) answers with many replies on one connection.

mod asking;
mod caller;
mod certificates;
mod chat;
mod endings;
mod error;
mod goals;
mod history;
mod hooks;
mod inputs;
mod kind;
mod names;
mod node;
mod nodes;
mod parts;
mod privilege;
mod replies;
mod sending;
mod store;
mod text;
mod tokens;
mod turns;
mod upkeep;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use asking::{
    Adopt, CatalogList, NodesInvite, SessionRef, SessionsList, SignalsQuery, SignalsRecord,
    SpeakerRef, StatusQuery, WatchFilter, WatchPair,
};
pub use caller::{Call, Caller, Introduction, Said};
pub use certificates::{
    CertificateIssued, CertificateKind, CertificateRef, CertificateRow, CertificateState,
    Certificates, CertificatesRevoked, IssueCertificate, RenewCertificate,
};
pub use chat::{Chat, ChatDone, ChatNews, ChatUsage, SessionCompact, SessionCompacted};
pub use endings::{AgentDeleted, AgentRef, AgentRow, Agents, SessionDeleted, SessionResetDone};
pub use error::{ApiError, ErrorType};
pub use goals::{GoalChanged, GoalClear, GoalSet};
pub use history::{
    History, HistoryItem, HistoryItems, HistoryRole, MAX_HISTORY_BYTES, MAX_HISTORY_ITEMS,
    MAX_HISTORY_TEXT_CHARS, SessionsHistory,
};
pub use hooks::{HookAnswer, HookEvent, HookMoment};
pub use inputs::{CompactionRecorded, CompactionTrigger, InputProvenance, MessageRecorded};
pub use kind::SessionKind;
pub use node::{NodeLinkStatus, NodeStatus, RootStatus};
pub use nodes::{
    AuditEntry, Invitation, MAX_NODE_NAME_CHARS, Node, NodeRef, NodeRemoved, NodeState, Nodes,
    NodesApprove, NodesRename, OpenInvitation, PairingEvent, PairingNews, PairingRef,
    PairingRejected, PairingRequest,
};
pub use privilege::{Privilege, Reach, Speaker};
pub use replies::{
    Adopted, CatalogThread, CatalogThreads, Counts, GatewayStatus, HostError, LinkStatus,
    LinkSummary, Notice, Notices, Recorded, SessionEntry, SessionRow, SessionStatus, Sessions,
    SignalEvidence, SignalRow, SignalWhy, Signals, StateChange, StateChanges, Status,
    UpstreamState, UpstreamStatus, Watch, WatchRemoved, Watched, Watches,
};
pub use sending::{
    ChildRuntime, RunEnd, RunEnded, RunFinished, Sent, SessionsSend, SessionsSpawn, Spawned,
};
pub use store::{
    CleanedStore, CleanedUp, CleanupAction, CleanupAgents, CleanupDoing, CronRun, CronRunBegin,
    CronRunRow, CronRuns, CronRunsList, MAX_CRON_RUNS_PER_PAGE, SessionsCleanup,
};
pub use text::PrivateText;
pub use tokens::{
    MAX_TOKEN_NAME_CHARS, TokenCreate, TokenCreated, TokenRef, TokenRow, TokenScope, TokenState,
    Tokens,
};
pub use turns::{LeaseRef, TurnBegun, TurnEnded, TurnMessage, TurnSettled, Wake, Wakes};
pub use upkeep::{BackedUp, Backup, Finding, Findings, Severity};

/// The most signals one `signals_list` answers.
pub const MAX_SIGNALS_PER_PAGE: u32 = 10_000;
/// How many signals `signals_list` answers where nobody says.
pub const DEFAULT_SIGNALS_PER_PAGE: u32 = 100;
/// The most events one `session_status` answers.
pub const MAX_CHANGES: usize = 200;
/// The most rows one `sessions_list` answers.
pub const MAX_SESSIONS_PER_PAGE: u32 = 200;

/// What a caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The gateway at a glance.
    Status {},
    /// The node agent at a glance; only its own socket answers.
    NodeStatus {},
    /// A join link for one new machine.
    NodesInvite(NodesInvite),
    /// Every node.
    NodesList {},
    /// One node.
    NodesShow(NodeRef),
    /// Changes a node's display name.
    NodesRename(NodesRename),
    /// Turns a node's key away for good.
    NodesRevoke(NodeRef),
    /// Takes a node off the list; its machine may pair again.
    NodesRemove(NodeRef),
    /// Lets machines ask to become nodes while the answers are read, ten minutes at most.
    NodesListen {},
    /// Makes a machine that asks a node.
    NodesApprove(NodesApprove),
    /// Tells a machine that asks no.
    NodesReject(PairingRef),
    /// Makes a node of a signing request.
    CertIssue(IssueCertificate),
    /// Makes a new certificate for a node's key.
    CertRenew(RenewCertificate),
    /// Revokes one certificate, or all that a node has.
    CertRevoke(CertificateRef),
    /// The certificates of the gateway and of its nodes.
    CertInspect(CertificateRef),
    /// Makes a token for the HTTP door.
    TokenCreate(TokenCreate),
    /// The tokens for the HTTP door.
    TokenList {},
    /// Ends a token.
    TokenRevoke(TokenRef),
    /// Threads on all machines.
    CatalogList(CatalogList),
    /// Takes a catalog thread into the gateway under a session key.
    Adopt(Adopt),
    /// Sessions, pinned and newest first.
    SessionsList(SessionsList),
    /// One session's entry.
    SessionShow(SessionRef),
    /// Takes a session out of the active lists; its transcript stays, its pin goes.
    SessionArchive(SessionRef),
    /// Brings a session back into the active lists.
    SessionUnarchive(SessionRef),
    /// Puts an active session first in the lists.
    SessionPin(SessionRef),
    /// Puts a session in its place again.
    SessionUnpin(SessionRef),
    /// One session's state version, and what changed since another.
    SessionStatus(StatusQuery),
    /// The newest part of a session's conversation.
    SessionsHistory(SessionsHistory),
    /// Sends a session a message.
    SessionsSend(SessionsSend),
    /// Makes a child session with a task.
    SessionsSpawn(SessionsSpawn),
    /// Says that a run has ended.
    RunFinished(RunFinished),
    /// Gives a session a goal.
    GoalSet(GoalSet),
    /// Takes a session's goal away.
    GoalClear(GoalClear),
    /// Says that a session got an input.
    MessageRecorded(MessageRecorded),
    /// Says that a session's history was compacted.
    CompactionRecorded(CompactionRecorded),
    /// Begins a session's conversation anew; its own watches end.
    SessionReset(SpeakerRef),
    /// Says something to a session that the gateway runs.
    Chat(Chat),
    /// Has a session's history compacted.
    SessionCompact(SessionCompact),
    /// Removes a session with everything that is its own.
    SessionDelete(SessionRef),
    /// The agents that have sessions.
    AgentsList {},
    /// Removes an agent with all that is its own.
    AgentsDelete(AgentRef),
    /// Looks after the session stores.
    SessionsCleanup(SessionsCleanup),
    /// Begins a run of a cron job.
    CronRunBegin(CronRunBegin),
    /// Runs of cron jobs, newest first.
    CronRunsList(CronRunsList),
    /// Registers a watch at the target's head.
    WatchAdd(WatchPair),
    /// Ends a watch.
    WatchRemove(WatchPair),
    /// Watches.
    WatchList(WatchFilter),
    /// The notices pending for a watcher, moving nothing.
    NoticesList(SessionRef),
    /// Takes the notices pending for a watcher.
    NoticesDrain(SessionRef),
    /// Begins a turn of a session: leases its notices and messages.
    TurnBegin(SpeakerRef),
    /// Confirms what a turn took.
    TurnConfirm(LeaseRef),
    /// Gives back what a turn took.
    TurnRelease(LeaseRef),
    /// Ends a turn of a session.
    TurnEnd(SpeakerRef),
    /// Says that a hook of an agent program fired in the caller's conversation.
    HookEvent(HookEvent),
    /// Each notice as it becomes available to somebody.
    WakesFollow {},
    /// A page of the log, ascending.
    SignalsList(SignalsQuery),
    /// The log from a sequence on, as it grows.
    SignalsFollow(SignalsQuery),
    /// Why an upstream signal was recorded.
    SignalsWhy {
        /// The signal.
        sequence: u64,
    },
    /// Records a signal by hand.
    SignalsRecord(SignalsRecord),
    /// Copies the state database to a new file.
    Backup(Backup),
    /// Looks for what is wrong.
    Check {},
}

/// The answer to a [`Request`]: the reply of the same name, or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To `status`.
    Status(Box<Status>),
    /// To `node_status`.
    NodeStatus(Box<NodeStatus>),
    /// To `nodes_invite`.
    NodesInvite(Invitation),
    /// To `nodes_list`.
    NodesList(Nodes),
    /// To `nodes_show`, `nodes_rename`, `nodes_revoke` and `nodes_approve`: the node as it stands now.
    Node(Box<Node>),
    /// To `nodes_remove`.
    NodesRemove(NodeRemoved),
    /// To `nodes_listen`, again and again.
    NodesListen(PairingNews),
    /// To `nodes_reject`.
    NodesReject(PairingRejected),
    /// To `cert_issue` and `cert_renew`.
    CertIssued(Box<CertificateIssued>),
    /// To `cert_revoke`.
    CertRevoked(CertificatesRevoked),
    /// To `cert_inspect`.
    CertInspect(Certificates),
    /// To `token_create`.
    TokenCreate(TokenCreated),
    /// To `token_list`.
    TokenList(Tokens),
    /// To `token_revoke`.
    TokenRevoke(TokenRow),
    /// To `catalog_list`.
    CatalogList(CatalogThreads),
    /// To `adopt`.
    Adopt(Adopted),
    /// To `sessions_list`.
    SessionsList(Sessions),
    /// To `session_show`, and to what marks a session: the entry as it stands now.
    SessionShow(Box<SessionEntry>),
    /// To `session_status`.
    SessionStatus(SessionStatus),
    /// To `sessions_history`.
    SessionsHistory(History),
    /// To `sessions_send`.
    SessionsSend(Sent),
    /// To `sessions_spawn`.
    SessionsSpawn(Spawned),
    /// To `run_finished`.
    RunFinished(RunEnded),
    /// To `goal_set` and `goal_clear`.
    Goal(GoalChanged),
    /// To `message_recorded` and `compaction_recorded`.
    Recorded(Recorded),
    /// To `session_reset`.
    SessionReset(SessionResetDone),
    /// To `chat`, again and again until the turn is over.
    Chat(ChatNews),
    /// To `session_compact`.
    SessionCompact(SessionCompacted),
    /// To `session_delete`.
    SessionDelete(SessionDeleted),
    /// To `agents_list`.
    AgentsList(Agents),
    /// To `agents_delete`.
    AgentsDelete(AgentDeleted),
    /// To `sessions_cleanup`.
    SessionsCleanup(CleanedUp),
    /// To `cron_run_begin`.
    CronRunBegin(CronRun),
    /// To `cron_runs_list`.
    CronRunsList(CronRuns),
    /// To `watch_add`.
    WatchAdd(Watched),
    /// To `watch_remove`.
    WatchRemove(WatchRemoved),
    /// To `watch_list`.
    WatchList(Watches),
    /// To `notices_list` and `notices_drain`.
    Notices(Notices),
    /// To `turn_begin`.
    TurnBegin(TurnBegun),
    /// To `turn_confirm` and `turn_release`.
    TurnSettled(TurnSettled),
    /// To `turn_end`.
    TurnEnd(TurnEnded),
    /// To `hook_event`.
    HookEvent(HookAnswer),
    /// To `wakes_follow`, again and again.
    Wakes(Wakes),
    /// To `signals_list`; and, again and again, to `signals_follow`.
    Signals(Signals),
    /// To `signals_why`.
    SignalsWhy(SignalWhy),
    /// To `signals_record`.
    SignalsRecord(Recorded),
    /// To `backup`.
    Backup(BackedUp),
    /// To `check`.
    Check(Findings),
    /// A part of a reply that is larger than a frame; more follows.
    Part(Box<Reply>),
    /// To anything.
    Error(ApiError),
}
