//! A walk over JSON text that allocates nothing.
//!
//! It follows strings and brackets and trusts the rest. Whoever needs to know that a text
//! is JSON asks [`first_value`]; everybody else only needs to find a member and where a
//! value ends. Of a key given twice the last counts, as in the programs that write these
//! files.

use std::borrow::Cow;

use memchr::memchr;
use serde::de::IgnoredAny;

use super::strings;

/// How many bytes the first JSON value in `bytes` takes, blanks before it included; `None`
/// where there is none or it breaks off.
pub(crate) fn first_value(bytes: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Some(values.byte_offset()),
        _ => None,
    }
}

/// A place in JSON text. Every step answers `None` where the text is not what it looks for.
pub(crate) struct Walk<'a> {
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    /// A walk from the beginning of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte that is not blank.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let (&byte, behind) = self.rest.split_first()?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.rest = behind;
        }
    }

    /// What has not been walked over.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Walks over a string and gives what is between its quotes, as it is written.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let (inner, behind) = strings::split_end(self.rest)?;
        self.rest = behind;
        Some(inner)
    }

    /// Walks over a value of any kind.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        let first = self.peek()?;
        let from = self.rest;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.container()?,
            _ => self.scalar()?,
        }
        Some(Value(&from[..from.len() - self.rest.len()]))
    }

    /// Walks over an object and hands each key, as it is written, to `each`, which walks
    /// over the value.
    #[inline]
    pub(crate) fn members(
        &mut self,
        mut each: impl FnMut(&'a [u8], &mut Self) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        loop {
            let key = self.string()?;
            self.take(b':')?;
            each(key, self)?;
            if self.ends(b'}')? {
                return Some(());
            }
        }
    }

    /// Walks over an array; `each` walks over one item.
    #[inline]
    pub(crate) fn items(&mut self, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? == b']' {
            return self.take(b']');
        }
        loop {
            each(self)?;
            if self.ends(b']')? {
                return Some(());
            }
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.rest = &self.rest[1..];
        Some(())
    }

    /// Behind a member or item: whether it was the last.
    #[inline]
    fn ends(&mut self, close: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.rest = &self.rest[1..];
        match byte {
            b',' => Some(false),
            _ if byte == close => Some(true),
            _ => None,
        }
    }

    /// Walks over an object or array, whatever is inside, without a stack of its own.
    fn container(&mut self) -> Option<()> {
        let mut open = OpenBrackets::default();
        loop {
            // A value begins.
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                bracket @ (b'{' | b'[') => {
                    self.rest = &self.rest[1..];
                    open.push(bracket);
                    let is_empty = self.peek()? == open.closing();
                    if !is_empty {
                        self.key(&open)?;
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // It has ended, and so may what is around it.
            while self.ends(open.closing())? {
                open.pop();
                if open.depth == 0 {
                    return Some(());
                }
            }
            self.key(&open)?;
        }
    }

    /// Walks over the key of a member; items have none.
    #[inline]
    fn key(&mut self, open: &OpenBrackets) -> Option<()> {
        if open.closing() == b'}' {
            self.string()?;
            self.take(b':')?;
        }
        Some(())
    }

    /// Walks over a number or literal.
    #[inline]
    fn scalar(&mut self) -> Option<()> {
        let length = match *self.rest.first()? {
            b't' | b'n' => 4,
            b'f' => 5,
            b'-' | b'0'..=b'9' => {
                let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                self.rest.iter().take_while(|b| is_part(b)).count()
            }
            _ => return None,
        };
        let (text, rest) = self.rest.split_at_checked(length)?;
        let is_known = text[0].is_ascii_digit()
            || text[0] == b'-'
            || matches!(text, b"true" | b"null" | b"false");
        self.rest = rest;
        is_known.then_some(())
    }
}

/// The brackets that are open, a bit for each; hardly anything nests deeper than a word has
/// bits.
#[derive(Default)]
struct OpenBrackets {
    is_object: u64,
    depth: u64,
    /// The word as it was each time it was full.
    full: Vec<u64>,
}

impl OpenBrackets {
    #[inline]
    fn push(&mut self, bracket: u8) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.full.push(self.is_object);
        }
        self.is_object = self.is_object << 1 | u64::from(bracket == b'{');
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.is_object >>= 1;
        if self.depth.is_multiple_of(64)
            && let Some(full) = self.full.pop()
        {
            self.is_object = full;
        }
    }

    /// What closes the innermost one.
    #[inline]
    fn closing(&self) -> u8 {
        if self.is_object & 1 == 1 { b'}' } else { b']' }
    }
}

