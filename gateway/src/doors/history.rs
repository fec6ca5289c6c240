//! The newest part of a session's conversation, for somebody who asks for text.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use tidings_node::history::page_of;
use tidings_node::tail::TailError;
use tidings_protocol::session_api::{
    ApiError, ErrorType, History, HistoryItems, MAX_HISTORY_ITEMS, SessionsHistory,
};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::HistoryPage;
use tidings_protocol::{Catalog, Host, ThreadId};

use super::Service;
use super::catalog::{odd_answer, unreachable};
use crate::sessions::names::sessions_dir;
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
            read_own(path, page(Catalog::Openclaw, thread)).await?
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
        let name = match transcript.session_file {
            Some(file) => file,
            None => format!("{}.jsonl", transcript.session_id),
        };
        let thread = ThreadId::parse(&transcript.session_id);
        let (true, Ok(thread)) = (is_plain_name(&name), thread) else {
            return Err(ApiError::new(
                ErrorType::InvalidData,
                format!("the entry of {session} names no transcript in its agent's directory"),
            )
            .with_hint("mend sessionFile or sessionId in sessions.json"));
        };
        let dir = sessions_dir(&self.info.state_dir, session.agent());
        Ok((dir.join(name), thread))
    }
}

/// An entry can be edited by hand: only a file beside it is read.
fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    )
}

/// The history of a transcript of ours; nothing where nothing was said yet.
async fn read_own(path: PathBuf, page: HistoryPage) -> Result<HistoryItems, ApiError> {
    let read = tokio::task::spawn_blocking(move || match page_of(&path, &page) {
        Err(TailError::Missing { .. }) => Ok(HistoryItems::default()),
        other => other,
    });
    let read = read.await.map_err(|error| {
        ApiError::new(
            ErrorType::Internal,
            format!("the transcript was not read: {error}"),
        )
    })?;
    read.map_err(|error| {
        ApiError::new(ErrorType::InvalidData, error.to_string())
            .with_hint("only regular files are read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_a_file_beside_its_entry() {
        for (name, is_plain) in [
            ("0a1b.jsonl", true),
            ("", false),
            ("..", false),
            (".", false),
            ("../x.jsonl", false),
            ("/etc/passwd", false),
            ("a/b.jsonl", false),
        ] {
            assert_eq!(is_plain_name(name), is_plain, "{name}");
        }
    }
}
