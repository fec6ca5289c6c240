//! Upstream links as nodes and operators read them.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::report::{Echo, Inconclusive, Link, LinkId, Look};
use tidings_protocol::{Catalog, EpochMs, Host, Marker, SessionKey, ThreadId};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::deliveries::read_deliveries;
use super::error::StateError;
use super::sql::{conversion, int, named, number, parsed};

/// How many links one page has, at most: with markers at their limit, 1 MiB.
pub const MAX_LINKS_PER_PAGE: u32 = 64;

/// One link, for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The link.
    pub link: LinkId,
    /// The session it feeds.
    pub session: SessionKey,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The host that follows it.
    pub host: Host,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// The last report's outcome, or `none`.
    pub last_outcome: String,
    /// When the last report was applied.
    pub last_report_at: Option<EpochMs>,
    /// Bytes known to be unread.
    pub lag_bytes: u64,
    /// Records that no rule knew.
    pub unclassified: u64,
    /// Why its reports are rejected.
    pub blocked: Option<String>,
}

impl State {
    /// The links of a host with an id above `after`, ascending: a page of at most
    /// [`MAX_LINKS_PER_PAGE`]; an empty one is the end.
    pub async fn links_of(&self, host: Host, after: LinkId) -> Result<Vec<Link>, StateError> {
        self.read(move |conn| {
            let mut links: Vec<Link> = conn
                .prepare_cached(
                    "SELECT id, revision, catalog, thread_id, path, marker, echo_key,
                            last_outcome, last_reason FROM links
                     WHERE host = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                )?
                .query_map(
                    (host.to_string(), int(after.0), MAX_LINKS_PER_PAGE),
                    link_row,
                )?
                .collect::<Result<_, _>>()?;
            for link in &mut links {
                link.echo.deliveries = read_deliveries(conn, link.link)?;
            }
            Ok(links)
        })
        .await
    }

    /// One link; `None` when it is gone.
    pub async fn link(&self, link: LinkId) -> Result<Option<Link>, StateError> {
        self.read(move |conn| Ok(read_link(conn, link)?)).await
    }

