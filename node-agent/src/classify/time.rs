//! The time stamps of records.

use tidings_protocol::EpochMs;

use super::json::Value;

/// Years that a transcript can be from; anything else is a broken clock or not a time.
const PLAUSIBLE_YEARS: std::ops::RangeInclusive<i64> = 2000..=2199;
const MS_PER_DAY: i64 = 86_400_000;

/// The time in a member, whole milliseconds: ISO 8601, or a number of seconds or
/// milliseconds since 1970. Without a zone it is taken as UTC.
/// `None` for what is no time, or one that no transcript can have.
pub(crate) fn of(value: Value<'_>) -> Option<EpochMs> {
    let ms = match value.text() {
        Some(text) => of_text(text.trim())?,
        None => of_number(value.number()?)?,
    };
    let year = 1970 + ms.div_euclid(MS_PER_DAY * 146_097 / 400);
    PLAUSIBLE_YEARS.contains(&year).then_some(ms)
}

/// The time in a JSON text or number.
pub(crate) fn time_in(json: &str) -> Option<EpochMs> {
    of(Value::of(json.as_bytes())?)
}

/// The time in a UUID of version 7.
pub(crate) fn of_uuid(id: &str) -> Option<EpochMs> {
    let bytes = id.as_bytes();
    let is_uuid = bytes.len() == 36
        && [8, 13, 18, 23].iter().all(|at| bytes[*at] == b'-')
        && bytes[14] == b'7';
    if !is_uuid {
        return None;
    }
    let high = i64::from_str_radix(id.get(..8)?, 16).ok()?;
    let low = i64::from_str_radix(id.get(9..13)?, 16).ok()?;
    Some(high << 16 | low)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range was checked; a fraction of a millisecond is dropped on purpose"
)]
fn of_number(number: f64) -> Option<EpochMs> {
    // What a number counts shows in its size: in seconds 1e11 is the year 5138, in
    // milliseconds it is 1973.
    let ms = match number {
        n if !(1e8..1e14).contains(&n) => return None,
        n if n < 1e11 => n * 1e3,
        n => n,
    };
    Some(ms.floor() as EpochMs)
}

/// `YYYY-MM-DDTHH:MM[:SS[.fraction]][zone]`, `T` or a blank between.
fn of_text(text: &str) -> Option<EpochMs> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.digits(4)?;
    rest.take(b"-")?;
    let month = rest.digits(2)?;
    rest.take(b"-")?;
    let day = rest.digits(2)?;
    rest.take(b"Tt ")?;
    let hour = rest.digits(2)?;
    rest.take(b":")?;
    let minute = rest.digits(2)?;
    let second = match rest.take(b":") {
        Some(()) => rest.digits(2)?,
        None => 0,
    };
    let fraction_ms = match rest.take(b".,") {
        Some(()) => rest.fraction_ms()?,
        None => 0,
    };
    let zone_minutes = rest.zone_minutes()?;
    let valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour <= 24
        && minute <= 59
        && second <= 60;
    if !valid || !rest.0.is_empty() {
        return None;
    }
    let seconds = (hour * 60 + minute - zone_minutes) * 60 + second;
    Some(days_since_1970(year, month, day) * MS_PER_DAY + seconds * 1000 + fraction_ms)
}

/// Howard Hinnant's `days_from_civil`.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = digits.iter().try_fold(0, |number, byte| {
            byte.is_ascii_digit()
                .then(|| number * 10 + i64::from(byte - b'0'))
        })?;
        self.0 = rest;
        Some(number)
    }

    fn take(&mut self, any_of: &[u8]) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        any_of.contains(first).then(|| self.0 = rest)
    }

    /// The digits of a fraction of a second, cut to milliseconds.
    fn fraction_ms(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let padded = digits.iter().copied().chain([b'0'; 3]).take(3);
        (count > 0).then(|| padded.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0')))
    }

    /// `Z`, `+HH:MM`, `+HHMM`, `+HH`, or nothing.
    fn zone_minutes(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z' | b'z') => {
                self.0 = &self.0[1..];
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.digits(2)?;
        let _ = self.take(b":");
        let minutes = if self.0.is_empty() {
            0
        } else {
            self.digits(2)?
        };
        Some(sign * (hours * 60 + minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Option<EpochMs> {
        of(Value::of(json.as_bytes())?)
    }

    #[test]
    fn a_time_stamp_is_read_in_every_form_programs_write() {
        const AT: EpochMs = 1_778_488_037_490;
        for (json, expected) in [
            (r#""2026-05-11T08:27:17.490Z""#, Some(AT)),
            (r#""2026-05-11T08:27:17.4907777Z""#, Some(AT)),
            (r#""2026-05-11 08:27:17.49""#, Some(AT)),
            (r#""2026-05-11T10:27:17.490+02:00""#, Some(AT)),
            (r#""2026-05-11T03:57:17.490-0430""#, Some(AT)),
            (r#""2026-05-11T17:27:17.490+09""#, Some(AT)),
            (r#""2026-05-11T08:27Z""#, Some(AT - 17_490)),
            (r#""1970-01-01T00:00:00Z""#, None),
            (r#""2000-02-29T00:00:00Z""#, Some(951_782_400_000)),
            ("1778488037490", Some(AT)),
            ("1778488037490.75", Some(AT)),
            ("1778488037.49", Some(AT)),
            ("1778488037490000", None),
        ] {
            assert_eq!(parse(json), expected, "{json}");
        }
    }

    #[test]
    fn what_is_no_time_or_an_absurd_one_is_none() {
        for json in [
            "null",
            "true",
            "-1",
            "0",
            "1e300",
            "{}",
            r#""""#,
            r#""now""#,
            r#""2025-09-10U12:00:00D""#,
            r#""9999-12-31T23:59:59Z""#,
            r#""0001-01-01T00:00:00Z""#,
            r#""2026-13-01T00:00:00Z""#,
            r#""2026-05-11T08:27:17.Z""#,
            r#""2026-05-11T08:27:17Zx""#,
            r#""2026-05-11""#,
        ] {
            assert_eq!(parse(json), None, "{json}");
        }
    }

    #[test]
    fn a_version_7_uuid_tells_its_time_and_no_other_id_does() {
        assert_eq!(
            of_uuid("019e1625-d031-75e3-a85f-f143e43c0d84"),
            Some(0x019e_1625_d031)
        );
        for id in ["turn-1", "", "2b1ebb1b-b59c-4b8c-a79e-394ed67a11b8"] {
            assert_eq!(of_uuid(id), None);
        }
    }
}
