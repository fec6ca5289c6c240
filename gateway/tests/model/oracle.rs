//! The specification's sections 4 to 6, written down as plainly as they can be: lists, and
//! rules applied to them. No index, no cache, no database.

use std::collections::{BTreeMap, BTreeSet};

use tidings_protocol::SignalKind;

use crate::steps::{Actor, Claim, SESSIONS};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
pub(crate) const RETENTION_MS: i64 = 30 * DAY_MS;
const LEASE_MS: i64 = 30 * 60 * 1_000;

/// A row of the log.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) sequence: u64,
    pub(crate) session: usize,
    pub(crate) kind: SignalKind,
    pub(crate) actor: Actor,
    pub(crate) dedupe: Option<u8>,
    pub(crate) occurred_at: i64,
    pub(crate) recorded_at: i64,
}

/// What is to be recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) session: usize,
    pub(crate) kind: SignalKind,
    pub(crate) actor: Actor,
    pub(crate) parent: Option<usize>,
    pub(crate) dedupe: Option<u8>,
    pub(crate) claim: Claim,
}

/// A cursor: (l, n, m), and what else a watch has.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    pub(crate) l: u64,
    pub(crate) n: u64,
    pub(crate) m: u64,
    pub(crate) spawned: bool,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// The lease that handed its notice out last.
    handed_out_by: Option<usize>,
    /// Tells a watch that was ended and begun again from the one before.
    birth: usize,
}

#[derive(Debug, Clone)]
struct Lease {
    watcher: usize,
    expires_at: i64,
    ended: bool,
    items: Vec<Item>,
}

/// A notice as it was handed out.
#[derive(Debug, Clone)]
struct Item {
    target: usize,
    birth: usize,
    n: u64,
}

/// What a record gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    New(u64),
    Repeat(u64),
    Unwatched,
}

/// A watcher's key and the key of its target.
pub(crate) type Wake = (String, String);

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) now: i64,
    pub(crate) log: Vec<Event>,
    /// Last and pruned sequence of every session that ever had an event.
    pub(crate) heads: BTreeMap<usize, (u64, u64)>,
    pub(crate) entries: BTreeSet<usize>,
    pub(crate) cursors: BTreeMap<(usize, usize), Cursor>,
    pub(crate) last_sequence: u64,
    pub(crate) wakes: Vec<Wake>,
    leases: Vec<Lease>,
    turned_at: BTreeMap<usize, i64>,
    births: usize,
}

impl Cursor {
    pub(crate) fn pending(&self) -> bool {
        self.n > self.l
    }
}

fn key(session: usize) -> &'static str {
    SESSIONS[session].0
}

fn qualified(session: usize) -> bool {
    key(session).starts_with("agent:")
}

impl Oracle {
    pub(crate) fn starting_at(now: i64) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    pub(crate) fn exists(&self, session: usize) -> bool {
        self.entries.contains(&session) || self.log.iter().any(|event| event.session == session)
    }

    pub(crate) fn head(&self, session: usize) -> u64 {
        self.heads.get(&session).map_or(0, |head| head.0)
    }

    pub(crate) fn pruned(&self, session: usize) -> u64 {
        self.heads.get(&session).map_or(0, |head| head.1)
    }

    pub(crate) fn record(&mut self, told: &Told) -> Recorded {
        let Told { session, kind, .. } = *told;
        let same = |event: &&Event| event.session == session && event.dedupe == told.dedupe;
        if told.dedupe.is_some()
            && let Some(repeated) = self.log.iter().find(same)
        {
            return Recorded::Repeat(repeated.sequence);
        }
        let watched = self.cursors.keys().any(|(_, target)| *target == session);
        if kind == SignalKind::HumanDirectMessage && !watched {
            return Recorded::Unwatched;
        }
        self.last_sequence += 1;
        let sequence = self.last_sequence;
        self.log.push(Event {
            sequence,
            session,
            kind,
            actor: told.actor,
            dedupe: told.dedupe,
            occurred_at: self.occurred_at(told.claim),
            recorded_at: self.now,
        });
        self.heads.entry(session).or_default().0 = sequence;
        self.move_cursors(session, sequence, kind, told.actor);
        if kind == SignalKind::ChildSpawned {
            self.seed(session, sequence, told.actor, told.parent);
        }
        Recorded::New(sequence)
    }

    fn occurred_at(&self, claim: Claim) -> i64 {
        match claim {
            Claim::FromNow(ms) if ms > 0 => self.now,
            Claim::FromNow(ms) if ms < -DAY_MS => self.now - DAY_MS,
            Claim::FromNow(ms) => self.now + ms,
            Claim::Nothing | Claim::Absurd => self.now,
        }
    }

