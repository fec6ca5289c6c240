//! Small helpers between SQL values and ours.

use std::error::Error;

use rusqlite::Row;
use rusqlite::types::Type;

/// A number for the database. Ours stay far below the limit; what does not is held at it.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number out of the database, where none is negative.
pub(crate) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A column that holds no negative number.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(uint)
}

/// A text column, parsed.
pub(crate) fn parsed<T, E>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<T>
where
    E: Error + Send + Sync + 'static,
{
    let text = row.get_ref(column)?.as_str()?;
    parse(text).map_err(|error| conversion(column, error))
}

/// A text column that may be empty, parsed.
pub(crate) fn parsed_opt<T, E>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<Option<T>>
where
    E: Error + Send + Sync + 'static,
{
    match row.get_ref(column)?.as_str_or_null()? {
        Some(text) => parse(text)
            .map(Some)
            .map_err(|error| conversion(column, error)),
        None => Ok(None),
    }
}

/// A text column that names one of a fixed set.
pub(crate) fn named<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    parsed(row, column, |name| parse(name).ok_or(UnknownName))
}

/// A name that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("the database holds a name that this version does not know")]
struct UnknownName;

pub(crate) fn conversion(
    column: usize,
    error: impl Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
