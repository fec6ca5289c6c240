//! Where cursors and leases stand towards one another: everything that the state layer goes
//! by, with every number and time made relative.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tidings_gateway::state::TurnToken;
use tidings_protocol::EpochMs;

use crate::watcher::{Past, Watcher};

/// Where everything stands, for both watchers.
pub(crate) type Standing = [WatcherStanding; 2];

/// Where one watcher stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WatcherStanding {
    cursor: Option<CursorStanding>,
    /// The leases of the last turns, as far as they are kept.
    leases: Vec<Option<Kept>>,
    /// What the watcher itself remembers.
    past: Past,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct CursorStanding {
    pending: bool,
    /// Something came after what the notice speaks of.
    more: bool,
    lease: Option<Kept>,
}

/// A lease that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Kept {
    /// Which of the last turns has it; none of them, where it is older.
    turn: Option<usize>,
    closed: bool,
    run_out: bool,
}

/// Reads standings from the database, beside the state layer.
pub(crate) struct Reader(Connection);

impl Reader {
    pub(crate) fn open(database: &Path) -> Self {
        let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY);
        Self(conn.expect("the database"))
    }

    pub(crate) fn read(&self, key: &str, watcher: &Watcher, now: EpochMs) -> WatcherStanding {
        let tokens: Vec<String> = watcher.tokens().map(|token| token.to_string()).collect();
        let cursor = self
            .0
            .prepare_cached(
                "SELECT last_seen, notified, material, lease FROM cursors
                 JOIN session_keys ON session_keys.id = cursors.watcher
                 WHERE session_key = ?1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([key], |row| {
                        let (seen, notified): (i64, i64) = (row.get(0)?, row.get(1)?);
                        let (material, lease): (i64, Option<i64>) = (row.get(2)?, row.get(3)?);
                        Ok((seen, notified, material, lease))
                    })
                    .optional()
            })
            .expect("a cursor, or none");
        WatcherStanding {
            cursor: cursor.map(|(seen, notified, material, lease)| CursorStanding {
                pending: notified > seen,
                more: material > notified,
                lease: lease.and_then(|id| self.lease(&Which::Id(id), &tokens, now)),
            }),
            leases: watcher
                .tokens()
                .map(|token| self.lease(&Which::Token(token), &tokens, now))
                .collect(),
            past: watcher.past(),
        }
    }

    fn lease(&self, which: &Which, tokens: &[String], now: EpochMs) -> Option<Kept> {
        let (id, token) = match which {
            Which::Id(id) => (Some(*id), None),
            Which::Token(token) => (None, Some(token.to_string())),
        };
        let mut statement = self
            .0
            .prepare_cached(
                "SELECT lower(hex(token)), closed_at IS NOT NULL, expires_at <= ?3 FROM leases
                 WHERE id = ?1 OR token = unhex(?2)",
            )
            .expect("a query");
        let kept = statement.query_row((id, token, now), |row| {
            let token: String = row.get(0)?;
            Ok(Kept {
                turn: tokens.iter().position(|known| *known == token),
                closed: row.get(1)?,
                run_out: row.get(2)?,
            })
        });
        kept.optional().expect("a lease, or none")
    }
}

enum Which {
    Id(i64),
    Token(TurnToken),
}