    fn move_cursors(&mut self, session: usize, sequence: u64, kind: SignalKind, actor: Actor) {
        let notifies = matches!(
            kind,
            SignalKind::HumanDirectMessage | SignalKind::UpstreamMissing | SignalKind::GoalChanged
        );
        if !notifies {
            return;
        }
        let now = self.now;
        let mut told = Vec::new();
        for ((watcher, target), cursor) in &mut self.cursors {
            let own = matches!(actor, Actor::Session(by) if key(by) == key(*watcher));
            if *target != session || own {
                continue;
            }
            if !cursor.pending() {
                cursor.n = sequence;
                told.push(*watcher);
            }
            cursor.m = sequence;
            cursor.updated_at = now;
        }
        for watcher in told {
            self.wake(watcher, session);
        }
    }

    fn seed(&mut self, child: usize, sequence: u64, actor: Actor, parent: Option<usize>) {
        let actor = match actor {
            Actor::Session(session) => Some(session),
            Actor::Human | Actor::System => None,
        };
        let Some(parent) = parent.or(actor) else {
            return;
        };
        if !qualified(parent) || parent == child {
            return;
        }
        match self.cursors.get_mut(&(parent, child)) {
            Some(cursor) if cursor.pending() => {}
            Some(cursor) => {
                (cursor.l, cursor.n, cursor.m) = (sequence, sequence, sequence);
                cursor.updated_at = self.now;
            }
            None => self.add_cursor(parent, child, sequence, true),
        }
    }

    fn add_cursor(&mut self, watcher: usize, target: usize, at: u64, spawned: bool) {
        self.births += 1;
        let cursor = Cursor {
            l: at,
            n: at,
            m: at,
            spawned,
            created_at: self.now,
            updated_at: self.now,
            handed_out_by: None,
            birth: self.births,
        };
        self.cursors.insert((watcher, target), cursor);
    }

    fn wake(&mut self, watcher: usize, target: usize) {
        if !key(watcher).contains(":subagent:") {
            self.wakes
                .push((key(watcher).to_owned(), key(target).to_owned()));
        }
    }

    /// The version it watches from; `None` where it is refused.
    pub(crate) fn watch(&mut self, watcher: usize, target: usize) -> Option<u64> {
        if !qualified(watcher) || watcher == target || !self.exists(target) {
            return None;
        }
        self.entries.insert(watcher);
        let now = self.now;
        if let Some(cursor) = self.cursors.get_mut(&(watcher, target)) {
            cursor.spawned = false;
            cursor.updated_at = now;
            return Some(cursor.l);
        }
        self.add_cursor(watcher, target, self.head(target), false);
        Some(self.head(target))
    }

    pub(crate) fn unwatch(&mut self, watcher: usize, target: usize) -> bool {
        self.cursors.remove(&(watcher, target)).is_some()
    }

    /// True while the lease still stands on the notice that it handed out.
    fn holds(&self, lease: usize, item: &Item) -> bool {
        let watcher = self.leases[lease].watcher;
        self.cursors
            .get(&(watcher, item.target))
            .is_some_and(|cursor| {
                cursor.birth == item.birth
                    && cursor.handed_out_by == Some(lease)
                    && cursor.pending()
                    && cursor.n == item.n
            })
    }

    fn running(&self, lease: usize) -> bool {
        !self.leases[lease].ended && self.leases[lease].expires_at > self.now
    }

    fn leased(&self, watcher: usize, target: usize) -> bool {
        (0..self.leases.len()).any(|lease| {
            self.leases[lease].watcher == watcher
                && self.running(lease)
                && self.leases[lease]
                    .items
                    .iter()
                    .any(|item| item.target == target && self.holds(lease, item))
        })
    }

    /// The targets whose notice is pending, with what it says, by key and agent.
    pub(crate) fn pending(&self, watcher: usize) -> Vec<(usize, u64)> {
        let of_watcher = self.cursors.iter().filter(|((w, _), _)| *w == watcher);
        let mut pending: Vec<_> = of_watcher
            .filter(|(_, cursor)| cursor.pending())
            .map(|((_, target), cursor)| (*target, cursor.l))
            .collect();
        pending.sort_by_key(|(target, _)| SESSIONS[*target]);
        pending
    }

    pub(crate) fn available(&self, watcher: usize) -> Vec<(usize, u64)> {
        let mut pending = self.pending(watcher);
        pending.retain(|(target, _)| !self.leased(watcher, *target));
        pending
    }

    fn confirm_one(&mut self, watcher: usize, target: usize) {
        let now = self.now;
        let mut reopened = false;
        if let Some(cursor) = self.cursors.get_mut(&(watcher, target)) {
            (cursor.l, cursor.n) = (cursor.n, cursor.m);
            cursor.updated_at = now;
            reopened = cursor.pending();
        }
        if reopened {
            self.wake(watcher, target);
        }
    }

