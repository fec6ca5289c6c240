//! Requests that the nodes answer: which threads there are, and adopting one.

use std::time::Duration;

use tidings_protocol::session_api::{
    Adopt, Adopted, ApiError, CatalogList, CatalogThread, CatalogThreads, ErrorType, HostError,
};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{CatalogPage, MAX_CATALOG_PAGE, OpenThread, Thread};
use tokio::task::JoinSet;

use super::Service;
use super::nodes::find;
use crate::nodes::RequestError;
use crate::state::{NewAdoption, NodeRecord, NodeStanding};

/// The most threads listed of one node: beyond that nobody reads a list.
const MAX_THREADS_PER_NODE: usize = 20_000;
/// The most threads in one list, in equal parts from each node: some tens of megabytes.
const MAX_THREADS: usize = 100_000;
/// How long the list of one node may take; who asked waits a little longer for the whole.
const LISTING_DEADLINE: Duration = Duration::from_secs(45);
/// How long a page of it may take: for the first, a node looks through its directories.
const PAGE_DEADLINE: Duration = Duration::from_secs(20);
/// How long a node may take to read a thread to its end: a long transcript has gigabytes.
const OPEN_DEADLINE: Duration = Duration::from_mins(2);

impl Service {
    pub(super) async fn catalog_list(&self, list: CatalogList) -> Result<CatalogThreads, ApiError> {
        let nodes = match &list.host {
            Some(name) => vec![self.node_named(name).await?],
            None => self.active_nodes().await?,
        };
        let most = (MAX_THREADS / nodes.len().max(1)).clamp(1, MAX_THREADS_PER_NODE);
        let mut asking = JoinSet::new();
        for node in nodes {
            let (service, list) = (self.clone(), list.clone());
            asking.spawn(async move {
                let mut threads = Vec::new();
                let whole = service.threads_of(&node, &list, most, &mut threads).await;
                (node, threads, whole)
            });
        }
        let mut answer = CatalogThreads {
            threads: Vec::new(),
            errors: Vec::new(),
        };
        while let Some(asked) = asking.join_next().await {
            let (node, mut threads, whole) = asked.map_err(|error| {
                ApiError::new(ErrorType::Internal, format!("a look-up failed: {error}"))
            })?;
            answer.threads.append(&mut threads);
            if let Err(error) = whole {
                answer.errors.push(HostError {
                    host: node.host,
                    node: node.host_name,
                    message: error.message,
                });
            }
        }
        answer
            .threads
            .sort_by(|a, b| (b.updated_at, &a.path).cmp(&(a.updated_at, &b.path)));
        answer.errors.sort_by(|a, b| a.node.cmp(&b.node));
        Ok(answer)
    }

    /// Takes over the newest threads of a node, page by page, at most so many. An error says why
    /// they are not all of them.
    async fn threads_of(
        &self,
        node: &NodeRecord,
        list: &CatalogList,
        most: usize,
        threads: &mut Vec<CatalogThread>,
    ) -> Result<(), ApiError> {
        let clock = &*self.nodes.clock;
        let until = clock.monotonic() + LISTING_DEADLINE;
        let mut listing = None;
        loop {
            let request = Message::CatalogPage(CatalogPage {
                catalog: list.catalog,
                offset: u32::try_from(threads.len()).unwrap_or(u32::MAX),
                limit: MAX_CATALOG_PAGE,
                titles: list.titles,
                listing,
            });
            let left = until.saturating_sub(clock.monotonic());
            let answer = self
                .nodes
                .presences
                .request(&node.host, request, left.min(PAGE_DEADLINE))
                .await
                .map_err(|error| match error {
                    RequestError::TimedOut(_) => too_slow(&error, threads.len()),
                    error => ApiError::new(ErrorType::Unavailable, error.to_string()),
                })?;
            let Message::CatalogThreads(page) = answer else {
                return Err(odd_answer(node, &answer));
            };
            let more = page.more && !page.threads.is_empty();
            listing = page.listing;
            threads.extend(self.with_adoptions(node, page.threads).await?);
            if !more || threads.len() >= most {
                let left_out = more || page.left_out > 0;
                return cut(threads, most, left_out);
            }
        }
    }

