//! Replies that nobody gets: the whole of one is `NO_REPLY`.

/// What an agent replies when there is nothing to say to anybody.
pub const NO_REPLY: &str = "NO_REPLY";
/// White space before a reply is not kept beyond this: a draft that is nothing else is not
/// silent.
const MAX_HELD_BYTES: usize = 4 * 1024;

/// True for a reply that is not delivered: nothing but the token, in whatever case.
#[must_use]
pub fn is_silent(reply: &str) -> bool {
    reply.trim().eq_ignore_ascii_case(NO_REPLY)
}

/// A reply while it is written. What could still become silent is held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    held: String,
    is_open: bool,
}

/// What is left of a reply at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was silent: nothing of it was delivered, and nothing is.
    Silent,
    /// This follows what was delivered; it may be empty.
    Rest(String),
}

impl Draft {
    /// Takes what was written next, and gives what may be delivered now; it may be empty.
    #[must_use]
    pub fn push(&mut self, more: &str) -> String {
        if self.is_open {
            return more.to_owned();
        }
        self.held.push_str(more);
        if could_be_silent(&self.held) {
            return String::new();
        }
        self.is_open = true;
        std::mem::take(&mut self.held)
    }

    /// The reply has ended.
    #[must_use]
    pub fn finish(self) -> Ending {
        if is_silent(&self.held) {
            Ending::Silent
        } else {
            Ending::Rest(self.held)
        }
    }
}

/// True for what is silent, or is once more of it is written.
fn could_be_silent(beginning: &str) -> bool {
    if beginning.len() > MAX_HELD_BYTES {
        return false;
    }
    let said = beginning.trim_start();
    match said.get(..NO_REPLY.len()) {
        Some(head) => {
            let rest = &said[NO_REPLY.len()..];
            head.eq_ignore_ascii_case(NO_REPLY) && rest.trim().is_empty()
        }
        None => NO_REPLY
            .get(..said.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(said)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reply_is_silent_where_the_token_is_all_of_it() {
        for reply in [
            "NO_REPLY",
            "no_reply",
            " No_Reply\n",
            "\u{a0}NO_REPLY\u{2003}",
        ] {
            assert!(is_silent(reply), "{reply}");
        }
        for reply in [
            "",
            " ",
            "NO_REPLY.",
            "NO REPLY",
            "NO_REPLY because",
            "ok NO_REPLY",
            "NO_REPLYNO_REPLY",
        ] {
            assert!(!is_silent(reply), "{reply}");
        }
    }

    #[test]
    fn a_draft_is_held_back_while_it_could_become_silent() {
        for (parts, delivered, ending) in [
            (&["NO", "_RE", "PLY"][..], &["", "", ""][..], Ending::Silent),
            (&[" ", "no_reply", " \n"], &["", "", ""], Ending::Silent),
            (
                &["N", "o, thanks", "."],
                &["", "No, thanks", "."],
                Ending::Rest(String::new()),
            ),
            (
                &["NO_REPLY", "!"],
                &["", "NO_REPLY!"],
                Ending::Rest(String::new()),
            ),
            (&["NO_"], &[""], Ending::Rest("NO_".to_owned())),
            (&["é"], &["é"], Ending::Rest(String::new())),
            (&["NO_REPL€"], &["NO_REPL€"], Ending::Rest(String::new())),
            (&[], &[], Ending::Rest(String::new())),
        ] {
            let mut draft = Draft::default();
            let found: Vec<String> = parts.iter().map(|part| draft.push(part)).collect();
            assert_eq!(found, delivered, "{parts:?}");
            assert_eq!(draft.finish(), ending, "{parts:?}");
        }
    }

    #[test]
    fn endless_white_space_is_not_kept() {
        let mut draft = Draft::default();
        let blank = " ".repeat(MAX_HELD_BYTES + 1);
        assert_eq!(draft.push(&blank), blank);
    }

    proptest! {
        #[test]
        fn nothing_of_a_silent_reply_and_all_of_any_other_is_delivered(
            parts in prop::collection::vec("[NnOo_RrEePpLlYy \n.é]{0,9}", 0..8),
        ) {
            let whole = parts.concat();
            let mut draft = Draft::default();
            let mut delivered = String::new();
            for part in &parts {
                delivered.push_str(&draft.push(part));
            }
            match draft.finish() {
                Ending::Silent => {
                    prop_assert!(is_silent(&whole));
                    prop_assert_eq!(delivered, "");
                }
                Ending::Rest(rest) => {
                    prop_assert!(!is_silent(&whole));
                    prop_assert_eq!(delivered + &rest, whole);
                }
            }
        }
    }
}
