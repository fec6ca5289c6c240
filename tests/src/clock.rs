//! Time, as tests meet it: deadlines, and the stamps that programs write into transcripts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a test waits for something that should come at once. Generous: the machine may
/// be busy, and a deadline that is met costs nothing.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Asks until there is an answer, and panics beyond the deadline. Each question should cost
/// something, such as a process: that is what keeps this from spinning.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(DEADLINE, what, ask)
}

/// The same for what takes its time by design.
#[track_caller]
pub fn until_within<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < limit, "after {limit:?} still not: {what}");
    }
}

/// A time as epoch milliseconds.
pub(crate) fn epoch_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(since.as_millis()).expect("a time before the end of numbers")
}

/// Now, as epoch milliseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside: they write what an agent program would, with its clock"
)]
pub(crate) fn now_ms() -> i64 {
    epoch_ms(SystemTime::now())
}

/// Epoch milliseconds as agent programs write them: `2026-11-30T12:00:00.000Z`.
pub(crate) fn iso(epoch_ms: i64) -> String {
    let (days, ms_of_day) = (
        epoch_ms.div_euclid(86_400_000),
        epoch_ms.rem_euclid(86_400_000),
    );
    let (year, month, day) = civil(days);
    let (seconds, ms) = (ms_of_day / 1_000, ms_of_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a number of days since 1970, after Howard Hinnant's
/// `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[test]
fn times_are_written_as_programs_write_them() {
    for (epoch_ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_796_040_000_000, "2026-11-30T12:00:00.000Z"),
        (1_798_761_599_001, "2026-12-31T23:59:59.001Z"),
    ] {
        assert_eq!(iso(epoch_ms), text);
    }
}
