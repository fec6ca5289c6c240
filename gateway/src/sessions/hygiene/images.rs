//! How many images there may be, and how large.

use super::{Block, Mended, Message, Rules};

const LEFT_OUT: &str = "[image left out]";

/// Leaves out images that are too large, and the oldest of those that are too many.
pub(super) fn limit(messages: &mut [Message], rules: &Rules, mended: &mut Mended) {
    let mut room = rules.images;
    let newest_first = messages
        .iter_mut()
        .rev()
        .flat_map(|message| message.content.iter_mut().rev());
    for block in newest_first {
        let Block::Image { data, .. } = block else {
            continue;
        };
        if data.len() <= rules.image_bytes && room > 0 && !data.is_empty() {
            room -= 1;
            continue;
        }
        mended.images += 1;
        *block = Block::Text {
            text: LEFT_OUT.to_owned(),
        };
    }
}
