//! Replies larger than a frame travel in parts: each but the last is wrapped as `part`.

use std::ops::Range;

use super::{ApiError, ErrorType, Reply};
use crate::wire::frame::{FrameError, encode};

impl Reply {
    /// This reply as the frames that carry it, in order. A reply that fits is one frame; a
    /// list that does not is cut in halves until every part fits.
    pub fn into_frames(self) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut frames = Vec::new();
        push_frames(self, Last::Yes, &mut frames)?;
        Ok(frames)
    }

    /// This reply as the frames that answer a request. One that no frames can carry becomes an
    /// error that says so: whoever asked is never left without an answer.
    pub fn into_answer(self) -> Result<Vec<Vec<u8>>, FrameError> {
        self.into_frames()
            .or_else(|error| Self::Error(uncarried(&error)).into_frames())
    }

    /// Adds the next part to this one. Parts of different replies do not go together: then
    /// the newer one stands alone.
    #[must_use]
    pub fn merge(mut self, mut next: Self) -> Self {
        let (mine, theirs) = (self.lists_mut(), next.lists_mut());
        let go_together = !mine.is_empty() && mine.len() == theirs.len();
        let pairs = mine.into_iter().zip(theirs);
        if go_together && pairs.fold(true, |all, (mine, theirs)| mine.append(theirs) && all) {
            return self;
        }
        next
    }

    /// The lists of this reply that can grow without bound.
    fn lists_mut(&mut self) -> Vec<List<'_>> {
        vec![match self {
            Self::Status(status) => List::Links(&mut status.links),
            Self::NodesList(nodes) => {
                return vec![
                    List::Nodes(&mut nodes.nodes),
                    List::Invitations(&mut nodes.invitations),
                ];
            }
            Self::CatalogList(page) => List::Threads(&mut page.threads),
            Self::SessionsList(page) => List::Sessions(&mut page.sessions),
            Self::AgentsList(page) => List::Agents(&mut page.agents),
            Self::SessionStatus(status) => match &mut status.state_changes {
                Some(changes) => List::Changes(&mut changes.events),
                None => return Vec::new(),
            },
            Self::WatchList(page) => List::Watches(&mut page.watches),
            Self::Notices(page) => List::Notices(&mut page.notices),
            Self::TurnBegin(begun) => {
                return vec![
                    List::Notices(&mut begun.notices),
                    List::Messages(&mut begun.messages),
                ];
            }
            Self::Wakes(page) => List::Wakes(&mut page.wakes),
            Self::Signals(page) => List::Signals(&mut page.signals),
            Self::SignalsWhy(why) => List::Evidence(&mut why.evidence),
            Self::SessionsCleanup(done) => List::CleanupActions(&mut done.actions),
            Self::Check(page) => List::Findings(&mut page.findings),
            Self::CertInspect(page) => List::Certificates(&mut page.certificates),
            Self::TokenList(page) => List::Tokens(&mut page.tokens),
            Self::NodeStatus(status) => List::NodeLinks(&mut status.links),
            _ => return Vec::new(),
        }]
    }

    /// How many rows its lists have together.
    fn rows(&mut self) -> usize {
        self.lists_mut().iter().map(List::len).sum()
    }

    /// Keeps these rows of its lists, counted through from the first list to the last.
    fn keep(&mut self, rows: &Range<usize>) {
        let mut first = 0;
        for list in self.lists_mut() {
            let len = list.len();
            let within = |row: usize| row.clamp(first, first + len) - first;
            let range = within(rows.start)..within(rows.end);
            list.keep(range);
            first += len;
        }
    }
}

fn uncarried(error: &FrameError) -> ApiError {
    let message = format!("the answer cannot be sent: {error}");
    match error {
        FrameError::Oversized { .. } => ApiError::new(ErrorType::InvalidData, message)
            .with_hint("one value in it is too long: shorten it where it is kept"),
        _ => ApiError::new(ErrorType::Internal, message),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Yes,
    No,
}

fn push_frames(mut reply: Reply, last: Last, frames: &mut Vec<Vec<u8>>) -> Result<(), FrameError> {
    let whole = match last {
        Last::Yes => encode(&reply),
        Last::No => encode(&Reply::Part(Box::new(reply.clone()))),
    };
    let error = match whole {
        Ok(frame) => {
            frames.push(frame);
            return Ok(());
        }
        Err(error) => error,
    };
    let rows = reply.rows();
    let half = rows / 2;
    if half == 0 {
        return Err(error);
    }
    let mut rest = reply.clone();
    reply.keep(&(0..half));
    rest.keep(&(half..rows));
    push_frames(reply, Last::No, frames)?;
    push_frames(rest, last, frames)
}

macro_rules! lists {
    ($($name:ident: $row:ty),*) => {
        enum List<'a> { $($name(&'a mut Vec<$row>)),* }

        impl List<'_> {
            fn len(&self) -> usize {
                match self { $(Self::$name(rows) => rows.len()),* }
            }

            fn keep(self, range: Range<usize>) {
                match self { $(Self::$name(rows) => {
                    rows.truncate(range.end);
                    rows.drain(..range.start);
                }),* }
            }

            /// False when the two lists are of different kinds.
            fn append(self, next: List<'_>) -> bool {
                match (self, next) {
                    $((Self::$name(rows), List::$name(more)) => { rows.append(more); true })*
                    _ => false,
                }
            }
        }
    };
}

