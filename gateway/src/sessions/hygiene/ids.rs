//! Ids of calls, as a provider accepts them: letters, digits, `-` and `_`, not too long.

use std::collections::BTreeMap;

use tidings_protocol::digest::{hex, sha256};

use super::{Block, Mended, Message};

/// How much of an id's digest stands in the id that takes its place.
const DIGEST_BYTES: usize = 8;

/// Writes every id so that it is accepted: an id of a call and that of its result alike, and
/// two that differ still differ.
pub(super) fn mend(messages: &mut [Message], limit: usize, mended: &mut Mended) {
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        let (Block::ToolCall { id, .. } | Block::ToolOutput { call_id: id, .. }) = block else {
            continue;
        };
        if is_accepted(id, limit) {
            continue;
        }
        let accepted = written.entry(id.clone()).or_insert_with(|| {
            mended.ids += 1;
            rewritten(id, limit)
        });
        accepted.clone_into(id);
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn is_accepted(id: &str, limit: usize) -> bool {
    (1..=limit).contains(&id.len()) && id.chars().all(is_plain)
}

fn rewritten(id: &str, limit: usize) -> String {
    let digest = hex(&sha256(id.as_bytes())[..DIGEST_BYTES]);
    let room = limit.saturating_sub(digest.len() + 1);
    let kept: String = id.chars().filter(|c| is_plain(*c)).take(room).collect();
    format!("{kept}_{digest}")
}
