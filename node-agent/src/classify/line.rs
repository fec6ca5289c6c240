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

/// Hands every record of a line to `each`, and what is none of them. Blanks, NULs and byte
/// order marks around records are passed over. Where the line does not parse, an object
/// that ends exactly at the line's end and has a type of the catalog is found behind what
/// was torn.
pub(crate) fn split(catalog: Option<Catalog>, line: &[u8], mut each: impl FnMut(Piece)) {
    let line_end = trimmed_len(line);
    let mut start = 0;
    loop {
        start += padding_len(&line[start..line_end]);
        if start >= line_end {
            return;
        }
        let rest = &line[start..line_end];
        let Some(length) = first_value(rest) else {
            return torn(catalog, line, start, line_end, each);
        };
        let end = start + length;
        each(if rest[0] == b'{' {
            Piece::Record { start, end }
        } else {
            Piece::Bad {
                start,
                end,
                rule: "not-an-object",
            }
        });
        start = end;
    }
}

/// Looks for a whole record behind a torn one, from the right: only its own beginning
/// parses up to the line's end.
fn torn(
    catalog: Option<Catalog>,
    line: &[u8],
    start: usize,
    end: usize,
    mut each: impl FnMut(Piece),
) {
    let glued = catalog.and_then(|catalog| last_record(catalog, &line[start + 1..end]));
    let bad_end = glued.map_or(end, |at| start + 1 + at);
    each(Piece::Bad {
        start,
        end: bad_end,
        rule: "not-json",
    });
    if bad_end < end {
        each(Piece::Record {
            start: bad_end,
            end,
        });
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

fn has_known_type(catalog: Catalog, object: &[u8]) -> bool {
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

    fn pieces(line: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        split(Some(Catalog::Claude), line, |piece| {
            let (start, end, rule) = match piece {
                Piece::Record { start, end } => (start, end, "record"),
                Piece::Bad { start, end, rule } => (start, end, rule),
            };
            let text = String::from_utf8_lossy(&line[start..end]);
            found.push(format!("{rule} {text}"));
        });
        found
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
            assert_eq!(pieces(line), expected, "{}", String::from_utf8_lossy(line));
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
            assert_eq!(pieces(line.as_bytes()), expected, "{torn}");
        }
        let unknown = r#"{"type":"assistant","message":{"type":"text"}"#;
        assert_eq!(pieces(unknown.as_bytes()), [format!("not-json {unknown}")]);
    }

    #[test]
    fn braces_inside_a_torn_text_use_up_no_retry() {
        let user = r#"{"type":"user","message":{"content":"x"}}"#;
        let torn = format!(
            r#"{{"type":"assistant","text":"{}"#,
            "fn f() { ".repeat(500)
        );
        assert_eq!(
            pieces(format!("{torn}{user}").as_bytes())[1],
            format!("record {user}")
        );
    }

    proptest! {
        #[test]
        fn pieces_lie_in_order_inside_any_line(line in any::<Vec<u8>>()) {
            let mut at = 0;
            split(Some(Catalog::Codex), &line, |piece| {
                let (Piece::Record { start, end } | Piece::Bad { start, end, .. }) = piece;
                assert!(at <= start && start < end && end <= line.len());
                at = end;
            });
        }
    }
}
