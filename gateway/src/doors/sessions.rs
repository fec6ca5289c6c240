//! Requests about sessions and watches.

use tidings_protocol::session_api::{
    ApiError, MAX_SESSIONS_PER_PAGE, Notices, Reply, SessionEntry, SessionRef, SessionStatus,
    Sessions, SessionsList, StatusQuery, WatchPair, WatchRemoved, Watched,
};

use super::Service;
use super::origin::named;
use crate::state::{SessionMark, SessionsPage, Shelf, StatusRead, VisibleSessions};
use crate::upstream::trust::{LinkStanding, NodePresence, upstream_status};

impl Service {
    pub(super) async fn sessions_list(
        &self,
        list: SessionsList,
        visible: Option<VisibleSessions>,
    ) -> Result<Sessions, ApiError> {
        let host = match list.host {
            Some(name) => Some(self.node_named(&name).await?.host),
            None => None,
        };
        let agent = match list.agent {
            Some(name) => Some(self.agent(Some(&name))?),
            None => None,
        };
        let since = |minutes: u32| self.nodes.clock.now() - i64::from(minutes) * 60_000;
        let page = SessionsPage {
            visible,
            agent,
            kind: list.kind,
            main_key: self.info.config.borrow().session.main_key.to_lowercase(),
            host,
            updated_since: list.active_minutes.map(since),
            shelf: if list.archived {
                Shelf::Archived
            } else {
                Shelf::Active
            },
            limit: list
                .limit
                .unwrap_or(MAX_SESSIONS_PER_PAGE)
                .min(MAX_SESSIONS_PER_PAGE),
            offset: list.offset,
        };
        Ok(self.nodes.state.sessions(page).await?)
    }

    pub(super) async fn session_show(&self, session: SessionRef) -> Result<SessionEntry, ApiError> {
        let address = self.address(session.session_key, session.agent.as_deref())?;
        Ok(self.nodes.state.session_entry(address).await?)
    }

    /// Marks a session; answers its entry as it stands then.
    pub(super) async fn session_mark(
        &self,
        session: SessionRef,
        mark: SessionMark,
    ) -> Result<Reply, ApiError> {
        let address = self.address(session.session_key, session.agent.as_deref())?;
        self.nodes.state.mark_session(address.clone(), mark).await?;
        let entry = self.nodes.state.session_entry(address).await?;
        Ok(Reply::SessionShow(Box::new(entry)))
    }

    pub(super) async fn session_status(
        &self,
        query: StatusQuery,
    ) -> Result<SessionStatus, ApiError> {
        let session = self.address(query.session_key, query.agent.as_deref())?;
        let read = StatusRead {
            session: session.clone(),
            changes_since: query.changes_since,
            reader: query.reader.map(|reader| self.watcher(reader)),
        };
        let answer = self.nodes.state.session_status(read).await?;
        let presence = match &answer.link {
            Some(link) => self.node_presence(link).await,
            None => NodePresence::Away,
        };
        Ok(SessionStatus {
            upstream: upstream_status(session.key(), answer.link.as_ref(), presence),
            ..answer.status
        })
    }

    /// What the memory of connected nodes says about a link's node.
    async fn node_presence(&self, link: &LinkStanding) -> NodePresence {
        let Some(seen) = self.nodes.presences.seen(&link.host) else {
            return NodePresence::Away;
        };
        if seen.stalled {
            return NodePresence::Away;
        }
        let watched_at = match self.nodes.state.link(link.link).await {
            Ok(Some(link)) => seen.observed_at(link.link, &link.path),
            Ok(None) | Err(_) => None,
        };
        NodePresence::Here { watched_at }
    }

    pub(super) async fn watch_add(&self, pair: WatchPair) -> Result<Watched, ApiError> {
        let target = self.address(pair.target, pair.target_agent.as_deref())?;
        let watcher = self.watcher(named(pair.watcher)?);
        self.adopt_named(&target).await?;
        Ok(self.nodes.state.watch_add(watcher, target).await?)
    }

    pub(super) async fn watch_remove(&self, pair: WatchPair) -> Result<WatchRemoved, ApiError> {
        let target = self.address(pair.target, pair.target_agent.as_deref())?;
        let watcher = self.watcher(named(pair.watcher)?);
        Ok(self.nodes.state.watch_remove(watcher, target).await?)
    }

    pub(super) async fn notices_list(&self, watcher: SessionRef) -> Result<Notices, ApiError> {
        let watcher = self.watcher(watcher.session_key);
        Ok(self.nodes.state.notices(watcher).await?)
    }

    pub(super) async fn notices_drain(&self, watcher: SessionRef) -> Result<Notices, ApiError> {
        let watcher = self.watcher(watcher.session_key);
        Ok(self.nodes.state.drain(watcher).await?)
    }
}
