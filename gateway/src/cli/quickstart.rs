//! `tidings quickstart`: the main job on this machine in one go.
//!
//! It starts a gateway with its own machine's node agent, adopts the newest thread, watches
//! it, and shows what happens. Everything it prints it has read back through the socket, as
//! any other program would.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidings_node::cli::{CommandError, Note, Output, Page, daemon};
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::discover::{RootArgument, RootPlaces, RootSet, Surroundings, listing};
use tidings_node::held_dir::{HeldDir, Holder};
use tidings_protocol::session_api::{
    Adopt, Adopted, ApiError, CatalogList, CatalogThread, ErrorType, Notice, Reply, Request,
    SessionRef, SessionStatus, SignalEvidence, SignalRow, SignalsQuery, StatusQuery,
};
use tidings_protocol::wire::messages::CatalogPage;
use tidings_protocol::{Catalog, HostName, SessionKey};
use tokio::sync::watch;

use super::client::{Client, answer};
use super::run_options::{DEFAULT_HTTP, QuickstartEnd, QuickstartOptions};
use super::sample;
use super::scratch::Scratch;
use super::session_pages::status_page;
use super::signals_follow::line;
use crate::config::Layers;
use crate::doors::http::HttpOptions;
use crate::{Gateway, GatewayOptions, StartError};

/// The session that watches in the quickstart: a manager's.
const WATCHER: &str = "agent:main:main";
/// How long each step of the quickstart may take.
const STEP_DEADLINE: Duration = Duration::from_secs(20);
/// How many threads are shown.
const SHOWN_THREADS: usize = 10;

/// What `quickstart --once` found, step by step.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    thread: CatalogThread,
    adopted: Adopted,
    watcher: SessionKey,
    signal: SignalRow,
    evidence: Vec<SignalEvidence>,
    notice: Notice,
    delta: SessionStatus,
    elapsed_micros: u64,
}

/// Runs the quickstart.
pub(super) fn run(options: &QuickstartOptions) -> Result<(), CommandError> {
    let output = Output::new(options.output);
    daemon::runtime()?.block_on(async {
        match options.end {
            QuickstartEnd::Once => once(output).await,
            QuickstartEnd::Stay => stay(options, output).await,
        }
    })
}

/// On scratch state: tells the whole story and leaves nothing behind.
async fn once(output: Output) -> Result<(), CommandError> {
    let scratch = Scratch::create()?;
    let root = scratch.path().join("claude");
    let file = sample::write(&root).map_err(cannot_create)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let gateway = Gateway::start(GatewayOptions {
        state_dir: scratch.path().join("state"),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        http: None,
        local_roots: Some(only_sample(root)?),
        config: watch::channel(Arc::default()).1,
        clock: clock.clone(),
    })
    .await
    .map_err(ApiError::from)?;
    let story = within("the quickstart", tell(&gateway, &file, &*clock)).await;
    gateway.stop().await;
    drop(scratch);
    print_story(output, &story?)
}

/// One human line, from the transcript to the watcher.
async fn tell(gateway: &Gateway, file: &Path, clock: &dyn Clock) -> Result<Story, ApiError> {
    gateway.local_node_connected().await?;
    let mut client = Client::of(gateway.state_dir());
    let watcher = SessionKey::parse(WATCHER).expect("a valid key");
    let thread = newest_thread(&mut client)
        .await?
        .into_iter()
        .next()
        .ok_or_else(|| missing("no thread was found in the sample tree"))?;
    let adopted = adopt(&mut client, &thread, &watcher).await?;
    let session = adopted.session_key.clone();
    let before = status(&mut client, &session, None).await?;

    let mut signals = Client::of(gateway.state_dir());
    let stream = signals.connection().await?;
    let follow = SignalsQuery {
        session: Some(session.clone()),
        after: Some(before.state_version),
        limit: None,
    };
    stream.send(&Request::SignalsFollow(follow)).await?;
    let started = clock.monotonic();
    sample::append_human_line(file, clock.now()).map_err(cannot_create)?;
    let signal = match stream.next().await? {
        Some(Reply::Signals(page)) => page.signals.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| missing("the stream of signals ended without one"))?;
    let elapsed = clock.monotonic().saturating_sub(started);

    let why = client
        .ask(
            Request::SignalsWhy {
                sequence: signal.sequence,
            },
            answer!(SignalsWhy),
        )
        .await?;
    let drain = Request::NoticesDrain(SessionRef {
        session_key: watcher.clone(),
        agent: None,
    });
    let notice = client
        .ask(drain, answer!(Notices))
        .await?
        .notices
        .into_iter()
        .next()
        .ok_or_else(|| missing("the watcher has no notice"))?;
    let delta = status(&mut client, &notice.target, Some(notice.changes_since)).await?;
    let events = delta.state_changes.as_ref().map(|changes| &changes.events);
    if events.is_none_or(|events| events.iter().all(|e| e.sequence != signal.sequence)) {
        return Err(missing("the delta does not hold the signal"));
    }
    Ok(Story {
        thread,
        adopted,
        watcher,
        signal,
        evidence: why.evidence,
        notice,
        delta,
        elapsed_micros: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
    })
}

