//! What a watcher must be told, as the specification's sections 4.3 and 4.4 say it: in lists
//! of events, without cursors.

use std::collections::BTreeSet;

use tidings_gateway::state::TurnToken;

use crate::op::Turn;

/// How many turns a watcher remembers, to settle them: of those before, all is too late.
const REMEMBERED: usize = 2;

/// What one watcher was told of the target, and what it must still be told.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    watch: Option<Watch>,
    /// The last turns that took something, the newest first.
    turns: Vec<Lease>,
    /// How many turns took something.
    begun: u64,
}

#[derive(Debug)]
struct Watch {
    /// What the pending notice names, or the next one will.
    since: u64,
    /// The events that the pending notice speaks of: the first opened it, the others came
    /// while it was frozen. None while nothing is pending.
    unread: Vec<u64>,
    /// The turn that was handed the pending notice last.
    handed: Option<u64>,
    /// Everything that the watcher has not been shown for certain, with the turns that were
    /// handed a notice since which it would have been seen.
    unseen: Vec<Unseen>,
}

#[derive(Debug)]
struct Unseen {
    event: u64,
    shown_to: BTreeSet<u64>,
}

#[derive(Debug)]
struct Lease {
    number: u64,
    token: TurnToken,
    standing: LeaseStanding,
}

/// How a turn's lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LeaseStanding {
    Open,
    /// It has run out, and nobody has looked after it yet.
    Lapsed,
    /// Released, or looked after.
    Closed,
    Confirmed,
}

/// What tells one watcher's past from another, with all numbers made relative.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Past {
    watch: Option<PastWatch>,
    turns: Vec<LeaseStanding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct PastWatch {
    /// How many events are unread; whatever comes after the second is one and the same
    /// remainder.
    unread: usize,
    /// Which of the turns was handed the pending notice.
    handed: Option<usize>,
    /// To which of the turns the unseen events were shown.
    shown: BTreeSet<BTreeSet<usize>>,
}

impl Watcher {
    /// The version that the pending notice names.
    pub(crate) fn pending(&self) -> Option<u64> {
        let watch = self.watch.as_ref()?;
        (!watch.unread.is_empty()).then_some(watch.since)
    }

    /// What it has seen.
    pub(crate) fn since(&self) -> Option<u64> {
        self.watch.as_ref().map(|watch| watch.since)
    }

    pub(crate) fn token(&self, turn: Turn) -> Option<TurnToken> {
        self.lease(turn).map(|lease| lease.token)
    }

