//! Values with units, as people write them.

use std::fmt;
use std::path::PathBuf;
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

/// A number of bytes as configuration spells it: `20mb`, `1gb`, or the number itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A value that can be switched off: by `false`, or by 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch<T> {
    /// Off.
    Off,
    /// This.
    On(T),
}

/// An hour of the day, 0 to 23.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hour(u8);

/// A value of a key that older versions knew: accepted, whatever it is, and without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ignored;

/// Longest name first: every other one ends in `b`.
const SIZES: [(&str, u64); 5] = [
    ("tb", 1 << 40),
    ("gb", 1 << 30),
    ("mb", 1 << 20),
    ("kb", 1 << 10),
    ("b", 1),
];

impl Size {
    /// Reads a whole number, with a unit or without; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let with_unit = |(unit, bytes): &(&str, u64)| Some((text.strip_suffix(unit)?, *bytes));
        let (number, bytes) = SIZES.iter().find_map(with_unit).unwrap_or((&text, 1));
        let number = number.trim_end();
        if !number.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        number.parse::<u64>().ok()?.checked_mul(bytes).map(Self)
    }
}

impl Hour {
    /// Four in the morning: hardly anybody is in the middle of something.
    pub const FOUR: Self = Self(4);

    /// This hour; `None` where a day has none.
    #[must_use]
    pub fn new(hour: u8) -> Option<Self> {
        (hour < 24).then_some(Self(hour))
    }

    /// The hour as a number.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl<T> Switch<T> {
    /// The value, where it is on.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Off => None,
            Self::On(value) => Some(value),
        }
    }
}

/// What [`Switch`] needs to know of its value.
pub trait Zero {
    /// True for nothing at all.
    fn is_zero(&self) -> bool;
}

impl Zero for Age {
    fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl Zero for Size {
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Zero for PathBuf {
    fn is_zero(&self) -> bool {
        self.as_os_str().is_empty()
    }
}

impl Zero for u32 {
    fn is_zero(&self) -> bool {
        *self == 0
    }
}

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

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, unit): &&(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*unit);
        match SIZES.iter().find(fits) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}b", self.0),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let size = match Written::deserialize(deserializer) {
            Ok(Written::Number(bytes)) => Some(Self(bytes)),
            Ok(Written::Text(text)) => Self::parse(&text),
            Err(_) => None,
        };
        size.ok_or_else(|| serde::de::Error::custom("a size is a number of bytes: 20mb, 1gb, 4096"))
    }
}

impl<T: Serialize> Serialize for Switch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Zero + serde::de::DeserializeOwned> Deserialize<'de> for Switch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = toml::Value::deserialize(deserializer)?;
        if matches!(
            written,
            toml::Value::Boolean(false) | toml::Value::Integer(0)
        ) {
            return Ok(Self::Off);
        }
        let value = T::deserialize(written)
            .map_err(|error| serde::de::Error::custom(format!("{}; or false", error.message())))?;
        Ok(if value.is_zero() {
            Self::Off
        } else {
            Self::On(value)
        })
    }
}

impl<'de> Deserialize<'de> for Hour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hour = u8::deserialize(deserializer).ok().and_then(Self::new);
        hour.ok_or_else(|| serde::de::Error::custom("an hour is 0 to 23"))
    }
}

impl Serialize for Ignored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
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

    #[test]
    fn sizes_have_a_unit_or_none_and_read_back_in_their_largest() {
        for (text, bytes, written) in [
            ("20mb", 20 << 20, "20mb"),
            (" 4 KB ", 4_096, "4kb"),
            ("4097", 4_097, "4097b"),
            ("0", 0, "0b"),
            ("3tb", 3 << 40, "3tb"),
        ] {
            let size = Size::parse(text).expect(text);
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string(), written);
            assert_eq!(Size::parse(written), Some(size));
        }
        for text in [
            "",
            "mb",
            "-1",
            "1.5mb",
            "99999999999999999999",
            "9999999999tb",
        ] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_switch_is_off_by_false_and_by_nothing_and_on_by_a_value() {
        let read = |text: &str| {
            let table: toml::Table = toml::from_str(&format!("s = {text}")).expect("toml");
            Switch::<Age>::deserialize(table["s"].clone())
        };
        for off in ["false", "0", "\"0d\""] {
            assert_eq!(read(off).map_err(|_| ()), Ok(Switch::Off), "{off}");
        }
        let day = Age::parse("1d").expect("a day");
        assert_eq!(read("\"24h\"").map_err(|_| ()), Ok(Switch::On(day)));
        for wrong in ["true", "5", "\"soon\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