fn print_story(output: Output, story: &Story) -> Result<(), CommandError> {
    output.answer(story, |story| {
        let evidence: Vec<String> = story
            .evidence
            .iter()
            .map(|e| {
                format!(
                    "  {} bytes {}..{} by rule {} on {}\n",
                    e.file, e.byte_start, e.byte_end, e.rule, e.node
                )
            })
            .collect();
        let evidence = evidence.concat();
        let delta = status_page(&story.delta);
        Page::of(format!(
            "A thread of {} was adopted as\n  {}\nand {} watches it.\n\n\
             A person typed one line there. {}.{:03} ms later this was on disk:\n{}\n{evidence}\n\
             At its next turn the watcher is told, once:\n  {}\n\n\
             And asks for the exact difference:\n{}",
            story.thread.catalog,
            story.adopted.session_key,
            story.watcher,
            story.elapsed_micros / 1_000,
            story.elapsed_micros % 1_000,
            line(&story.signal),
            story.notice.text,
            delta.text,
        ))
    })
}

/// On this machine's own state: uses the gateway that runs, or runs one, and shows signals
/// until it is interrupted.
async fn stay(options: &QuickstartOptions, output: Output) -> Result<(), CommandError> {
    let state_dir = &*options.state_dir;
    let stopped = daemon::stop_signal()?;
    let mut client = Client::of(state_dir);
    let gateway = if client.connection().await.is_ok() {
        output.note(&Note::Info(format!(
            "a gateway runs already on {}: using it",
            state_dir.display()
        )));
        None
    } else {
        Some(start_here(state_dir, options.listen, output).await?)
    };
    let shown = async {
        let watched = watch_newest(&mut client, output).await?;
        show_signals(&mut client, watched, output).await
    };
    let end = tokio::select! {
        end = shown => end,
        () = stopped => Ok(()),
    };
    if let Some(gateway) = gateway {
        gateway.stop().await;
    }
    end
}

async fn start_here(
    state_dir: &Path,
    listen: SocketAddr,
    output: Output,
) -> Result<Gateway, CommandError> {
    let roots = RootSet::new(&Surroundings::of_this_process(), &[])
        .map_err(|error| ApiError::new(ErrorType::InvalidRequest, error.to_string()))?;
    let roots = if has_threads(&roots) {
        roots
    } else {
        let root = state_dir.join("sample").join("claude");
        // The directory is ours before the sample stands in it.
        let held = HeldDir::hold(state_dir, Holder::Gateway).map_err(StartError::from);
        let _held = held.map_err(ApiError::from)?;
        let file = sample::write(&root).map_err(cannot_create)?;
        output.note(&Note::Info(format!(
            "no transcripts on this machine yet: a sample stands at {}",
            file.display()
        )));
        only_sample(root)?
    };
    let layers = Layers::of_this_process(state_dir, None);
    let config = layers.load().map_err(ApiError::from)?.config;
    let config = watch::channel(Arc::new(config)).1;
    let options = |http| GatewayOptions {
        state_dir: state_dir.to_owned(),
        listen,
        http,
        local_roots: Some(roots.clone()),
        config: config.clone(),
        clock: Arc::new(SystemClock::new()),
    };
    // Nobody has asked for HTTP: where its port is taken, the rest is shown all the same.
    let gateway = match Gateway::start(options(Some(HttpOptions::at(DEFAULT_HTTP)))).await {
        Err(StartError::Http(error)) => {
            output.note(&Note::Info(format!("{error}: there is no HTTP this time")));
            Gateway::start(options(None)).await
        }
        started => started,
    };
    let gateway = gateway.map_err(ApiError::from)?;
    within(
        "the node agent of this machine",
        gateway.local_node_connected(),
    )
    .await?;
    output.note(&Note::Info(format!(
        "a gateway runs on {} with its state in {}",
        gateway.listen(),
        state_dir.display()
    )));
    Ok(gateway)
}

fn has_threads(roots: &RootSet) -> bool {
    let places = RootPlaces::new(Arc::new(roots.clone()));
    let one = CatalogPage {
        limit: 1,
        ..CatalogPage::default()
    };
    !listing::first_page(&places, &one).threads.is_empty()
}

