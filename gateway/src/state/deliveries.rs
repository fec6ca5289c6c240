//! What was handed out to an upstream thread: digests by which its node tells the echo from
//! a human's words.
//!
//! A delivery raises the revision of the thread's links. So a report that was judged
//! without knowing of it is stale, whatever reached the node first, and is judged again.

use rusqlite::{Connection, Row};
use tidings_node::classify::echo_digest;
use tidings_protocol::Host;
use tidings_protocol::report::{Delivery, LinkId, MAX_ECHO_DIGESTS};

use super::effect::Effect;
use super::engine::{OpResult, Tx};
use super::messages::QueuedMessage;
use super::sql::{int, number, parsed};

/// A link as a delivery needs it.
pub(crate) struct EchoLink {
    link: LinkId,
    host: Host,
    key: Vec<u8>,
}

/// The links on the thread that a session continues; none for a session that continues none.
pub(crate) fn links_of_thread(tx: &Tx<'_>, session: i64) -> OpResult<Vec<EchoLink>> {
    let links = tx.rows(
        "SELECT link.id, link.host, link.echo_key FROM links AS own
         JOIN links AS link ON link.host = own.host AND link.catalog = own.catalog
                           AND link.thread_id = own.thread_id
         WHERE own.session = ?1",
        [session],
        |row| {
            Ok(EchoLink {
                link: LinkId(number(row, 0)?),
                host: parsed(row, 1, Host::parse)?,
                key: row.get(2)?,
            })
        },
    )?;
    Ok(links)
}

/// Notes that these messages are handed out to the thread of these links.
pub(crate) fn note_deliveries(
    tx: &mut Tx<'_>,
    links: &[EchoLink],
    messages: &[QueuedMessage],
) -> OpResult<()> {
    if messages.is_empty() {
        return Ok(());
    }
    for EchoLink { link, host, key } in links {
        for message in messages {
            tx.execute(
                "INSERT INTO deliveries (link, message, digest, delivered_at)
                 VALUES (?1, ?2, ?3, ?4)",
                (
                    int(link.0),
                    int(message.id),
                    echo_digest(key, &[&message.body]),
                    tx.now(),
                ),
            )?;
        }
        forget_older(tx, *link)?;
        tx.execute(
            "UPDATE links SET revision = revision + 1 WHERE id = ?1",
            [int(link.0)],
        )?;
        tx.tell(Effect::LinkChanged {
            host: host.clone(),
            link: *link,
        });
    }
    Ok(())
}

/// Keeps what can still suppress a turn.
fn forget_older(tx: &Tx<'_>, link: LinkId) -> OpResult<()> {
    tx.execute(
        "DELETE FROM deliveries WHERE link = ?1 AND id NOT IN (
             SELECT id FROM deliveries WHERE link = ?1 AND echoed_at IS NULL
             ORDER BY id DESC LIMIT ?2)",
        (int(link.0), int(MAX_ECHO_DIGESTS as u64)),
    )?;
    Ok(())
}

/// Notes which deliveries came back: they suppress nothing more.
pub(crate) fn note_echoes(tx: &Tx<'_>, link: i64, echoed: &[u64]) -> OpResult<()> {
    for delivery in echoed {
        tx.execute(
            "UPDATE deliveries SET echoed_at = ?3 WHERE link = ?1 AND id = ?2",
            (link, int(*delivery), tx.now()),
        )?;
    }
    Ok(())
}

/// The newest deliveries that have not come back as an echo yet, oldest first: each
/// suppresses one turn.
pub(crate) fn read_deliveries(conn: &Connection, link: LinkId) -> rusqlite::Result<Vec<Delivery>> {
    let mut newest: Vec<Delivery> = conn
        .prepare_cached(
            "SELECT id, digest, delivered_at FROM deliveries
             WHERE link = ?1 AND echoed_at IS NULL ORDER BY id DESC LIMIT ?2",
        )?
        .query_map((int(link.0), int(MAX_ECHO_DIGESTS as u64)), delivery_row)?
        .collect::<Result<_, _>>()?;
    newest.reverse();
    Ok(newest)
}

fn delivery_row(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: number(row, 0)?,
        digest: row.get(1)?,
        at: row.get(2)?,
    })
}
