//! From a line to its records.

use tidings_protocol::Catalog;

use super::json::{Value, first_value};
use super::{claude, codex, openclaw};

/// How often a line that does not parse is tried again from a later `{`. Most lines need
/// one; the bound keeps a hostile line from costing its length squared.
const MAX_RETRIES: usize = 64;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A stretch of a line, in bytes from the line's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A complete JSON object.
    Record {
        /// Its first byte.
        start: usize,
        /// Behind its closing brace.
        end: usize,
    },
    /// Something else, and the name of what is wrong with it.
    Bad {
        /// Its first byte.
        start: usize,
        /// Behind its last byte.
        end: usize,
        /// `not-an-object` or `not-json`.
        rule: &'static str,
    },
}

impl Piece {
    /// Its first byte.
    pub(crate) fn start(self) -> usize {
        let (Self::Record { start, .. } | Self::Bad { start, .. }) = self;
        start
    }
}

/// Every record of a line, and what is none of them, in order. Blanks, NULs and byte order
/// marks around records are passed over. Where the line does not parse, an object that ends
/// exactly at the line's end and has a type of the catalog is found behind what was torn.
pub(crate) fn pieces(catalog: Option<Catalog>, line: &[u8]) -> impl Iterator<Item = Piece> {
    let mut rest = Rest {
        catalog,
        line: &line[..trimmed_len(line)],
        at: 0,
        glued: None,
    };
    std::iter::from_fn(move || rest.next())
}

/// What is left of a line.
struct Rest<'l> {
    catalog: Option<Catalog>,
    line: &'l [u8],
    at: usize,
    /// The whole record behind a torn one.
    glued: Option<Piece>,
}

impl Rest<'_> {
    fn next(&mut self) -> Option<Piece> {
        if let Some(glued) = self.glued.take() {
            return Some(glued);
        }
        self.at += padding_len(&self.line[self.at..]);
        let start = self.at;
        let rest = &self.line[start..];
        let first = *rest.first()?;
        let Some(length) = first_value(rest) else {
            return Some(self.torn(start));
        };
        let end = start + length;
        self.at = end;
        Some(if first == b'{' {
            Piece::Record { start, end }
        } else {
            Piece::Bad {
                start,
                end,
                rule: "not-an-object",
            }
        })
    }

    /// What does not parse, up to a whole record behind it or to the line's end.
    fn torn(&mut self, start: usize) -> Piece {
        let end = self.line.len();
        self.at = end;
        let glued = self
            .catalog
            .and_then(|catalog| last_record(catalog, &self.line[start + 1..]))
            .map(|at| start + 1 + at);
        self.glued = glued.map(|start| Piece::Record { start, end });
        Piece::Bad {
            start,
            end: glued.unwrap_or(end),
            rule: "not-json",
        }
    }
}

/// Where the record that ends with `bytes` begins.
pub(crate) fn last_record(catalog: Catalog, bytes: &[u8]) -> Option<usize> {
    if bytes.last() != Some(&b'}') {
        return None;
    }
    memchr::memrchr_iter(b'{', bytes)
        .filter(|at| opens_object(&bytes[at + 1..]))
        .take(MAX_RETRIES)
        .find(|at| {
            let object = &bytes[*at..];
            first_value(object) == Some(object.len()) && has_known_type(catalog, object)
        })
}

/// True when a key can follow: inside a string a quote is escaped, so hardly any `{` of a
/// text passes.
fn opens_object(behind: &[u8]) -> bool {
    let first = behind.iter().find(|b| !b.is_ascii_whitespace());
    first == Some(&b'"')
}

/// True for an object whose type some build of the catalog's program writes.
pub(crate) fn has_known_type(catalog: Catalog, object: &[u8]) -> bool {
    let kind = Value::of(object).and_then(|object| object.get("type"));
    let Some(kind) = kind.and_then(Value::text) else {
        return false;
    };
    let types = match catalog {
        Catalog::Claude => claude::TYPES,
        Catalog::Codex => codex::TYPES,
        Catalog::Openclaw => openclaw::TYPES,
    };
    types.contains(&&*kind)
}

