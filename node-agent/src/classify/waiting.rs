//! Records that look human and wait for what follows them.

use tidings_protocol::digest::ShortDigest;
use tidings_protocol::marker::{Carried, MAX_WAITING_RECORDS, WaitingRecord};

use super::Ruling;

/// After this many more records nothing is expected to speak against a waiting one: the
/// program writes its own event for a message one record after the item.
const RECORDS_TO_WAIT: u8 = 4;

/// A waiting record and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) record: WaitingRecord,
    pub(crate) ruling: Ruling,
}

impl Earlier {
    fn counts(record: WaitingRecord) -> Self {
        Self {
            record,
            ruling: Ruling::human("response-item"),
        }
    }
}

/// Another record followed: those that have waited long enough count.
pub(crate) fn another_follows(carried: &mut Carried) -> Vec<Earlier> {
    if carried.waiting.is_empty() {
        return Vec::new();
    }
    for record in &mut carried.waiting {
        record.followed_by = record.followed_by.saturating_add(1);
    }
    let is_due = |record: &mut WaitingRecord| record.followed_by >= RECORDS_TO_WAIT;
    let due = carried.waiting.extract_if(.., is_due);
    due.map(Earlier::counts).collect()
}

/// Nothing follows any more: the oldest waiting record counts.
pub(crate) fn settle(carried: &mut Carried) -> Option<Earlier> {
    if carried.waiting.is_empty() {
        return None;
    }
    Some(Earlier::counts(carried.waiting.remove(0)))
}

/// Lets a record wait.
pub(super) fn hold(carried: &mut Carried, record: WaitingRecord) -> Vec<Earlier> {
    let mut earlier = Vec::new();
    if carried.waiting.len() >= MAX_WAITING_RECORDS {
        earlier.extend(settle(carried));
    }
    carried.waiting.push(record);
    earlier
}

/// The program's own event for a message came: it counts, and neither the item of the same
/// text nor one that does not say what it is made of.
pub(super) fn event_came(carried: &mut Carried, text: ShortDigest) -> Vec<Earlier> {
    let twin = carried
        .waiting
        .iter()
        .position(|record| record.text == text);
    let twin = twin.map(|at| Earlier {
        record: carried.waiting.remove(at),
        ruling: Ruling::not("duplicate-of-event"),
    });
    let others = carried.waiting.extract_if(.., |record| !record.has_kinds);
    let others = others.map(|record| Earlier {
        record,
        ruling: Ruling::not("response-item-after-event"),
    });
    twin.into_iter().chain(others).collect()
}
