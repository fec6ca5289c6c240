//! What each request takes: the one table that every door goes by.

use super::{Request, TokenScope};
use crate::SessionKey;

/// Who may make a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Anybody at the door: it is about the answering process itself.
    Public,
    /// Sessions, and the programs that run them, on every machine.
    Session,
    /// The operator, at the gateway's own socket. Never answered over a node's connection.
    Operator,
}

/// The field in which a request says as which session it speaks.
#[derive(Debug)]
pub enum Speaker<'a> {
    /// There is none.
    Nobody,
    /// A program speaks as its own session here, and has to have one.
    Needed(&'a mut Option<SessionKey>),
    /// A program speaks as its own session here, if it has one.
    Welcome(&'a mut Option<SessionKey>),
    /// Only an operator names a session here.
    OperatorOnly(&'a Option<SessionKey>),
}

/// Which sessions a request is about, besides the one that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// None.
    Own,
    /// One.
    Session {
        /// Its key.
        key: &'a SessionKey,
        /// The agent of a bare key.
        agent: Option<&'a str>,
    },
    /// Those that the answer lists: it leaves out what the caller may not see.
    Listed,
    /// All there are, or may be.
    Everything,
}

impl Request {
    /// Which sessions it is about.
    pub fn reach(&self) -> Reach<'_> {
        fn session<'a>(key: &'a SessionKey, agent: Option<&'a str>) -> Reach<'a> {
            Reach::Session { key, agent }
        }
        match self {
            Self::SessionShow(session_ref)
            | Self::SessionDelete(session_ref)
            | Self::SessionArchive(session_ref)
            | Self::SessionUnarchive(session_ref)
            | Self::SessionPin(session_ref)
            | Self::SessionUnpin(session_ref)
            | Self::NoticesList(session_ref)
            | Self::NoticesDrain(session_ref) => {
                session(&session_ref.session_key, session_ref.agent.as_deref())
            }
            Self::SessionStatus(query) => session(&query.session_key, query.agent.as_deref()),
            Self::SessionsHistory(history) => {
                session(&history.session_key, history.agent.as_deref())
            }
            Self::SessionsSend(send) => session(&send.session_key, send.agent.as_deref()),
            Self::RunFinished(run) => session(&run.session_key, run.agent.as_deref()),
            Self::GoalSet(set) => session(&set.session_key, set.agent.as_deref()),
            Self::GoalClear(clear) => session(&clear.session_key, clear.agent.as_deref()),
            Self::SessionCompact(compact) => {
                session(&compact.session_key, compact.agent.as_deref())
            }
            Self::WatchAdd(pair) => session(&pair.target, pair.target_agent.as_deref()),
            Self::SessionsList(_) => Reach::Listed,
            Self::CatalogList(_)
            | Self::Adopt(_)
            | Self::Status {}
            | Self::SignalsList(_)
            | Self::SignalsFollow(_)
            | Self::SignalsWhy { .. }
            | Self::SignalsRecord(_)
            | Self::AgentsList {}
            | Self::AgentsDelete(_)
            | Self::NodesInvite(_)
            | Self::NodesList {}
            | Self::NodesShow(_)
            | Self::NodesRename(_)
            | Self::NodesRevoke(_)
            | Self::NodesRemove(_)
            | Self::NodesListen {}
            | Self::NodesApprove(_)
            | Self::NodesReject(_)
            | Self::CertIssue(_)
            | Self::CertRenew(_)
            | Self::CertRevoke(_)
            | Self::CertInspect(_)
            | Self::TokenCreate(_)
            | Self::TokenList {}
            | Self::TokenRevoke(_)
            | Self::SessionsCleanup(_)
            | Self::CronRunBegin(_)
            | Self::Chat(_)
            | Self::CronRunsList(_)
            | Self::Backup(_)
            | Self::Check {} => Reach::Everything,
            // A watch that stands may always end.
            Self::WatchRemove(_)
            | Self::WatchList(_)
            | Self::WakesFollow {}
            | Self::SessionsSpawn(_)
            | Self::SessionReset(_)
            | Self::MessageRecorded(_)
            | Self::CompactionRecorded(_)
            | Self::TurnBegin(_)
            | Self::TurnConfirm(_)
            | Self::TurnRelease(_)
            | Self::TurnEnd(_)
            | Self::HookEvent(_)
            | Self::NodeStatus {} => Reach::Own,
        }
    }

    /// Who may make it.
    pub fn privilege(&self) -> Privilege {
        match self {
            Self::NodeStatus {} => Privilege::Public,
            Self::CatalogList(_)
            | Self::Adopt(_)
            | Self::SessionsList(_)
            | Self::SessionShow(_)
            | Self::SessionStatus(_)
            | Self::SessionsHistory(_)
            | Self::SessionsSend(_)
            | Self::SessionsSpawn(_)
            | Self::RunFinished(_)
            | Self::GoalSet(_)
            | Self::GoalClear(_)
            | Self::MessageRecorded(_)
            | Self::CompactionRecorded(_)
            | Self::SessionReset(_)
            | Self::WatchAdd(_)
            | Self::WatchRemove(_)
            | Self::WatchList(_)
            | Self::TurnBegin(_)
            | Self::TurnConfirm(_)
            | Self::TurnRelease(_)
            | Self::TurnEnd(_)
            | Self::HookEvent(_)
            | Self::CronRunBegin(_)
            | Self::WakesFollow {} => Privilege::Session,
            // Who talks to a session is a person; the log tells of every session, and a drain
            // takes what is another's.
            Self::Status {}
            | Self::NodesInvite(_)
            | Self::NodesListen {}
            | Self::NodesApprove(_)
            | Self::NodesReject(_)
            | Self::NodesList {}
            | Self::NodesShow(_)
            | Self::NodesRename(_)
            | Self::NodesRevoke(_)
            | Self::NodesRemove(_)
            | Self::CertIssue(_)
            | Self::CertRenew(_)
            | Self::CertRevoke(_)
            | Self::CertInspect(_)
            | Self::TokenCreate(_)
            | Self::TokenList {}
            | Self::TokenRevoke(_)
            | Self::SessionArchive(_)
            | Self::SessionUnarchive(_)
            | Self::SessionPin(_)
            | Self::SessionUnpin(_)
            | Self::NoticesList(_)
            | Self::NoticesDrain(_)
            | Self::SignalsList(_)
            | Self::SignalsFollow(_)
            | Self::SignalsWhy { .. }
            | Self::SignalsRecord(_)
            | Self::Chat(_)
            | Self::SessionCompact(_)
            | Self::SessionDelete(_)
            | Self::AgentsList {}
            | Self::AgentsDelete(_)
            | Self::SessionsCleanup(_)
            | Self::CronRunsList(_)
            | Self::Backup(_)
            | Self::Check {} => Privilege::Operator,
        }
    }

    /// What a token has to permit for it. A token is an operator's and no session's: so it may
    /// read the log, which tells of every session, and needs [`TokenScope::Admin`] only for
    /// what is the operator's alone at every door.
    pub fn scope(&self) -> TokenScope {
        match self {
            // To have read what a turn was told of confirms it.
            Self::SessionStatus(query) if query.reader.is_some() => TokenScope::Write,
            Self::Status {}
            | Self::NodeStatus {}
            | Self::CatalogList(_)
            | Self::SessionsList(_)
            | Self::SessionShow(_)
            | Self::SessionStatus(_)
            | Self::SessionsHistory(_)
            | Self::WatchList(_)
            | Self::NoticesList(_)
            | Self::CronRunsList(_)
            | Self::WakesFollow {}
            | Self::SignalsList(_)
            | Self::SignalsFollow(_)
            | Self::SignalsWhy { .. } => TokenScope::Read,
            Self::Adopt(_)
            | Self::SessionArchive(_)
            | Self::SessionUnarchive(_)
            | Self::SessionPin(_)
            | Self::SessionUnpin(_)
            | Self::SessionsSend(_)
            | Self::SessionsSpawn(_)
            | Self::RunFinished(_)
            | Self::GoalSet(_)
            | Self::GoalClear(_)
            | Self::MessageRecorded(_)
            | Self::CompactionRecorded(_)
            | Self::SessionReset(_)
            | Self::Chat(_)
            | Self::SessionCompact(_)
            | Self::CronRunBegin(_)
            | Self::WatchAdd(_)
            | Self::WatchRemove(_)
            | Self::NoticesDrain(_)
            | Self::TurnBegin(_)
            | Self::TurnConfirm(_)
            | Self::TurnRelease(_)
            | Self::TurnEnd(_)
            | Self::HookEvent(_)
            | Self::SignalsRecord(_) => TokenScope::Write,
            Self::NodesInvite(_)
            | Self::NodesList {}
            | Self::NodesShow(_)
            | Self::NodesRename(_)
            | Self::NodesRevoke(_)
            | Self::NodesRemove(_)
            | Self::NodesListen {}
            | Self::NodesApprove(_)
            | Self::NodesReject(_)
            | Self::CertIssue(_)
            | Self::CertRenew(_)
            | Self::CertRevoke(_)
            | Self::CertInspect(_)
            | Self::TokenCreate(_)
            | Self::TokenList {}
            | Self::TokenRevoke(_)
            | Self::SessionDelete(_)
            | Self::AgentsList {}
            | Self::AgentsDelete(_)
            | Self::SessionsCleanup(_)
            | Self::Backup(_)
            | Self::Check {} => TokenScope::Admin,
        }
    }

    /// As which session it speaks.
    pub fn speaker(&mut self) -> Speaker<'_> {
        match self {
            Self::TurnBegin(speaker) | Self::TurnEnd(speaker) | Self::SessionReset(speaker) => {
                Speaker::Needed(&mut speaker.session_key)
            }
            Self::MessageRecorded(message) => Speaker::Needed(&mut message.session_key),
            Self::CompactionRecorded(compaction) => Speaker::Needed(&mut compaction.session_key),
            Self::SessionsSend(send) => Speaker::Needed(&mut send.sender),
            Self::SessionsSpawn(spawn) => Speaker::Needed(&mut spawn.parent),
            Self::RunFinished(run) => Speaker::Needed(&mut run.caller),
            Self::GoalSet(set) => Speaker::Needed(&mut set.caller),
            Self::GoalClear(clear) => Speaker::Needed(&mut clear.caller),
            Self::WatchAdd(pair) | Self::WatchRemove(pair) => Speaker::Needed(&mut pair.watcher),
            Self::WatchList(filter) => Speaker::Needed(&mut filter.watcher),
            Self::SessionStatus(query) => Speaker::Welcome(&mut query.reader),
            Self::Adopt(adopt) => Speaker::OperatorOnly(&adopt.watch_by),
            // A hook speaks as the conversation that it fired in, and names no session.
            Self::HookEvent(_)
            // A lease is whoever's who has its token.
            | Self::TurnConfirm(_)
            | Self::TurnRelease(_)
            | Self::CatalogList(_)
            | Self::SessionsList(_)
            | Self::SessionShow(_)
            | Self::SessionsHistory(_)
            | Self::WakesFollow {}
            | Self::NodeStatus {}
            | Self::Status {}
            | Self::NodesInvite(_)
            | Self::NodesListen {}
            | Self::NodesApprove(_)
            | Self::NodesReject(_)
            | Self::NodesList {}
            | Self::NodesShow(_)
            | Self::NodesRename(_)
            | Self::NodesRevoke(_)
            | Self::NodesRemove(_)
            | Self::CertIssue(_)
            | Self::CertRenew(_)
            | Self::CertRevoke(_)
            | Self::CertInspect(_)
            | Self::TokenCreate(_)
            | Self::TokenList {}
            | Self::TokenRevoke(_)
            | Self::SessionArchive(_)
            | Self::SessionUnarchive(_)
            | Self::SessionPin(_)
            | Self::SessionUnpin(_)
            | Self::NoticesList(_)
            | Self::NoticesDrain(_)
            | Self::SignalsList(_)
            | Self::SignalsFollow(_)
            | Self::SignalsWhy { .. }
            | Self::SignalsRecord(_)
            | Self::Chat(_)
            | Self::SessionCompact(_)
            | Self::SessionDelete(_)
            | Self::AgentsList {}
            | Self::AgentsDelete(_)
            | Self::SessionsCleanup(_)
            | Self::CronRunBegin(_)
            | Self::CronRunsList(_)
            | Self::Backup(_)
            | Self::Check {} => Speaker::Nobody,
        }
    }

    /// True for a request that is answered again and again, until either side ends it; or once,
    /// whenever that is.
    pub fn is_stream(&self) -> bool {
        matches!(
            self,
            Self::SignalsFollow(_)
                | Self::WakesFollow {}
                | Self::NodesListen {}
                | Self::Chat(_)
                | Self::SessionCompact(_)
        )
    }

    /// True for a request whose caller becomes a session by making it.
    pub fn adopts_caller(&self) -> bool {
        matches!(
            self,
            Self::WatchAdd(_) | Self::SessionsSend(_) | Self::SessionsSpawn(_)
        )
    }
}
