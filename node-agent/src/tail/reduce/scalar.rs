//! Numbers and literals, byte by byte, however long.

/// One that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tail) enum Scalar {
    /// This is left of `true`, `false` or `null`.
    Literal(&'static [u8]),
    Number(Part),
}

/// Behind what of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tail) enum Part {
    Sign,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

impl Scalar {
    /// The one that begins with `first`.
    pub(in crate::tail) fn begin(first: u8) -> Option<Self> {
        match first {
            b't' => Some(Self::Literal(b"rue")),
            b'f' => Some(Self::Literal(b"alse")),
            b'n' => Some(Self::Literal(b"ull")),
            b'-' => Some(Self::Number(Part::Sign)),
            b'0' => Some(Self::Number(Part::Zero)),
            b'1'..=b'9' => Some(Self::Number(Part::Whole)),
            _ => None,
        }
    }

    /// True for a byte that cannot stand right behind one.
    pub(in crate::tail) fn may_go_on_with(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
    }

    /// Goes on with `byte`; `None` where that makes it none.
    pub(in crate::tail) fn then(self, byte: u8) -> Option<Self> {
        use Part::{Exponent, ExponentSign, Fraction, Point, Power, Sign, Whole, Zero};
        let part = match self {
            Self::Literal(left) => {
                let (next, left) = left.split_first()?;
                return (*next == byte).then_some(Self::Literal(left));
            }
            Self::Number(part) => part,
        };
        let part = match (part, byte) {
            (Sign, b'0') => Zero,
            (Sign, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | Power, b'0'..=b'9') => Power,
            _ => return None,
        };
        Some(Self::Number(part))
    }

    /// True when it may end here.
    pub(in crate::tail) fn is_whole(self) -> bool {
        match self {
            Self::Literal(left) => left.is_empty(),
            Self::Number(part) => {
                matches!(
                    part,
                    Part::Zero | Part::Whole | Part::Fraction | Part::Power
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde::de::IgnoredAny;

    use super::*;

    fn is_scalar(text: &[u8]) -> bool {
        let Some((first, rest)) = text.split_first() else {
            return false;
        };
        let begun = Scalar::begin(*first);
        let whole = rest
            .iter()
            .fold(begun, |scalar, byte| scalar.and_then(|s| s.then(*byte)));
        whole.is_some_and(Scalar::is_whole)
    }

    #[test]
    fn numbers_and_literals_are_told_from_what_is_none() {
        for (text, expected) in [
            ("0", true),
            ("-0", true),
            ("10", true),
            ("-1.50e+07", true),
            ("1E-9", true),
            ("true", true),
            ("false", true),
            ("null", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("1.", false),
            (".5", false),
            ("1e", false),
            ("1e+", false),
            ("1.1.1", false),
            ("nul", false),
            ("nulll", false),
            ("garbage", false),
        ] {
            assert_eq!(is_scalar(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_serde(text in "[-+.0-9eE]{1,12}|[truefalsn]{1,6}") {
            let expected = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            prop_assert_eq!(is_scalar(text.as_bytes()), expected, "{}", text);
        }
    }
}
