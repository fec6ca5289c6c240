//! Lines in which links wait, each link at most once per line, and their alarm clocks.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tidings_protocol::report::LinkId;

/// Links that wait, first come first served. Bounded by the number of links.
#[derive(Debug, Default)]
pub(super) struct Line {
    order: VecDeque<LinkId>,
    waiting: HashSet<LinkId>,
}

impl Line {
    /// Lines up, unless the link waits already.
    pub(super) fn push(&mut self, link: LinkId) {
        if self.waiting.insert(link) {
            self.order.push_back(link);
        }
    }

    pub(super) fn pop(&mut self) -> Option<LinkId> {
        let link = self.order.pop_front()?;
        self.waiting.remove(&link);
        Some(link)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// When links are to be looked at though nothing happens: one alarm per link.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    order: BTreeSet<(Duration, LinkId)>,
    set: HashMap<LinkId, Duration>,
}

impl Alarms {
    /// Sets the link's alarm, or takes it away.
    pub(super) fn set(&mut self, link: LinkId, at: Option<Duration>) {
        let before = match at {
            Some(at) => self.set.insert(link, at),
            None => self.set.remove(&link),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, link));
        }
        if let Some(at) = at {
            self.order.insert((at, link));
        }
    }

    /// When the next alarm goes off.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes an alarm that has gone off.
    pub(super) fn pop(&mut self, now: Duration) -> Option<LinkId> {
        let (at, link) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.set(link, None);
        Some(link)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_waits_once_and_in_order() {
        let mut line = Line::default();
        for link in [2, 1, 2, 3, 1] {
            line.push(LinkId(link));
        }
        let order: Vec<u64> = std::iter::from_fn(|| line.pop())
            .map(|link| link.0)
            .collect();
        assert_eq!(order, [2, 1, 3]);
        line.push(LinkId(2));
        assert_eq!(line.pop(), Some(LinkId(2)));
    }

    #[test]
    fn an_alarm_can_be_moved_and_taken_away() {
        let mut alarms = Alarms::default();
        let at = Duration::from_secs;
        alarms.set(LinkId(1), Some(at(5)));
        alarms.set(LinkId(2), Some(at(3)));
        alarms.set(LinkId(3), Some(at(4)));
        alarms.set(LinkId(2), Some(at(9)));
        alarms.set(LinkId(3), None);
        assert_eq!(alarms.next_at(), Some(at(5)));
        assert_eq!(alarms.pop(at(4)), None);
        assert_eq!(alarms.pop(at(9)), Some(LinkId(1)));
        assert_eq!(alarms.pop(at(9)), Some(LinkId(2)));
        assert_eq!(alarms.next_at(), None);
    }
}