    /// Every link, oldest first.
    pub async fn link_rows(&self) -> Result<Vec<LinkRow>, StateError> {
        self.read(|conn| {
            let rows = conn
                .prepare_cached(
                    "SELECT link_id, session_key, catalog, host, thread_id,
                            coalesce(last_outcome, 'none'), last_report_at,
                            max(0, size - marker_offset), unclassified, blocked
                     FROM session_upstream_links ORDER BY link_id",
                )?
                .query_map([], operator_row)?
                .collect::<Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// The oldest session that adopted each of these threads of a host, where one did:
    /// that is the session which the thread speaks as.
    pub async fn adopted_as(
        &self,
        host: Host,
        threads: Vec<(Catalog, ThreadId)>,
    ) -> Result<Vec<Option<SessionAddress>>, StateError> {
        self.read(move |conn| {
            let host = host.to_string();
            let mut oldest = conn.prepare_cached(
                "SELECT session_key.session_key, session.agent_id FROM links AS link
                 JOIN sessions AS session ON session.id = link.session
                 JOIN session_keys AS session_key ON session_key.id = session.key
                 WHERE link.host = ?1 AND link.catalog = ?2 AND link.thread_id = ?3
                 ORDER BY link.id LIMIT 1",
            )?;
            let mut adopted = Vec::with_capacity(threads.len());
            for (catalog, thread) in &threads {
                let session = oldest
                    .query_row((&host, catalog.as_str(), thread.as_str()), address_row)
                    .optional()?;
                adopted.push(session);
            }
            Ok(adopted)
        })
        .await
    }

    /// Every session that adopted this thread of a host, the oldest first: the thread speaks
    /// as that one.
    pub async fn sessions_of(
        &self,
        host: Host,
        (catalog, thread): (Catalog, ThreadId),
    ) -> Result<Vec<SessionAddress>, StateError> {
        self.read(move |conn| Ok(read_sessions_of(conn, &host, (catalog, &thread))?))
            .await
    }

    /// Those of the keys under which a session continues a thread on this host.
    pub async fn keys_on_host(
        &self,
        host: Host,
        keys: Vec<SessionKey>,
    ) -> Result<BTreeSet<SessionKey>, StateError> {
        if keys.is_empty() {
            return Ok(BTreeSet::new());
        }
        self.read(move |conn| Ok(read_keys_on_host(conn, &host, keys)?))
            .await
    }
}

pub(crate) fn read_sessions_of(
    conn: &Connection,
    host: &Host,
    (catalog, thread): (Catalog, &ThreadId),
) -> rusqlite::Result<Vec<SessionAddress>> {
    conn.prepare_cached(
        "SELECT session_key.session_key, session.agent_id FROM links AS link
         JOIN sessions AS session ON session.id = link.session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE link.host = ?1 AND link.catalog = ?2 AND link.thread_id = ?3
         ORDER BY link.id",
    )?
    .query_map(
        (host.to_string(), catalog.as_str(), thread.as_str()),
        address_row,
    )?
    .collect()
}

fn read_keys_on_host(
    conn: &Connection,
    host: &Host,
    keys: Vec<SessionKey>,
) -> rusqlite::Result<BTreeSet<SessionKey>> {
    let host = host.to_string();
    let mut found = BTreeSet::new();
    let mut is_there = conn.prepare_cached(
        "SELECT 1 FROM links AS link
         JOIN sessions AS session ON session.id = link.session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE session_key.session_key = ?1 AND link.host = ?2",
    )?;
    for key in keys {
        if is_there.exists((key.as_str(), &host))? {
            found.insert(key);
        }
    }
    Ok(found)
}

/// One link as its node gets it.
pub(crate) fn read_link(conn: &Connection, link: LinkId) -> rusqlite::Result<Option<Link>> {
    let found = conn
        .prepare_cached(
            "SELECT id, revision, catalog, thread_id, path, marker, echo_key,
                    last_outcome, last_reason FROM links
             WHERE id = ?1",
        )?
        .query_row([int(link.0)], link_row)
        .optional()?;
    let Some(mut found) = found else {
        return Ok(None);
    };
    found.echo.deliveries = read_deliveries(conn, link)?;
    Ok(Some(found))
}

fn link_row(row: &Row<'_>) -> rusqlite::Result<Link> {
    let marker = Marker::decode(row.get_ref(5)?.as_blob()?).map_err(|e| conversion(5, e))?;
    Ok(Link {
        link: LinkId(number(row, 0)?),
        revision: number(row, 1)?,
        catalog: named(row, 2, Catalog::parse)?,
        thread_id: parsed(row, 3, ThreadId::parse)?,
        path: row.get(4)?,
        marker,
        echo: Echo {
            key: row.get(6)?,
            ..Echo::default()
        },
        last_look: last_look(row)?,
    })
}

/// What the last applied report said of the file.
fn last_look(row: &Row<'_>) -> rusqlite::Result<Look> {
    let outcome: Option<String> = row.get(7)?;
    match outcome.as_deref() {
        Some("missing") => Ok(Look::Missing),
        Some("inconclusive") => Ok(Look::Inconclusive(named(row, 8, Inconclusive::parse)?)),
        _ => Ok(Look::Good),
    }
}

fn operator_row(row: &Row<'_>) -> rusqlite::Result<LinkRow> {
    Ok(LinkRow {
        link: LinkId(number(row, 0)?),
        session: parsed(row, 1, SessionKey::parse)?,
        catalog: named(row, 2, Catalog::parse)?,
        host: parsed(row, 3, Host::parse)?,
        thread_id: parsed(row, 4, ThreadId::parse)?,
        last_outcome: row.get(5)?,
        last_report_at: row.get(6)?,
        lag_bytes: number(row, 7)?,
        unclassified: number(row, 8)?,
        blocked: row.get(9)?,
    })
}

fn address_row(row: &Row<'_>) -> rusqlite::Result<SessionAddress> {
    let key = parsed(row, 0, SessionKey::parse)?;
    let agent = parsed(row, 1, AgentId::parse)?;
    SessionAddress::resolve(key, &agent).map_err(|error| conversion(0, error))
}
