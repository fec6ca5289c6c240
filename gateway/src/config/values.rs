//! Values with units, as people write them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as configuration spells it: `30d`, `12h`, `90m`, `45s`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(pub Duration);

const UNITS: [(&str, u64); 5] = [
    // Longest name first: `ms` ends in `s`, and `m` begins it.
    ("ms", 1),
    ("d", 24 * 60 * 60 * 1_000),
    ("h", 60 * 60 * 1_000),
    ("m", 60 * 1_000),
    ("s", 1_000),
];

impl Age {
    /// Reads a whole number with a unit; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let (number, millis) = UNITS
            .iter()
            .find_map(|(unit, millis)| Some((text.strip_suffix(unit)?, *millis)))?;
        let number = number.trim_end();
        if !number.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let millis = number.parse::<u64>().ok()?.checked_mul(millis)?;
        Some(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let largest = UNITS
            .iter()
            .filter(|(_, unit)| millis.is_multiple_of(*unit))
            .max_by_key(|(_, unit)| *unit);
        match largest {
            Some((name, unit)) if millis > 0 => write!(f, "{}{name}", millis / unit),
            _ => write!(f, "{millis}ms"),
        }
    }
}

impl Serialize for Age {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Age {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("a duration is a whole number with a unit: 30d, 12h, 90m, 45s")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_read_back_in_their_largest() {
        for (text, millis, written) in [
            ("30d", 30 * 86_400_000, "30d"),
            ("24H", 86_400_000, "1d"),
            (" 90 m ", 5_400_000, "90m"),
            ("500ms", 500, "500ms"),
            ("0s", 0, "0ms"),
        ] {
            let age = Age::parse(text).expect(text);
            assert_eq!(age.0.as_millis(), millis, "{text}");
            assert_eq!(age.to_string(), written);
            assert_eq!(Age::parse(written), Some(age));
        }
        for text in [
            "",
            "30",
            "d",
            "-1d",
            "1.5h",
            "1w",
            "999999999999999999999d",
            "+3s",
        ] {
            assert_eq!(Age::parse(text), None, "{text}");
        }
    }
}