/// How many bytes of a line are left without the blanks and NULs at its end.
pub(crate) fn trimmed_len(line: &[u8]) -> usize {
    line.iter()
        .rposition(|byte| !is_padding(*byte))
        .map_or(0, |last| last + 1)
}

fn padding_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if rest.starts_with(BOM) {
            at += BOM.len();
        } else if rest.first().is_some_and(|byte| is_padding(*byte)) {
            at += 1;
        } else {
            return at;
        }
    }
}

fn is_padding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(line: &[u8]) -> Vec<String> {
        let show = |piece| {
            let (start, end, rule) = match piece {
                Piece::Record { start, end } => (start, end, "record"),
                Piece::Bad { start, end, rule } => (start, end, rule),
            };
            format!("{rule} {}", String::from_utf8_lossy(&line[start..end]))
        };
        pieces(Some(Catalog::Claude), line).map(show).collect()
    }

    #[test]
    fn a_line_is_taken_apart() {
        for (line, expected) in [
            (&b""[..], &[][..]),
            (b" \t\r", &[]),
            (b"\0\0\0\0", &[]),
            (b"\xef\xbb\xbf", &[]),
            (b"{\"a\":1}\r", &["record {\"a\":1}"]),
            (b"\xef\xbb\xbf{\"a\":1}", &["record {\"a\":1}"]),
            (b"\0\0{\"a\":1}\0\0\0", &["record {\"a\":1}"]),
            (
                b"{\"a\":1}{\"b\":2}",
                &["record {\"a\":1}", "record {\"b\":2}"],
            ),
            (
                b"{\"a\":1}\0 {\"b\":2}",
                &["record {\"a\":1}", "record {\"b\":2}"],
            ),
            (b"null", &["not-an-object null"]),
            (b"[1,2]", &["not-an-object [1,2]"]),
            (
                b"null{\"a\":1}",
                &["not-an-object null", "record {\"a\":1}"],
            ),
            (
                b"null {\"a\":1} 7",
                &["not-an-object null", "record {\"a\":1}", "not-an-object 7"],
            ),
            (b"{\"a\":", &["not-json {\"a\":"]),
            (b"garbage", &["not-json garbage"]),
            (b"{\"a\":1},", &["record {\"a\":1}", "not-json ,"]),
        ] {
            assert_eq!(shown(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_record_behind_a_torn_one_is_found_if_its_type_is_known() {
        let user = r#"{"type":"user","message":{"content":[{"type":"text","text":"{{{ \"{\""}]}}"#;
        for torn in [
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"abc"#,
            r#"{"type":"assistant","message":"#,
            r#"{"type":"assistant","list":[1,"#,
            r#"{"type":"assistant","n":12"#,
            r#"{"type":"assistant","text":"a\"#,
            "abc",
        ] {
            let line = format!("{torn}{user}");
            let expected = [format!("not-json {torn}"), format!("record {user}")];
            assert_eq!(shown(line.as_bytes()), expected, "{torn}");
        }
        let unknown = r#"{"type":"assistant","message":{"type":"text"}"#;
        assert_eq!(shown(unknown.as_bytes()), [format!("not-json {unknown}")]);
    }

    #[test]
    fn braces_inside_a_torn_text_use_up_no_retry() {
        let user = r#"{"type":"user","message":{"content":"x"}}"#;
        let torn = format!(
            r#"{{"type":"assistant","text":"{}"#,
            "fn f() { ".repeat(500)
        );
        assert_eq!(
            shown(format!("{torn}{user}").as_bytes())[1],
            format!("record {user}")
        );
    }

    proptest! {
        #[test]
        fn pieces_lie_in_order_inside_any_line(line in any::<Vec<u8>>()) {
            let mut at = 0;
            for piece in pieces(Some(Catalog::Codex), &line) {
                let (Piece::Record { start, end } | Piece::Bad { start, end, .. }) = piece;
                assert!(at <= start && start < end && end <= line.len());
                at = end;
            }
        }
    }
}
