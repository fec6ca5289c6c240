//! Networks as they are: whatever becomes of datagrams and connections, nothing is lost and
//! nothing counts twice.

mod namespaces;
mod suspended;
mod weather;

use tidings_tests::transcripts::{Claude, Transcript, Turn};
use tidings_tests::{Adopted, Follow, TwoMachines, counted_turns};

/// A thread of the node that is followed, and what was said in it.
struct Conversation {
    claude: Claude,
    session: Adopted,
    follow: Follow,
    turns: Vec<Turn>,
}

impl Conversation {
    fn begin(machines: &TwoMachines) -> Self {
        let claude = Claude::create(&machines.node.claude());
        let session = machines.adopt(&claude);
        let follow = machines.gateway.follow(session.version);
        Self {
            claude,
            session,
            follow,
            turns: Vec::new(),
        }
    }

    /// A human says something.
    fn say(&mut self, lines: usize) {
        let said = (0..lines).map(|_| self.claude.human("Stop the mill."));
        self.turns.extend(said);
    }

    /// Waits until all that was said is told.
    #[track_caller]
    fn all_told(&mut self) {
        self.follow
            .wait_for_turns(&self.session.key, self.turns.len());
    }

    /// Everything that was said is counted, and counted once: a last line is read behind all
    /// the others, so whatever would be counted twice is in the log before it.
    #[track_caller]
    fn counted_exactly(mut self, machines: &TwoMachines) {
        self.say(1);
        self.all_told();
        let counted = counted_turns(&machines.gateway, &self.session.key);
        assert_eq!(counted, self.turns);
    }
}