    pub(crate) fn drain(&mut self, watcher: usize) -> Vec<(usize, u64)> {
        let available = self.available(watcher);
        for (target, _) in &available {
            self.confirm_one(watcher, *target);
        }
        available
    }

    /// What a turn takes; `None` where there is nothing, or nothing new.
    pub(crate) fn begin(&mut self, watcher: usize) -> Option<Vec<(usize, u64)>> {
        self.entries.insert(watcher);
        self.turned_at.insert(watcher, self.now);
        // A lease whose every notice has been taken care of otherwise holds nothing, so
        // nobody has to wait for it.
        let held = (0..self.leases.len()).any(|lease| {
            self.leases[lease].watcher == watcher
                && self.running(lease)
                && self.leases[lease]
                    .items
                    .iter()
                    .any(|item| self.holds(lease, item))
        });
        let available = self.available(watcher);
        if held || available.is_empty() {
            return None;
        }
        let lease = self.leases.len();
        let mut items = Vec::new();
        for (target, _) in &available {
            if let Some(cursor) = self.cursors.get_mut(&(watcher, *target)) {
                cursor.handed_out_by = Some(lease);
                items.push(Item {
                    target: *target,
                    birth: cursor.birth,
                    n: cursor.n,
                });
            }
        }
        self.leases.push(Lease {
            watcher,
            expires_at: self.now + LEASE_MS,
            ended: false,
            items,
        });
        Some(available)
    }

    /// How many notices the confirmation of this lease applied to.
    pub(crate) fn confirm(&mut self, lease: usize) -> u64 {
        let watcher = self.leases[lease].watcher;
        let items = self.leases[lease].items.clone();
        let mut applied = 0;
        for item in items {
            if self.holds(lease, &item) {
                self.confirm_one(watcher, item.target);
                applied += 1;
            }
        }
        self.leases[lease].ended = true;
        applied
    }

    /// How many notices became available again.
    pub(crate) fn release(&mut self, lease: usize) -> u64 {
        if self.leases[lease].ended {
            return 0;
        }
        self.leases[lease].ended = true;
        let watcher = self.leases[lease].watcher;
        let mut released = 0;
        for item in self.leases[lease].items.clone() {
            if self.holds(lease, &item) {
                self.wake(watcher, item.target);
                released += 1;
            }
        }
        released
    }

    pub(crate) fn expire_leases(&mut self) {
        for lease in 0..self.leases.len() {
            if self.leases[lease].expires_at <= self.now {
                self.release(lease);
            }
        }
    }

    /// A look at the target confirms its leased notice, when it asks since what the notice
    /// names or later.
    pub(crate) fn look(&mut self, watcher: usize, target: usize, since: u64) {
        let seen = self.cursors.get(&(watcher, target)).map(|cursor| cursor.l);
        if seen.is_some_and(|seen| since >= seen) && self.leased(watcher, target) {
            self.confirm_one(watcher, target);
        }
    }

    pub(crate) fn reset(&mut self, session: usize) {
        if qualified(session) {
            self.cursors.retain(|(watcher, _), _| *watcher != session);
        }
    }

    pub(crate) fn roll_over(&mut self, session: usize) {
        let now = self.now;
        for ((watcher, _), cursor) in &mut self.cursors {
            if *watcher == session && cursor.pending() {
                (cursor.l, cursor.n) = (cursor.m, cursor.m);
                cursor.updated_at = now;
            }
        }
    }

    pub(crate) fn delete(&mut self, session: usize) {
        self.log.retain(|event| event.session != session);
        self.entries.remove(&session);
        self.cursors
            .retain(|(watcher, target), _| *watcher != session && *target != session);
        self.turned_at.remove(&session);
        if let Some(head) = self.heads.get_mut(&session) {
            head.1 = head.0;
        }
    }

    pub(crate) fn prune(&mut self, max_rows: u64, since: Option<i64>) -> u64 {
        let mut pruned = 0;
        while let Some(oldest) = self.log.first() {
            let too_many = self.log.len() as u64 > max_rows;
            let too_old = since.is_some_and(|since| oldest.recorded_at < since);
            if !too_many && !too_old {
                break;
            }
            let gone = self.log.remove(0);
            self.heads.entry(gone.session).or_default().1 = gone.sequence;
            pruned += 1;
        }
        pruned
    }

    pub(crate) fn expire_watches(&mut self) -> u64 {
        let before = self.cursors.len();
        let limit = self.now - RETENTION_MS;
        let turned_at = &self.turned_at;
        self.cursors.retain(|(watcher, _), cursor| {
            let turned = turned_at.get(watcher).copied().unwrap_or(0);
            cursor.updated_at.max(turned) > limit
        });
        (before - self.cursors.len()) as u64
    }
}
