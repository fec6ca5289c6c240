//! How much one turn takes; the rest waits for the next, in order.

use super::messages::QueuedMessage;
use super::notices::Pending;
use crate::awareness::notice::notice;

/// How many bytes of messages one turn takes, at most, but always one message: what a
/// frame carries.
const MAX_TURN_MESSAGE_BYTES: usize = 160 * 1024;
/// How many bytes one hook hands out, at most, but always one notice or message: of a
/// longer answer a program shows only a beginning.
const MAX_HOOK_BYTES: usize = 9_000;
/// What stands around a message in a hook's answer, at most: its sender is a session key.
const HOOK_MESSAGE_HEAD: usize = 640;

/// Who takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// A turn that was begun by a request.
    Turn,
    /// A hook, whose answer becomes part of a prompt.
    Hook,
    /// A hook that wakes its program, which messages do not.
    Wake,
}

impl Room {
    /// Keeps what fits: notices before messages.
    pub(crate) fn cut(self, pending: &mut Vec<Pending>, messages: &mut Vec<QueuedMessage>) {
        match self {
            Self::Turn => {
                let bodies = messages.iter().map(|message| message.body.len());
                let fitting = fitting(bodies, &mut { MAX_TURN_MESSAGE_BYTES });
                messages.truncate(fitting);
            }
            Self::Hook | Self::Wake => {
                if self == Self::Wake {
                    messages.clear();
                }
                let mut room = MAX_HOOK_BYTES;
                let lines = pending.iter().map(|pending| {
                    let line = notice(&pending.target, pending.row.cursor.last_seen());
                    line.text.len() + 1
                });
                let notices = fitting(lines, &mut room).max(1);
                pending.truncate(notices);
                let bodies = messages
                    .iter()
                    .map(|message| message.body.len() + HOOK_MESSAGE_HEAD);
                let fitting = fitting(bodies, &mut room);
                let least = usize::from(pending.is_empty());
                messages.truncate(fitting.max(least));
            }
        }
    }
}

/// How many of these, one after the other, fit the room.
fn fitting(sizes: impl Iterator<Item = usize>, room: &mut usize) -> usize {
    sizes
        .take_while(|size| {
            let fits = size <= room;
            *room = room.saturating_sub(*size);
            fits
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(sizes: &[usize]) -> Vec<QueuedMessage> {
        let message = |(id, size): (usize, &usize)| QueuedMessage {
            id: id as u64,
            sender: None,
            body: "m".repeat(*size),
            sent_at: 0,
        };
        sizes.iter().enumerate().map(message).collect()
    }

    #[test]
    fn a_hook_hands_out_what_a_prompt_shows_whole_and_never_nothing() {
        for (sizes, kept) in [
            (&[][..], 0),
            (&[100, 100, 100], 3),
            (&[8_000, 8_000], 1),
            (&[128 * 1024, 10], 1),
            (&[4_000, 4_000, 10], 1),
        ] {
            let mut taken = messages(sizes);
            Room::Hook.cut(&mut Vec::new(), &mut taken);
            assert_eq!(taken.len(), kept, "{sizes:?}");
        }
    }

    #[test]
    fn a_turn_takes_what_a_frame_carries() {
        for (sizes, kept) in [
            (&[128 * 1024, 32 * 1024, 1][..], 2),
            (&[100, 100], 2),
            (&[128 * 1024, 64 * 1024], 1),
        ] {
            let mut taken = messages(sizes);
            Room::Turn.cut(&mut Vec::new(), &mut taken);
            assert_eq!(taken.len(), kept, "{sizes:?}");
        }
    }
}
