//! Writes transcripts down in every way JSON allows, and in some that it does not.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tidings_protocol::Catalog;

use super::{Dice, record};

/// Writes a value as some program might: keys in any order, some of them twice, blanks
/// between, letters as escapes.
pub(crate) fn write(value: &Value, dice: &mut Dice<'_>, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            if !names.is_empty() {
                let turn = dice.roll(names.len());
                names.rotate_left(turn);
            }
            out.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                if dice.one_in(40) {
                    // The last of two counts.
                    write_text(name, dice, out);
                    out.push_str(":\"assistant\",");
                }
                write_text(name, dice, out);
                out.push_str(if dice.one_in(30) { " : " } else { ":" });
                write(&members[name], dice, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, dice, out);
            }
            out.push(']');
        }
        Value::String(text) => write_text(text, dice, out),
        other => out.push_str(&other.to_string()),
    }
}

fn write_text(text: &str, dice: &mut Dice<'_>, out: &mut String) {
    let plain = serde_json::to_string(text).expect("json");
    if !dice.one_in(25) || plain.contains('\\') || text.is_empty() {
        out.push_str(&plain);
        return;
    }
    let hidden = dice.roll(text.chars().count());
    out.push('"');
    for (at, c) in text.chars().enumerate() {
        if at == hidden {
            write!(out, "\\u{:04x}", u32::from(c)).expect("text");
        } else {
            out.push(c);
        }
    }
    out.push('"');
}

/// Makes a record too long for any window, with members that decide nothing.
fn blow_up(record: &mut Value, dice: &mut Dice<'_>) {
    const BYTES: usize = 1_200_000;
    let filler = match dice.roll(5) {
        0 => json!("x".repeat(BYTES)),
        1 => json!("\"\\\n".repeat(BYTES / 6)),
        2 => json!(vec![17; BYTES / 3]),
        3 => json!(vec![
            json!({"type": "user", "message": {"content": "no"}});
            BYTES / 47
        ]),
        _ => {
            let deep = (0..80).fold(json!("y".repeat(BYTES)), |inner, _| json!([inner]));
            json!({"type": "text", "deep": deep})
        }
    };
    let inner = ["message", "attachment", "payload"];
    let name = inner.into_iter().find(|name| record[*name].is_object());
    let place = match name {
        Some(name) if dice.one_in(2) => &mut record[name],
        _ => record,
    };
    let name = dice.pick(&["aaa", "toolUseResult2", "zzz"]);
    place[name] = filler;
}

/// How long the records of a transcript are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    /// Some are too long for a window.
    Long,
}

/// A whole transcript: records, and what goes wrong between them.
pub(crate) fn transcript(dice: &mut Dice<'_>, catalog: Catalog, length: Length) -> Vec<u8> {
    let mut file = Vec::new();
    let count = 1 + dice.roll(if length == Length::Long { 5 } else { 16 });
    for _ in 0..count {
        let mut line = String::new();
        if dice.one_in(20) {
            line.push_str(dice.pick(&[
                "null", "\u{feff}", "\0\0", "[1]", "[]", "\"text\"", " ", "7 ", "\n",
            ]));
        }
        let is_torn = dice.one_in(16);
        if is_torn {
            let mut torn = String::new();
            write(&record(dice, catalog), dice, &mut torn);
            let cut = (torn.len() * dice.roll(256)) >> 8;
            line.push_str(&torn[..cut.max(1)]);
        }
        let mut whole = record(dice, catalog);
        if length == Length::Long && dice.one_in(2) {
            blow_up(&mut whole, dice);
        }
        write(&whole, dice, &mut line);
        file.extend_from_slice(line.as_bytes());
        let end = dice.roll(16);
        // More than one record behind a torn one, and long: nobody looks for that.
        let must_end = is_torn && length == Length::Long;
        file.extend_from_slice(match if must_end { 0 } else { end } {
            14 => b"\r\n",
            15 => b"",
            13 => b"\0\n",
            _ => b"\n",
        });
    }
    file
}
