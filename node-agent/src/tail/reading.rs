//! Reads one page.

use std::io;

use super::draft::Draft;
use super::lines::{Lines, Step};

/// Where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is more to read.
    More,
    /// At the end of the file.
    Settled,
    /// At the end of the file, whose last line may still grow.
    Unsettled,
    /// The file changed while it was read.
    Changed,
}

/// Reads lines into the draft until it is full or nothing is left. `is_still` says that the
/// file has not grown for long enough to take its unterminated last line.
pub(super) fn read_page(
    lines: &mut Lines<'_>,
    draft: &mut Draft<'_>,
    is_still: bool,
) -> io::Result<End> {
    loop {
        if draft.is_full() {
            return Ok(End::More);
        }
        match lines.next()? {
            Step::Run { start, bytes } => {
                if let Some(offset) = draft.run(start, bytes) {
                    lines.go_to(offset);
                    return Ok(End::More);
                }
            }
            Step::Long(piece) => draft.long(&piece),
            Step::LongEnd => {}
            Step::Tail { .. } if !is_still => {
                return Ok(if lines.has_tail() {
                    End::Unsettled
                } else {
                    End::Settled
                });
            }
            Step::Tail { start, bytes } => {
                let taken = draft.tail(start, bytes);
                return Ok(settle(lines, draft, taken));
            }
            Step::Pause => return Ok(End::More),
            Step::Changed => return Ok(End::Changed),
        }
    }
}

/// Nothing more comes for now: what is complete is taken, what waits counts.
fn settle(lines: &mut Lines<'_>, draft: &mut Draft<'_>, taken: Option<u64>) -> End {
    if let Some(offset) = taken {
        lines.go_to(offset);
    }
    if draft.is_full() {
        return End::More;
    }
    if let Some(piece) = lines.long_tail() {
        draft.long(&piece);
    }
    draft.settle();
    if draft.is_waiting() {
        End::More
    } else {
        End::Settled
    }
}