/// One JSON value as it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// A record that has been checked: it is one value and nothing else.
    pub(crate) fn of_record(record: &'a [u8]) -> Self {
        Self(record)
    }

    /// The first value in `bytes`; `None` where its brackets or quotes do not close.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        Walk::new(bytes).value()
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    pub(crate) fn is_array(self) -> bool {
        self.0.first() == Some(&b'[')
    }

    pub(crate) fn is_string(self) -> bool {
        self.0.first() == Some(&b'"')
    }

    pub(crate) fn is_true(self) -> bool {
        self.0 == b"true"
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == b"null"
    }

    /// The text of a string; what cannot be decoded is U+FFFD.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some(unescaped(inner))
    }

    /// True for a string that says exactly `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        self.text().is_some_and(|own| own == text)
    }

    /// The number, where it is one.
    pub(crate) fn number(self) -> Option<f64> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// Hands each member of an object to `each`, its key decoded; nothing else has any.
    pub(crate) fn members(self, each: impl FnMut(&[u8], Value<'a>)) {
        // The text has been checked: a walk that ends early has nothing left to give.
        let _ = members(self.0, each);
    }

    /// The member of that name; the last one, where there are several.
    pub(crate) fn get(self, name: &str) -> Option<Value<'a>> {
        let mut found = None;
        self.members(|key, value| {
            if key == name.as_bytes() {
                found = Some(value);
            }
        });
        found
    }

    /// Hands each item of an array to `each`; nothing else has any.
    pub(crate) fn items(self, mut each: impl FnMut(Value<'a>)) {
        let _ = Walk::new(self.0).items(|walk| {
            each(walk.value()?);
            Some(())
        });
    }
}

/// Hands each member of the object that `text` begins with to `each`; `None` where it does
/// not close.
pub(crate) fn members<'a>(text: &'a [u8], mut each: impl FnMut(&[u8], Value<'a>)) -> Option<()> {
    Walk::new(text).members(|key, walk| {
        let value = walk.value()?;
        if key.contains(&b'\\') {
            each(unescaped(key).as_bytes(), value);
        } else {
            each(key, value);
        }
        Some(())
    })
}

/// The text that stands between the quotes of a string.
pub(crate) fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', raw) else {
        // Most text is valid, and telling that is much quicker than repairing it.
        return match std::str::from_utf8(raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(raw),
        };
    };
    let mut out = Vec::with_capacity(raw.len());
    out.extend_from_slice(&raw[..first]);
    let mut rest = &raw[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\' {
            rest = unescape(tail, &mut out);
        } else {
            out.push(byte);
            rest = tail;
        }
    }
    Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Decodes one escape whose backslash has been taken; gives what follows it.
fn unescape<'a>(raw: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some((&kind, rest)) = raw.split_first() else {
        return raw;
    };
    if kind == b'u' {
        return unescape_unit(rest, out);
    }
    out.push(match kind {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        other => other,
    });
    rest
}

/// Decodes `\u` and, where a pair is written, its second half; half a pair is U+FFFD.
fn unescape_unit<'a>(raw: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some(unit) = hex_unit(raw) else {
        push_char(char::REPLACEMENT_CHARACTER, out);
        return raw;
    };
    let rest = &raw[4..];
    if let Some(c) = char::from_u32(unit) {
        push_char(c, out);
        return rest;
    }
    let low = rest.strip_prefix(b"\\u").and_then(hex_unit);
    let pair = low
        .filter(|low| unit < 0xdc00 && (0xdc00..0xe000).contains(low))
        .and_then(|low| char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)));
    push_char(pair.unwrap_or(char::REPLACEMENT_CHARACTER), out);
    if pair.is_some() { &rest[6..] } else { rest }
}

fn hex_unit(raw: &[u8]) -> Option<u32> {
    let digits = raw.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn push_char(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_are_decoded_and_what_cannot_be_is_replaced() {
        for (raw, text) in [
            (r#""a\n\"\\\/b""#, "a\n\"\\/b"),
            (r#""\u0041\u00e9\u20ac""#, "Aé€"),
            (r#""\ud83d\ude4f""#, "🙏"),
            (r#""x\ud83d y""#, "x\u{fffd} y"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\udc00""#, "\u{fffd}"),
        ] {
            assert_eq!(Value(raw.as_bytes()).text().as_deref(), Some(text), "{raw}");
        }
        assert_eq!(Value(b"\"a\xffb\"").text().as_deref(), Some("a\u{fffd}b"));
        assert_eq!(Value(b"1").text(), None);
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_however_they_are_written() {
        let value = Value::of(br#"{"a":1, "\u0061" : [2,{"a":3}] }"#).expect("object");
        assert!(value.get("a").is_some_and(Value::is_array));
        assert!(value.get("b").is_none());
    }

    #[test]
    fn a_value_ends_where_its_brackets_and_quotes_do() {
        for (text, length) in [
            (r#"{"a":"}\"}"} x"#, 12),
            (r#"[[],{"]":[]}]]"#, 13),
            (r#""\\"""#, 4),
            ("-1.5e+3,", 7),
            ("null]", 4),
        ] {
            assert_eq!(
                Value::of(text.as_bytes()).expect(text).0.len(),
                length,
                "{text}"
            );
        }
        for text in ["", " ", "{", r#"{"a":"}"#, r#""\""#, ":", "["] {
            assert!(Value::of(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_walked_over_without_a_stack() {
        let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(
            Value::of(text.as_bytes()).expect("array").0.len(),
            text.len()
        );
        assert_eq!(first_value(text.as_bytes()), Some(text.len()));
    }

    proptest! {
        #[test]
        fn decoding_agrees_with_serde_on_every_string(text in any::<String>()) {
            let raw = serde_json::to_vec(&text).expect("json");
            let own = Value(&raw).text();
            prop_assert_eq!(own.as_deref(), Some(text.as_str()));
        }

        #[test]
        fn arbitrary_bytes_are_walked_over_without_a_panic(bytes in any::<Vec<u8>>()) {
            if let Some(value) = Value::of(&bytes) {
                value.members(|_, _| {});
                value.items(|_| {});
                let _ = (value.text(), value.number());
            }
            let _ = first_value(&bytes);
        }
    }
}
