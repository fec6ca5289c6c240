//! How times and sizes look to people.

use tidings_protocol::EpochMs;

const MS_PER_SECOND: i64 = 1_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// The time as `2026-11-30 21:05:03`, in UTC wherever the reader is.
#[must_use]
pub fn utc(time: EpochMs) -> String {
    let seconds = time.div_euclid(MS_PER_SECOND);
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The time as [`utc`] writes it, nothing for none.
#[must_use]
pub fn utc_or_nothing(time: Option<EpochMs>) -> String {
    time.map(utc).unwrap_or_default()
}

/// A size as `0 B`, `1.5 kB`, `20.0 MB`: decimal, one digit behind the point.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    // In tenths of the unit, rounded; a value that rounds up to 1000.0 takes the next unit.
    let mut tenths = (u128::from(bytes) + 50) / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths = (tenths + 500) / 1_000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Year, month and day of the day that is `days` after 1970-01-01, in the Gregorian
/// calendar. Years begin in March here, so that the odd day is their last.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097; // 400 years
    let from_era_start = days + 719_468; // since 0000-03-01
    let era = from_era_start.div_euclid(DAYS_PER_ERA);
    let day_of_era = from_era_start.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// A stretch of time in its largest whole unit, whichever way it goes.
#[must_use]
pub fn span(ms: i64) -> String {
    let seconds = ms.unsigned_abs() / 1_000;
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "min")] {
        if seconds >= unit {
            return format!("{} {name}", seconds / unit);
        }
    }
    format!("{seconds} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (time, text) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (951_868_799_999, "2000-02-29 23:59:59"),
            (1_796_072_703_123, "2026-11-30 21:05:03"),
            (4_107_542_400_000, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(utc(time), text);
        }
        assert_eq!(utc_or_nothing(None), "");
        assert_eq!(utc_or_nothing(Some(0)), "1970-01-01 00:00:00");
    }

    #[test]
    fn no_time_however_absurd_breaks_the_calendar() {
        for time in [EpochMs::MIN, EpochMs::MAX] {
            assert!(utc(time).contains(':'), "{time}");
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut before = civil(-1);
        for days in 0..150_000 {
            let day = civil(days);
            let next_day = (before.0, before.1, before.2 + 1);
            let next_month = (before.0, before.1 + 1, 1);
            let next_year = (before.0 + 1, 1, 1);
            assert!([next_day, next_month, next_year].contains(&day), "{day:?}");
            before = day;
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (1_540, "1.5 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (20_000_000, "20.0 MB"),
            (u64::MAX, "18446744.1 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_span_is_shown_in_its_largest_unit() {
        for (ms, shown) in [
            (0, "0 s"),
            (59_999, "59 s"),
            (-300_000, "5 min"),
            (7_199_999, "1 h"),
            (-172_800_000, "2 d"),
        ] {
            assert_eq!(span(ms), shown);
        }
    }
}
