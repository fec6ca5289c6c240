//! How many files may be read at once. A reading that takes long gives its place in the
//! pool away, so that a slow file holds up no other; how many of these there may be is
//! bounded per root, so that a root that does not answer takes no more than its share.

use std::collections::HashMap;
use std::time::Duration;

use tidings_protocol::report::LinkId;

/// From when on a reading counts as slow: a page of 32 MiB takes a tenth of it.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How many slow readings one root may have.
const SLOW_PER_ROOT: usize = 8;
/// How many readings there may be beyond the quick ones.
pub(super) const MAX_SLOW: usize = 64;

/// Names one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ReadId(u64);

/// The root that a link's file is in, if it is in any.
pub(super) type RootIndex = Option<usize>;

/// The readings that are under way.
#[derive(Debug)]
pub(super) struct Slots {
    width: usize,
    under_way: HashMap<ReadId, Reading>,
    next: u64,
}

/// One reading that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) link: LinkId,
    pub(super) root: RootIndex,
    pub(super) since: Duration,
}

impl Slots {
    /// Room for `width` quick readings.
    pub(super) fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            under_way: HashMap::new(),
            next: 0,
        }
    }

    /// True when another reading may begin, in a root that has room.
    pub(super) fn have_room(&self, now: Duration) -> bool {
        let slow = self.slow(now).count();
        self.under_way.len() - slow < self.width && slow < MAX_SLOW
    }

    /// True when another reading may begin in this root.
    pub(super) fn root_has_room(&self, root: RootIndex, now: Duration) -> bool {
        let in_root = self.slow(now).filter(|reading| reading.root == root);
        in_root.count() < SLOW_PER_ROOT
    }

    pub(super) fn begin(&mut self, link: LinkId, root: RootIndex, now: Duration) -> ReadId {
        let id = ReadId(self.next);
        self.next += 1;
        let reading = Reading {
            link,
            root,
            since: now,
        };
        self.under_way.insert(id, reading);
        id
    }

    pub(super) fn end(&mut self, id: ReadId) -> Option<Reading> {
        self.under_way.remove(&id)
    }

    /// When the next quick reading becomes slow, should it not end before.
    pub(super) fn next_slow_at(&self, now: Duration) -> Option<Duration> {
        let slow_at = self.under_way.values().map(|read| read.since + SLOW_AFTER);
        slow_at.filter(|at| *at > now).min()
    }

    /// The readings that have taken longer than `limit`, the longest first.
    pub(super) fn overdue(&self, now: Duration, limit: Duration) -> Vec<(ReadId, Reading)> {
        let mut overdue: Vec<(ReadId, Reading)> = self
            .under_way
            .iter()
            .filter(|(_, reading)| now.saturating_sub(reading.since) > limit)
            .map(|(id, reading)| (*id, *reading))
            .collect();
        overdue.sort_by_key(|(_, reading)| (reading.since, reading.link));
        overdue
    }

    /// When the next reading will have taken longer than `limit`, should it not end before.
    pub(super) fn next_overdue_at(&self, now: Duration, limit: Duration) -> Option<Duration> {
        let overdue_at = |reading: &Reading| reading.since + limit + Duration::from_millis(1);
        let overdue_at = self.under_way.values().map(overdue_at);
        overdue_at.filter(|at| *at > now).min()
    }

    fn slow(&self, now: Duration) -> impl Iterator<Item = &Reading> {
        self.under_way
            .values()
            .filter(move |reading| now >= reading.since + SLOW_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reading_gives_its_place_away_within_bounds() {
        let mut slots = Slots::new(2);
        let mut now = Duration::ZERO;
        for _ in 0..SLOW_PER_ROOT / 2 {
            for link in 0..2 {
                assert!(slots.have_room(now) && slots.root_has_room(Some(0), now));
                slots.begin(LinkId(link), Some(0), now);
            }
            assert!(!slots.have_room(now));
            assert_eq!(slots.next_slow_at(now), Some(now + SLOW_AFTER));
            now += SLOW_AFTER;
        }
        assert!(slots.have_room(now), "for other roots");
        assert!(!slots.root_has_room(Some(0), now));
        assert!(slots.root_has_room(Some(1), now) && slots.root_has_room(None, now));
        assert_eq!(slots.next_slow_at(now), None);
    }

    #[test]
    fn there_is_an_end_to_slow_readings_over_all_roots() {
        let mut slots = Slots::new(2);
        let now = SLOW_AFTER;
        let begun: Vec<ReadId> = (0..MAX_SLOW)
            .map(|root| slots.begin(LinkId(1), Some(root), Duration::ZERO))
            .collect();
        assert!(!slots.have_room(now));
        slots.end(begun[0]);
        assert!(slots.have_room(now));
    }

    #[test]
    fn what_takes_too_long_is_named_longest_first() {
        let mut slots = Slots::new(4);
        for (link, since) in [(1, 5), (2, 3), (3, 50)] {
            slots.begin(LinkId(link), None, Duration::from_secs(since));
        }
        let (now, limit) = (Duration::from_mins(1), Duration::from_secs(45));
        let overdue = slots.overdue(now, limit);
        let links: Vec<u64> = overdue.iter().map(|(_, reading)| reading.link.0).collect();
        assert_eq!(links, [2, 1]);
        let next = slots.next_overdue_at(now, limit).expect("the third");
        assert_eq!(slots.overdue(next, limit).len(), 3);
        assert_eq!(slots.next_overdue_at(next, limit), None);
    }
}
