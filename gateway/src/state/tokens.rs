//! API tokens: kept as digests, looked up, ended.

use rusqlite::{OptionalExtension, Row};
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{TokenRow, TokenScope, TokenState};

use super::State;
use super::audit::{AuditAction, operator_did};
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::named;

/// How many tokens are in use at once, at most: one each for more programs than any machine
/// has, and few enough that a list of them is a page.
pub(super) const MAX_ACTIVE_TOKENS: i64 = 200;
/// How many that have ended are remembered, so that their bearers are told the reason.
const KEPT_ENDED: i64 = 200;
/// A use is noted at most this often: a reader that asks every second must not make the disk
/// write every second.
const USE_NOTED_EVERY_MS: EpochMs = 60_000;

const COLUMNS: &str = "id, name, scope, created_at, expires_at, last_used_at, revoked_at,
    digest";

/// A token to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is called.
    pub name: String,
    /// The SHA-256 of what its bearer shows.
    pub digest: [u8; 32],
    /// What it permits.
    pub scope: TokenScope,
    /// When it ends by itself.
    pub expires_at: Option<EpochMs>,
}

/// A token, as a door asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its number, which never returns.
    pub id: i64,
    /// What it is looked up by.
    pub digest: [u8; 32],
    /// The rest.
    pub row: TokenRow,
}

impl State {
    /// Keeps a new token. A name that another token in use has is refused.
    pub async fn create_token(&self, token: NewToken) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| create(tx, &token))
            .await
    }

    /// Every token: those in use first, then the newest.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, StateError> {
        let now = self.inner.clock.now();
        self.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM api_tokens ORDER BY id DESC");
            let mut rows: Vec<TokenRow> = conn
                .prepare_cached(&sql)?
                .query_map([], |row| token_row(row, now).map(|record| record.row))?
                .collect::<Result<_, _>>()?;
            rows.sort_by_key(|row| row.state != TokenState::Active);
            Ok(rows)
        })
        .await
    }

    /// The token with this digest. What the time of the look-up tells is of the digest, from
    /// which nobody comes back to the token.
    pub async fn token(&self, digest: [u8; 32]) -> Result<Option<TokenRecord>, StateError> {
        let now = self.inner.clock.now();
        self.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM api_tokens WHERE digest = ?1");
            let found = conn
                .prepare_cached(&sql)?
                .query_row([digest], |row| token_row(row, now))
                .optional()?;
            Ok(found)
        })
        .await
    }

    /// Notes that a token was used, to the minute.
    pub async fn token_used(&self, token: &TokenRecord) -> Result<(), StateError> {
        let (id, now) = (token.id, self.inner.clock.now());
        let noted = token.row.last_used_at;
        if noted.is_some_and(|at| (at..at + USE_NOTED_EVERY_MS).contains(&now)) {
            return Ok(());
        }
        self.write(Priority::Upkeep, move |tx| {
            tx.execute(
                "UPDATE api_tokens SET last_used_at = ?2 WHERE id = ?1",
                (id, tx.now()),
            )?;
            Ok(())
        })
        .await
    }

    /// Ends the token in use that has this name; `None` where there is none.
    pub async fn revoke_token(&self, name: String) -> Result<Option<TokenRow>, StateError> {
        self.write(Priority::Interactive, move |tx| revoke(tx, &name))
            .await
    }
}

fn create(tx: &mut Tx<'_>, token: &NewToken) -> OpResult<()> {
    let active = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1)";
    let sql = format!("SELECT count(*) FROM api_tokens WHERE {active}");
    let in_use = tx.row(&sql, [tx.now()], |row| row.get(0))?;
    if in_use.is_some_and(|count: i64| count >= MAX_ACTIVE_TOKENS) {
        return Err(StateError::TooManyTokens.into());
    }
    let sql = format!("SELECT 1 FROM api_tokens WHERE {active} AND name = ?2");
    if tx.row(&sql, (tx.now(), &token.name), |_| Ok(()))?.is_some() {
        return Err(StateError::TokenTaken(token.name.clone()).into());
    }
    tx.execute(
        "INSERT INTO api_tokens (name, digest, scope, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (
            &token.name,
            token.digest,
            token.scope.as_str(),
            tx.now(),
            token.expires_at,
        ),
    )?;
    let sql = format!(
        "DELETE FROM api_tokens WHERE id IN (
             SELECT id FROM api_tokens WHERE NOT ({active}) ORDER BY id DESC LIMIT -1 OFFSET ?2)"
    );
    tx.execute(&sql, (tx.now(), KEPT_ENDED))?;
    operator_did(tx, AuditAction::CreateToken, &token.name)
}

fn revoke(tx: &mut Tx<'_>, name: &str) -> OpResult<Option<TokenRow>> {
    let now = tx.now();
    let sql = format!(
        "UPDATE api_tokens SET revoked_at = ?2
         WHERE name = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)
         RETURNING {COLUMNS}"
    );
    let Some(record) = tx.row(&sql, (name, now), |row| token_row(row, now))? else {
        return Ok(None);
    };
    operator_did(tx, AuditAction::RevokeToken, name)?;
    tx.tell(Effect::TokenRevoked { token: record.id });
    Ok(Some(record.row))
}

fn token_row(row: &Row<'_>, now: EpochMs) -> rusqlite::Result<TokenRecord> {
    let (expires_at, revoked_at) = (row.get(4)?, row.get(6)?);
    Ok(TokenRecord {
        id: row.get(0)?,
        digest: row.get(7)?,
        row: TokenRow {
            name: row.get(1)?,
            scope: named(row, 2, TokenScope::parse)?,
            state: TokenState::at(expires_at, revoked_at, now),
            created_at: row.get(3)?,
            expires_at,
            last_used_at: row.get(5)?,
            revoked_at,
        },
    })
}