    /// Somebody else changed the target. True when that opens a notice.
    pub(crate) fn event(&mut self, event: u64) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        watch.unread.push(event);
        watch.unseen.push(Unseen {
            event,
            shown_to: BTreeSet::new(),
        });
        watch.unread.len() == 1
    }

    /// The watcher spawned the target: it knows it as it was then, but keeps what is pending.
    pub(crate) fn spawned(&mut self, event: u64) {
        self.watch(event);
        if let Some(watch) = &mut self.watch
            && watch.unread.is_empty()
        {
            watch.since = event;
        }
    }

    /// Watches from `head` on, or goes on watching. The version it watches from.
    pub(crate) fn watch(&mut self, head: u64) -> u64 {
        let watch = self.watch.get_or_insert(Watch {
            since: head,
            unread: Vec::new(),
            handed: None,
            unseen: Vec::new(),
        });
        watch.since
    }

    /// True when there was a watch to end.
    pub(crate) fn unwatch(&mut self) -> bool {
        self.watch.take().is_some()
    }

    /// A new conversation because time has passed: what was pending is of no use to it.
    pub(crate) fn roll_over(&mut self) -> u64 {
        let Some(watch) = &mut self.watch else {
            return 0;
        };
        let Some(newest) = watch.unread.last().copied() else {
            return 0;
        };
        *watch = Watch {
            since: newest,
            unread: Vec::new(),
            handed: None,
            unseen: Vec::new(),
        };
        1
    }

    /// True while an open lease holds the pending notice.
    fn held(&self) -> bool {
        let handed = self.watch.as_ref().and_then(|watch| watch.handed);
        let open = |lease: &Lease| lease.standing == LeaseStanding::Open;
        self.turns
            .iter()
            .any(|lease| Some(lease.number) == handed && open(lease))
    }

    /// The pending notice, where no open lease holds it.
    pub(crate) fn available(&self) -> Option<u64> {
        self.pending().filter(|_| !self.held())
    }

    /// A turn took the pending notice.
    pub(crate) fn handed_out(&mut self, token: TurnToken) {
        self.begun += 1;
        let number = self.begun;
        self.turns.insert(
            0,
            Lease {
                number,
                token,
                standing: LeaseStanding::Open,
            },
        );
        self.turns.truncate(REMEMBERED);
        if let Some(watch) = &mut self.watch {
            watch.handed = Some(number);
            watch.show(number);
        }
    }

    /// Confirms a turn: what it applies to, and whether that opens another notice. Late is
    /// not too late, but for what was handed out again.
    pub(crate) fn confirm(&mut self, turn: Turn) -> (u64, bool) {
        let Some(number) = self.settle(turn, LeaseStanding::Confirmed) else {
            return (0, false);
        };
        if !self.is_handed_to(number) {
            return (0, false);
        }
        (1, self.took(number))
    }

    /// Releases a turn: what becomes available again.
    pub(crate) fn release(&mut self, turn: Turn) -> u64 {
        let Some(lease) = self.lease(turn) else {
            return 0;
        };
        let running = matches!(lease.standing, LeaseStanding::Open | LeaseStanding::Lapsed);
        if !running {
            return 0;
        }
        let number = lease.number;
        self.settle(turn, LeaseStanding::Closed);
        u64::from(self.is_handed_to(number))
    }

    /// Takes the available notice and confirms it at once. Whether that opens another.
    pub(crate) fn drain(&mut self) -> bool {
        self.begun += 1;
        let number = self.begun;
        if let Some(watch) = &mut self.watch {
            watch.show(number);
        }
        self.took(number)
    }

    /// A look at the target confirms what a running turn was told of it. Whether that opens
    /// another notice.
    pub(crate) fn look(&mut self) -> bool {
        let handed = self.watch.as_ref().and_then(|watch| watch.handed);
        match handed {
            Some(number) if self.held() && self.pending().is_some() => self.took(number),
            _ => false,
        }
    }

    pub(crate) fn lapse(&mut self) {
        for lease in &mut self.turns {
            if lease.standing == LeaseStanding::Open {
                lease.standing = LeaseStanding::Lapsed;
            }
        }
    }

    /// Closes the leases that have run out. True when that makes the notice available.
    pub(crate) fn close_lapsed(&mut self) -> bool {
        let mut available = false;
        for at in 0..self.turns.len() {
            if self.turns[at].standing == LeaseStanding::Lapsed {
                self.turns[at].standing = LeaseStanding::Closed;
                available |= self.is_handed_to(self.turns[at].number);
            }
        }
        available
    }

    /// The events by others that would be lost: neither shown for certain, nor to be seen
    /// since what the pending notice names.
    pub(crate) fn lost(&self) -> Vec<u64> {
        let Some(watch) = &self.watch else {
            return Vec::new();
        };
        let pending = self.pending();
        let unseen = watch.unseen.iter().map(|unseen| unseen.event);
        unseen
            .filter(|event| pending.is_none_or(|since| since >= *event))
            .collect()
    }

    /// What tells this past from another.
    pub(crate) fn past(&self) -> Past {
        let place = |number: u64| self.turns.iter().position(|lease| lease.number == number);
        let watch = self.watch.as_ref().map(|watch| {
            let shown =
                |unseen: &Unseen| unseen.shown_to.iter().copied().filter_map(place).collect();
            PastWatch {
                unread: watch.unread.len().min(2),
                handed: watch.handed.and_then(place),
                shown: watch.unseen.iter().map(shown).collect(),
            }
        });
        Past {
            watch,
            turns: self.turns.iter().map(|lease| lease.standing).collect(),
        }
    }

    /// The tokens of the last turns, the newest first.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = TurnToken> {
        self.turns.iter().map(|lease| lease.token)
    }

    fn lease(&self, turn: Turn) -> Option<&Lease> {
        self.turns.get(turn as usize)
    }

    fn settle(&mut self, turn: Turn, standing: LeaseStanding) -> Option<u64> {
        let lease = self.turns.get_mut(turn as usize)?;
        lease.standing = standing;
        Some(lease.number)
    }

    fn is_handed_to(&self, number: u64) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| watch.handed == Some(number) && !watch.unread.is_empty())
    }

    /// The watcher took the pending notice. What came while it was frozen is one notice more,
    /// which names the event that this one spoke of.
    fn took(&mut self, number: u64) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        let Some(opened_by) = watch.unread.first().copied() else {
            return false;
        };
        watch.since = opened_by;
        watch.handed = None;
        watch
            .unread
            .drain(..watch.unread.len().saturating_sub(1).max(1));
        watch
            .unseen
            .retain(|unseen| !unseen.shown_to.contains(&number));
        !watch.unread.is_empty()
    }
}

impl Watch {
    /// Whoever is handed a notice now sees everything that has happened so far.
    fn show(&mut self, number: u64) {
        for unseen in &mut self.unseen {
            unseen.shown_to.insert(number);
        }
    }
}