/// Adopts and watches the newest thread of this machine, and says what to do now.
async fn watch_newest(client: &mut Client, output: Output) -> Result<u64, CommandError> {
    let threads = newest_thread(client).await?;
    output.note(&Note::Info(format!(
        "threads on this machine: {}",
        threads.len()
    )));
    for thread in threads.iter().take(SHOWN_THREADS) {
        output.note(&Note::Info(format!(
            "  {}  {}  {}",
            thread.catalog,
            thread.thread_id,
            thread
                .title
                .as_deref()
                .or(thread.cwd.as_deref())
                .unwrap_or_default()
        )));
    }
    let newest = threads.first().ok_or_else(|| {
        missing("no thread of this machine was found").with_hint(
            "start a session of Claude Code or Codex, or name a directory: \
             tidings gateway run --root claude=DIR",
        )
    })?;
    let watcher = SessionKey::parse(WATCHER).expect("a valid key");
    let adopted = adopt(client, newest, &watcher).await?;
    output.note(&Note::Info(format!(
        "{watcher} watches {}",
        adopted.session_key
    )));
    let speak = if newest.thread_id.as_str() == sample::THREAD {
        format!(
            "in another terminal: {}",
            sample::command_to_append(&newest.path)
        )
    } else {
        format!(
            "say something in that session (its transcript is {})",
            newest.path
        )
    };
    let session = &adopted.session_key;
    for hint in [
        format!("{speak}; signals appear here, Ctrl-C ends"),
        format!("what its watcher is told, once: tidings notices drain {watcher}"),
        format!("what changed since: tidings sessions status {session} --changes-since VERSION"),
        "nodes on other machines: tidings gateway run, then tidings nodes invite".to_owned(),
    ] {
        output.note(&Note::Hint(hint));
    }
    Ok(status(client, &adopted.session_key, None)
        .await?
        .state_version)
}

async fn show_signals(client: &mut Client, after: u64, output: Output) -> Result<(), CommandError> {
    let connection = client.connection().await?;
    let follow = SignalsQuery {
        after: Some(after),
        ..SignalsQuery::default()
    };
    connection.send(&Request::SignalsFollow(follow)).await?;
    while let Some(reply) = connection.next().await? {
        let Reply::Signals(page) = reply else {
            return Err(connection.unexpected().into());
        };
        for signal in &page.signals {
            output.item(signal, line)?;
        }
    }
    Err(missing("the gateway has gone").into())
}

/// The threads of this machine, newest first.
async fn newest_thread(client: &mut Client) -> Result<Vec<CatalogThread>, ApiError> {
    let list = CatalogList {
        host: Some(HostName::LOCAL.to_owned()),
        ..CatalogList::default()
    };
    let found = client
        .ask(Request::CatalogList(list), answer!(CatalogList))
        .await?;
    match found.errors.into_iter().next() {
        Some(error) => Err(ApiError::new(ErrorType::Unavailable, error.message)),
        None => Ok(found.threads),
    }
}

async fn adopt(
    client: &mut Client,
    thread: &CatalogThread,
    watcher: &SessionKey,
) -> Result<Adopted, ApiError> {
    let adopt = Adopt {
        catalog: thread.catalog,
        host: thread.node.to_string(),
        thread_id: thread.thread_id.clone(),
        agent: None,
        watch_by: Some(watcher.clone()),
    };
    client.ask(Request::Adopt(adopt), answer!(Adopt)).await
}

async fn status(
    client: &mut Client,
    session: &SessionKey,
    since: Option<u64>,
) -> Result<SessionStatus, ApiError> {
    let query = StatusQuery {
        session_key: session.clone(),
        agent: None,
        changes_since: since.map(|since| i64::try_from(since).unwrap_or(i64::MAX)),
        reader: None,
    };
    client
        .ask(Request::SessionStatus(query), answer!(SessionStatus))
        .await
}

/// Only the sample tree: nothing of this machine is read.
fn only_sample(root: PathBuf) -> Result<RootSet, ApiError> {
    let sample = RootArgument {
        catalog: Catalog::Claude,
        directory: root,
    };
    RootSet::new(&Surroundings::default(), &[sample])
        .map_err(|error| ApiError::new(ErrorType::Internal, error.to_string()))
}

async fn within<T>(
    what: &str,
    step: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(STEP_DEADLINE, step)
        .await
        .unwrap_or_else(|_| {
            let message = format!(
                "{what} did not come to an end within {} s",
                STEP_DEADLINE.as_secs()
            );
            Err(ApiError::new(ErrorType::Unavailable, message)
                .with_hint("TIDINGS_LOG=debug shows what it waits for"))
        })
}

fn missing(what: &str) -> ApiError {
    ApiError::new(ErrorType::NotFound, what)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn cannot_create(error: tidings_node::private_files::FileError) -> ApiError {
    ApiError::new(ErrorType::CannotCreate, error.to_string())
}
