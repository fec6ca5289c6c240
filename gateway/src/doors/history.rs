//! The newest part of a session's conversation, for somebody who asks for text.

use std::path::PathBuf;
use std::time::Duration;

use tidings_node::private_files::FileError;
use tidings_protocol::session_api::{
    ApiError, ErrorType, History, HistoryItems, MAX_HISTORY_ITEMS, SessionsHistory,
};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::HistoryPage;
use tidings_protocol::{Catalog, Host, ThreadId};

use super::Service;
use super::catalog::{odd_answer, unreachable};
use crate::sessions::artefacts::{Named, transcript_name};
use crate::sessions::names::{sessions_dir, topic_of};
use crate::sessions::transcript::view;
use crate::state::{SessionAddress, StatusRead};

/// How long a node may take to find a transcript and read its end.
const HISTORY_DEADLINE: Duration = Duration::from_secs(30);

impl Service {
    pub(super) async fn sessions_history(
        &self,
        wanted: SessionsHistory,
    ) -> Result<History, ApiError> {
        let session = self.address(wanted.session_key.clone(), wanted.agent.as_deref())?;
        let limit = wanted.limit.unwrap_or(MAX_HISTORY_ITEMS);
        if !(1..=MAX_HISTORY_ITEMS).contains(&limit) {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                format!("a page of history has 1 to {MAX_HISTORY_ITEMS} items"),
            )
            .with_hint("go on with before, as the page says"));
        }
        let read = StatusRead {
            session: session.clone(),
            changes_since: None,
            reader: None,
        };
        let link = self.nodes.state.session_status(read).await?.link;
        let link = match link {
            Some(standing) => self
                .nodes
                .state
                .link(standing.link)
                .await?
                .zip(Some(standing)),
            None => None,
        };
        let page = |catalog, thread_id| HistoryPage {
            catalog,
            thread_id,
            limit,
            before: wanted.before,
            tools: wanted.tools,
        };
        let HistoryItems { items, before } = if let Some((link, standing)) = link {
            let page = page(link.catalog, link.thread_id);
            self.upstream_history(&standing.host, page).await?
        } else {
            let (path, thread) = self.own_transcript(&session).await?;
            let files = self.stores().files;
            let page = page(Catalog::Openclaw, thread);
            view::page(&files, &self.indexes, &path, page)
                .await
                .map_err(|error| unreadable(&error))?
        };
        Ok(History {
            session_key: session.key().clone(),
            items,
            before,
        })
    }

    async fn upstream_history(
        &self,
        host: &Host,
        page: HistoryPage,
    ) -> Result<HistoryItems, ApiError> {
        let node = self.node_of(host).await?;
        let request = Message::HistoryPage(page);
        let answer = self
            .nodes
            .presences
            .request(host, request, HISTORY_DEADLINE)
            .await
            .map_err(|error| unreachable(&node, error))?;
        match answer {
            Message::HistoryItems(items) => Ok(items),
            other => Err(odd_answer(&node, &other)),
        }
    }

    /// Where the transcript of a session of the gateway's own is.
    async fn own_transcript(
        &self,
        session: &SessionAddress,
    ) -> Result<(PathBuf, ThreadId), ApiError> {
        let transcript = self.nodes.state.transcript_of(session.clone()).await?;
        let dir = sessions_dir(&self.info.state_dir, session.agent());
        // An entry can be edited by hand: only a file in the agent's directory is read.
        let named = Named {
            session_id: &transcript.session_id,
            topic: topic_of(session.key()),
            file: transcript.session_file.as_deref(),
        };
        let name = transcript_name(&dir, named);
        let thread = ThreadId::parse(&transcript.session_id);
        let (Some(name), Ok(thread)) = (name, thread) else {
            return Err(ApiError::new(
                ErrorType::InvalidData,
                format!("the entry of {session} names no transcript in its agent's directory"),
            )
            .with_hint("mend sessionFile or sessionId in sessions.json"));
        };
        Ok((dir.join(name), thread))
    }
}

fn unreadable(error: &FileError) -> ApiError {
    ApiError::new(ErrorType::InvalidData, error.to_string())
        .with_hint("only regular files are read")
}
