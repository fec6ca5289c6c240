//! One write transaction, as an operation sees it.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use tidings_protocol::{EpochMs, SessionKey};

use super::names::Names;
use crate::state::{Effect, SessionAddress, StateError, Wake};

/// Why an operation did not do what it was asked.
#[derive(Debug)]
pub(crate) enum OpError {
    /// It was refused before it wrote anything.
    Refused(StateError),
    /// The engine failed: whatever the operation wrote must not stay.
    Engine(rusqlite::Error),
}

/// What an operation results in.
pub(crate) type OpResult<T> = Result<T, OpError>;

impl From<rusqlite::Error> for OpError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StateError> for OpError {
    fn from(error: StateError) -> Self {
        Self::Refused(error)
    }
}

/// What the transactions of one group mean to others once the group is committed.
#[derive(Default)]
pub(crate) struct Meaning {
    pub(crate) head: Option<u64>,
    pub(crate) effects: Vec<Effect>,
    /// Text was erased, and the log may still hold it.
    pub(crate) erased: bool,
}

/// One write transaction.
pub(crate) struct Tx<'a> {
    conn: &'a Connection,
    names: &'a mut Names,
    meaning: &'a mut Meaning,
    now: EpochMs,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        names: &'a mut Names,
        meaning: &'a mut Meaning,
        now: EpochMs,
    ) -> Self {
        Self {
            conn,
            names,
            meaning,
            now,
        }
    }

    /// The connection, for what reads and writes alike.
    pub(crate) fn conn(&self) -> &'a Connection {
        self.conn
    }

    /// The gateway's clock when the operation began.
    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    pub(crate) fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.conn.prepare_cached(sql)
    }

    /// Runs a statement and answers how many rows it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    /// The first row of a query, where there is one.
    pub(crate) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.prepare(sql)?.query_row(params, read).optional()
    }

    /// All rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.prepare(sql)?.query_map(params, read)?.collect()
    }

    /// The id of the row that was inserted last.
    pub(crate) fn last_row(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// Says what the transaction means to others, once it is committed.
    pub(crate) fn tell(&mut self, effect: Effect) {
        self.meaning.effects.push(effect);
    }

    /// Says that text was erased: it is to leave the log as well.
    pub(crate) fn erased(&mut self) {
        self.meaning.erased = true;
    }

    /// Wakes a watcher that has one more notice, unless it is nested: such a watcher waits
    /// for its turn.
    pub(crate) fn wake(&mut self, watcher: SessionKey, target: SessionKey) {
        if !watcher.is_nested() {
            self.tell(Effect::Wake(Wake { watcher, target }));
        }
    }

    /// Says that the log has grown up to `sequence`.
    pub(crate) fn grew(&mut self, sequence: u64) {
        self.meaning.head = Some(sequence);
    }

    /// The number of a key, made where there was none.
    pub(crate) fn key(&mut self, key: &SessionKey) -> rusqlite::Result<i64> {
        if let Some(number) = self.find_key(key)? {
            return Ok(number);
        }
        self.execute(
            "INSERT INTO session_keys (session_key) VALUES (?1)",
            [key.as_str()],
        )?;
        let number = self.last_row();
        self.names.remember_key(key, number);
        Ok(number)
    }

    /// The number of a key, where it has one.
    pub(crate) fn find_key(&mut self, key: &SessionKey) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.names.key(key) {
            return Ok(Some(number));
        }
        let found = self.row(
            "SELECT id FROM session_keys WHERE session_key = ?1",
            [key.as_str()],
            |row| row.get(0),
        )?;
        if let Some(number) = found {
            self.names.remember_key(key, number);
        }
        Ok(found)
    }

    /// The key with this number.
    pub(crate) fn key_text(&mut self, number: i64) -> rusqlite::Result<SessionKey> {
        if let Some(key) = self.names.text(number) {
            return Ok(key.clone());
        }
        let key = self
            .prepare("SELECT session_key FROM session_keys WHERE id = ?1")?
            .query_row([number], |row| {
                crate::state::sql::parsed(row, 0, SessionKey::parse)
            })?;
        self.names.remember_key(&key, number);
        Ok(key)
    }

    /// The number of a session, made where there was none.
    pub(crate) fn session(&mut self, address: &SessionAddress) -> rusqlite::Result<i64> {
        if let Some(number) = self.find_session(address)? {
            return Ok(number);
        }
        let key = self.key(address.key())?;
        self.execute(
            "INSERT INTO sessions (key, agent_id) VALUES (?1, ?2)",
            (key, address.agent().as_str()),
        )?;
        let number = self.last_row();
        self.names.remember_session(address, number);
        Ok(number)
    }

    /// The number of a session, where it has one.
    pub(crate) fn find_session(
        &mut self,
        address: &SessionAddress,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.names.session(address) {
            return Ok(Some(number));
        }
        let Some(key) = self.find_key(address.key())? else {
            return Ok(None);
        };
        let found = self.row(
            "SELECT id FROM sessions WHERE key = ?1 AND agent_id = ?2",
            (key, address.agent().as_str()),
            |row| row.get(0),
        )?;
        if let Some(number) = found {
            self.names.remember_session(address, number);
        }
        Ok(found)
    }
}
