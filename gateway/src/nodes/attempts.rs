//! How often machines may ask for approval.
//!
//! Six words have 48 bits, and whoever stands between two machines can ask, see that the words
//! do not fit, and break off. So what is bounded here is how many guesses that makes; what a
//! stranger costs is the gate's affair.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::gate::network_of;

/// How many of one address are enough: the others are to have their share.
const MAX_OF_ADDRESS: u32 = 10;
/// How many of all addresses together are: a person compares fewer.
const MAX_OF_ALL: u32 = 60;
/// How long attempts count.
const PERIOD: Duration = Duration::from_mins(1);
/// How many addresses are remembered; beyond that the table begins anew.
const MAX_ADDRESSES: usize = 4_096;

/// Attempts by address, and all of them together.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    of_address: HashMap<IpAddr, Count>,
    of_all: Count,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    since: Duration,
    attempts: u32,
}

impl Attempts {
    /// True while this address may try.
    pub(super) fn may_try(&self, address: IpAddr, now: Duration) -> bool {
        let counted = self.lock();
        let of_address = counted.of_address.get(&network_of(address));
        counted.of_all.within(now) < MAX_OF_ALL
            && of_address.is_none_or(|count| count.within(now) < MAX_OF_ADDRESS)
    }

    /// Counts an attempt of this address.
    pub(super) fn count(&self, address: IpAddr, now: Duration) {
        let mut counted = self.lock();
        counted.of_all.add(now);
        let of_address = &mut counted.of_address;
        if of_address.len() >= MAX_ADDRESSES {
            of_address.retain(|_, count| count.within(now) > 0);
        }
        if of_address.len() >= MAX_ADDRESSES {
            of_address.clear();
        }
        of_address.entry(network_of(address)).or_default().add(now);
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        // Nothing panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    /// How many attempts count still.
    fn within(self, now: Duration) -> u32 {
        if now.saturating_sub(self.since) < PERIOD {
            self.attempts
        } else {
            0
        }
    }

    fn add(&mut self, now: Duration) {
        if self.within(now) == 0 {
            *self = Self {
                since: now,
                attempts: 0,
            };
        }
        self.attempts = self.attempts.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_hours(1);

    fn address(at: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(at).into()
    }

    #[test]
    fn ten_attempts_within_a_minute_are_enough_and_a_minute_later_they_are_forgotten() {
        let attempts = Attempts::default();
        let (eve, ada) = (address(66), address(1));
        for _ in 0..MAX_OF_ADDRESS {
            assert!(attempts.may_try(eve, NOW));
            attempts.count(eve, NOW);
        }
        assert!(!attempts.may_try(eve, NOW));
        assert!(!attempts.may_try(eve, NOW + Duration::from_millis(59_999)));
        assert!(attempts.may_try(ada, NOW));
        assert!(attempts.may_try(eve, NOW + PERIOD));
        attempts.count(eve, NOW + PERIOD);
        assert!(attempts.may_try(eve, NOW + PERIOD));
    }

    #[test]
    fn all_addresses_together_have_a_limit_too() {
        let attempts = Attempts::default();
        for at in 0..MAX_OF_ALL {
            assert!(attempts.may_try(address(at), NOW));
            attempts.count(address(at), NOW);
        }
        let one_more = address(MAX_OF_ALL);
        assert!(!attempts.may_try(one_more, NOW));
        assert!(attempts.may_try(one_more, NOW + PERIOD));
    }

    #[test]
    fn the_table_is_bounded_whoever_comes() {
        let attempts = Attempts::default();
        for at in 0..3 * u32::try_from(MAX_ADDRESSES).expect("small") {
            attempts.count(address(at), NOW);
        }
        assert!(attempts.lock().of_address.len() <= MAX_ADDRESSES);
    }
}