    async fn with_adoptions(
        &self,
        node: &NodeRecord,
        threads: Vec<Thread>,
    ) -> Result<Vec<CatalogThread>, ApiError> {
        let sources = threads
            .iter()
            .map(|thread| (thread.catalog, thread.thread_id.clone()))
            .collect();
        let adopted = self
            .nodes
            .state
            .adopted_as(node.host.clone(), sources)
            .await?;
        let row =
            |(thread, adopted): (Thread, Option<crate::state::SessionAddress>)| CatalogThread {
                catalog: thread.catalog,
                host: node.host.clone(),
                node: node.host_name.clone(),
                thread_id: thread.thread_id,
                path: thread.path,
                cwd: thread.cwd,
                title: thread.title,
                updated_at: thread.updated_at,
                size_bytes: thread.size_bytes,
                adopted_as: adopted.map(|session| session.key().clone()),
            };
        Ok(threads.into_iter().zip(adopted).map(row).collect())
    }

    pub(super) async fn adopt(&self, adopt: Adopt) -> Result<Adopted, ApiError> {
        let node = self.node_named(&adopt.host).await?;
        let agent = self.agent(adopt.agent.as_deref())?;
        let request = Message::OpenThread(OpenThread {
            catalog: adopt.catalog,
            thread_id: adopt.thread_id,
        });
        let answer = self
            .nodes
            .presences
            .request(&node.host, request, OPEN_DEADLINE)
            .await
            .map_err(|error| unreachable(&node, error))?;
        let Message::ThreadOpened(opened) = answer else {
            return Err(odd_answer(&node, &answer));
        };
        let adoption = NewAdoption {
            agent,
            host: node.host,
            opened: *opened,
            watch_by: adopt.watch_by.map(|watcher| self.watcher(watcher)),
        };
        Ok(self.nodes.state.adopt(adoption).await?)
    }

    /// The active node of this id or host name.
    pub(super) async fn node_named(&self, name: &str) -> Result<NodeRecord, ApiError> {
        find("host", name, &self.active_nodes().await?)
    }

    async fn active_nodes(&self) -> Result<Vec<NodeRecord>, ApiError> {
        let mut nodes = self.nodes.state.nodes().await?;
        nodes.retain(|node| node.standing == NodeStanding::Active);
        Ok(nodes)
    }
}

/// The list is at its end, or long enough. An error where something is `left_out` of it.
fn cut<T>(threads: &mut Vec<T>, most: usize, left_out: bool) -> Result<(), ApiError> {
    let left_out = left_out || threads.len() > most;
    threads.truncate(most);
    if left_out {
        return Err(too_many(threads.len()));
    }
    Ok(())
}

/// There are more threads than one list shows.
fn too_many(shown: usize) -> ApiError {
    ApiError::new(
        ErrorType::InvalidRequest,
        format!(
            "it has more threads than one list shows, and these are its newest {shown}; \
             --catalog and --host narrow the list"
        ),
    )
}

/// The list was not complete in time.
fn too_slow(error: &RequestError, shown: usize) -> ApiError {
    let message = match shown {
        0 => format!("{error}; --catalog narrows the list"),
        shown => format!("{error}, and these are its newest {shown}; --catalog narrows the list"),
    };
    ApiError::new(ErrorType::TryLater, message)
}

/// What a node that cannot be asked means to the caller.
pub(super) fn unreachable(node: &NodeRecord, error: RequestError) -> ApiError {
    if let RequestError::Failed(error) = error {
        return error;
    }
    let message = format!("{} cannot be asked: {error}", node.host_name);
    ApiError::new(ErrorType::Unavailable, message)
        .with_hint("start its agent there: tidings-node run")
}

/// What an answer to another question means to the caller.
pub(super) fn odd_answer(node: &NodeRecord, answer: &Message) -> ApiError {
    let message = format!("{} answered with {}", node.host_name, answer.name());
    ApiError::new(ErrorType::Internal, message)
}

#[test]
fn what_is_left_out_of_a_list_is_told_and_how_to_narrow_it() {
    for (found, left_out, shown) in [(3, false, None), (3, true, Some(3)), (5, false, Some(4))] {
        let mut threads = vec![(); found];
        let error = cut(&mut threads, 4, left_out).err();
        assert_eq!(threads.len(), found.min(4));
        let message = error.map(|error| error.message);
        assert_eq!(message.is_some(), shown.is_some(), "{found} {left_out}");
        let newest = shown.map(|shown: usize| format!("its newest {shown}; --catalog and --host"));
        assert!(
            message
                .unwrap_or_default()
                .contains(&newest.unwrap_or_default())
        );
    }
}