lists!(
    Links: super::LinkStatus,
    Nodes: super::Node,
    Invitations: super::OpenInvitation,
    Threads: super::CatalogThread,
    Sessions: super::SessionRow,
    Changes: super::StateChange,
    Watches: super::Watch,
    Notices: super::Notice,
    Messages: super::TurnMessage,
    Wakes: super::Wake,
    Findings: super::Finding,
    Certificates: super::CertificateRow,
    Tokens: super::TokenRow,
    CleanupActions: super::CleanupAction,
    Signals: super::SignalRow,
    Evidence: super::SignalEvidence,
    NodeLinks: super::NodeLinkStatus,
    Agents: super::AgentRow
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_api::{Notice, Notices, TurnBegun, TurnMessage};
    use crate::wire::frame::{HEADER_BYTES, MAX_FRAME_BYTES, decode};

    fn notices(count: u64) -> Reply {
        let target = crate::SessionKey::parse(&"k".repeat(500)).expect("key");
        let notice = |n| Notice {
            target: target.clone(),
            text: "t".repeat(500),
            changes_since: n,
        };
        Reply::Notices(Notices {
            notices: (0..count).map(notice).collect(),
        })
    }

    /// As much as one turn can hand out: notices, and messages of the largest size.
    fn turn(count: u64) -> Reply {
        let Reply::Notices(page) = notices(count) else {
            panic!("notices");
        };
        let message = |id| TurnMessage {
            id,
            sender: None,
            body: "m".repeat(128 * 1024),
            sent_at: 0,
        };
        Reply::TurnBegin(TurnBegun {
            token: Some("07".repeat(16)),
            notices: page.notices,
            messages: (0..count / 50).map(message).collect(),
        })
    }

    #[test]
    fn a_list_larger_than_a_frame_travels_in_parts_and_comes_out_whole() {
        for count in [0, 1, 50, 240, 1_000] {
            for reply in [notices(count), turn(count)] {
                assert_eq!(travelled(reply.clone()), reply, "{count}");
            }
        }
    }

    fn travelled(reply: Reply) -> Reply {
        let frames = reply.into_frames().expect("frames");
        let mut whole: Option<Reply> = None;
        for (at, frame) in frames.iter().enumerate() {
            assert!(frame.len() <= MAX_FRAME_BYTES + HEADER_BYTES);
            let reply = decode::<Reply>(&frame[HEADER_BYTES..]).expect("reply");
            let part = match reply {
                Reply::Part(part) => {
                    assert!(at + 1 < frames.len(), "the last is no part");
                    *part
                }
                last => {
                    assert_eq!(at + 1, frames.len(), "only the last is whole");
                    last
                }
            };
            whole = Some(match whole {
                Some(so_far) => so_far.merge(part),
                None => part,
            });
        }
        whole.expect("at least one frame")
    }

    #[test]
    fn parts_of_different_replies_do_not_go_together() {
        assert_eq!(notices(1).merge(turn(50)), turn(50));
        assert_eq!(turn(50).merge(notices(1)), notices(1));
    }

    #[test]
    fn a_single_row_beyond_a_frame_is_an_error_not_a_loop() {
        let mut reply = notices(1);
        if let Reply::Notices(page) = &mut reply {
            page.notices[0].text = "t".repeat(MAX_FRAME_BYTES);
        }
        assert!(matches!(
            reply.clone().into_frames(),
            Err(FrameError::Oversized { .. })
        ));
        let frames = reply.into_answer().expect("an answer");
        assert_eq!(frames.len(), 1);
        let Reply::Error(error) = decode(&frames[0][HEADER_BYTES..]).expect("a reply") else {
            panic!("no error");
        };
        assert_eq!(error.error_type, ErrorType::InvalidData);
        let limit = format!("over the limit of {MAX_FRAME_BYTES}");
        assert!(error.message.ends_with(&limit), "{error}");
        assert!(error.hint.is_some());
    }

    #[test]
    fn an_answer_that_can_be_carried_is_what_it_was() {
        for count in [1, 1_000] {
            let reply = notices(count);
            assert_eq!(reply.clone().into_answer(), reply.into_frames());
        }
    }
}
