//! Adopting a catalog thread: entry, signal, link and watch in one transaction.

use tidings_protocol::identity::adopted_key;
use tidings_protocol::report::{LinkId, MAX_PATH_BYTES};
use tidings_protocol::session_api::{Adopted, LinkSummary};
use tidings_protocol::signal::Payload;
use tidings_protocol::wire::messages::ThreadOpened;
use tidings_protocol::{Actor, Host, SessionKey, SignalKind};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::nodes::active_node;
use super::random;
use super::sessions::{entries_changed, entry_added};
use super::signals::{NewSignal, Prepared, record};
use super::sql::{int, number, uint};
use super::watches::add_watch;
use crate::awareness::recording;

/// A thread to adopt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAdoption {
    /// The agent whose session it becomes.
    pub agent: AgentId,
    /// Where the file is.
    pub host: Host,
    /// The thread, as its node opened it.
    pub opened: ThreadOpened,
    /// A watcher to register in the same transaction, after the `adopted` signal.
    pub watch_by: Option<SessionKey>,
}

/// An adoption with everything that is made before the transaction.
struct ReadyAdoption {
    adoption: NewAdoption,
    marker: Vec<u8>,
    echo_key: [u8; 32],
    watcher_id: String,
}

impl State {
    /// Adopts a thread: entry, `adopted` signal, link, and the watch that was asked for.
    /// The same source again keeps its key and its marker.
    pub async fn adopt(&self, adoption: NewAdoption) -> Result<Adopted, StateError> {
        let marker = check_opened(&adoption.opened).map_err(StateError::Invalid)?;
        let ready = ReadyAdoption {
            adoption,
            marker,
            echo_key: random::bytes()?,
            watcher_id: random::session_id()?,
        };
        self.write(Priority::Interactive, move |tx| adopt(tx, &ready))
            .await
    }
}

/// Checks what a node says about a thread; answers the marker as it is stored.
fn check_opened(opened: &ThreadOpened) -> Result<Vec<u8>, String> {
    let path = &opened.thread.path;
    if path.len() > MAX_PATH_BYTES || path.chars().any(char::is_control) {
        return Err("the path of a thread is too long or has control characters".to_owned());
    }
    opened.marker.encode().map_err(|error| error.to_string())
}

fn adopt(tx: &mut Tx<'_>, ready: &ReadyAdoption) -> OpResult<Adopted> {
    let adoption = &ready.adoption;
    let thread = &adoption.opened.thread;
    let host_name = active_node(tx, &adoption.host)?;
    let key = adopted_key(
        adoption.agent.as_str(),
        thread.catalog,
        &host_name,
        &thread.thread_id,
    )
    .map_err(|error| StateError::invalid(error.to_string()))?;
    let session = SessionAddress::resolve(key, &adoption.agent)
        .map_err(|error| StateError::invalid(error.to_string()))?;
    let standing = match tx.find_session(&session)? {
        Some(number) => read_summary(tx, adoption, number)?,
        None => None,
    };
    let link = match standing {
        Some(link) => link,
        None => make_link(tx, ready, &session)?,
    };
    let watched = match &adoption.watch_by {
        Some(watcher) => Some(add_watch(tx, watcher, &session, &ready.watcher_id)?),
        None => None,
    };
    Ok(Adopted {
        session_key: session.key().clone(),
        link,
        watched,
    })
}

/// The link that stands already.
fn read_summary(
    tx: &Tx<'_>,
    adoption: &NewAdoption,
    session: i64,
) -> OpResult<Option<LinkSummary>> {
    let thread = &adoption.opened.thread;
    let link = tx.row(
        "SELECT id, path, marker_offset FROM links WHERE session = ?1",
        [session],
        |row| {
            Ok(LinkSummary {
                id: LinkId(number(row, 0)?),
                catalog: thread.catalog,
                host: adoption.host.clone(),
                thread_id: thread.thread_id.clone(),
                path: row.get(1)?,
                offset: number(row, 2)?,
                created: false,
            })
        },
    )?;
    Ok(link)
}

/// Entry, signal and link: what was said before never signals.
fn make_link(
    tx: &mut Tx<'_>,
    ready: &ReadyAdoption,
    session: &SessionAddress,
) -> OpResult<LinkSummary> {
    let NewAdoption { host, opened, .. } = &ready.adoption;
    let (thread, marker) = (&opened.thread, &opened.marker);
    let number = tx.session(session)?;
    adopt_entry(tx, number, opened)?;
    entries_changed(tx, session);
    entry_added(tx, session);
    let adopted = NewSignal {
        payload: Payload {
            catalog: Some(thread.catalog),
            host: Some(host.clone()),
            ..Payload::default()
        },
        ..NewSignal::new(session.clone(), SignalKind::Adopted, Actor::Human)
    };
    record(tx, &Prepared::new(adopted)?)?;
    tx.execute(
        "INSERT INTO links (session, catalog, host, thread_id, path, revision, marker_offset,
                            size, created_at, echo_key, marker)
         VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10)",
        (
            number,
            thread.catalog.as_str(),
            host.to_string(),
            thread.thread_id.as_str(),
            &thread.path,
            int(marker.offset),
            int(thread.size_bytes),
            tx.now(),
            ready.echo_key,
            &ready.marker,
        ),
    )?;
    let link = LinkId(uint(tx.last_row()));
    tx.tell(Effect::LinkChanged {
        host: host.clone(),
        link,
    });
    Ok(LinkSummary {
        id: link,
        catalog: thread.catalog,
        host: host.clone(),
        thread_id: thread.thread_id.clone(),
        path: thread.path.clone(),
        offset: marker.offset,
        created: true,
    })
}

/// The entry of an adopted session: its session id is the thread.
fn adopt_entry(tx: &Tx<'_>, session: i64, opened: &ThreadOpened) -> OpResult<()> {
    let plausible = |at| recording::plausible(at, tx.now());
    let began = plausible(opened.marker.carried.facts.created_at).unwrap_or(tx.now());
    tx.execute(
        "INSERT INTO entries (session, session_id, session_started_at, last_interaction_at,
                              updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (session) DO UPDATE
         SET session_id = excluded.session_id, session_started_at = excluded.session_started_at,
             last_interaction_at = excluded.last_interaction_at, updated_at = excluded.updated_at",
        (
            session,
            opened.thread.thread_id.as_str(),
            began,
            plausible(Some(opened.thread.updated_at)),
            tx.now(),
        ),
    )?;
    Ok(())
}
