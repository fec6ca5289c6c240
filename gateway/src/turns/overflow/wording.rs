//! Looking for a wording in a text. No regular expressions: what varies is a number, or
//! anything on the way.

/// A wording: `#` stands for the number that is looked for, `%` for another, and `…` for
/// anything, up to a limit.
pub(super) type Wording = &'static str;

/// The longest way between two parts of a wording.
const MAX_GAP_BYTES: usize = 200;

/// A wording that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The number in it, where it has one.
    pub(super) number: Option<u64>,
}

/// Looks for a wording.
pub(super) fn find(wording: &str, text: &str) -> Option<Found> {
    let first = wording.split(['#', '%', '…']).next().unwrap_or_default();
    let starts = text.match_indices(first).map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let mut number = None;
        matches(wording, &text[at..], &mut number).then_some(Found { number })
    })
}

/// True where the text begins with the wording.
fn matches(wording: &str, text: &str, number: &mut Option<u64>) -> bool {
    let Some(at) = wording.find(['#', '%', '…']) else {
        return text.starts_with(wording);
    };
    let (literal, rest) = wording.split_at(at);
    let Some(text) = text.strip_prefix(literal) else {
        return false;
    };
    if let Some(rest) = rest.strip_prefix('…') {
        let limit = text.floor_char_boundary(MAX_GAP_BYTES);
        let next = rest.split(['#', '%', '…']).next().unwrap_or_default();
        let starts = text.match_indices(next).map(|(at, _)| at);
        return starts
            .take_while(|at| *at <= limit)
            .any(|at| matches(rest, &text[at..], number));
    }
    let is_wanted = rest.starts_with('#');
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != ',')
        .unwrap_or(text.len());
    let value = text[..digits].trim_end_matches(',').replace(',', "");
    let length = text[..digits].trim_end_matches(',').len();
    if length == 0 || !matches(&rest[1..], &text[length..], number) {
        return false;
    }
    if is_wanted {
        *number = value.parse().ok();
    }
    true
}
