//! Who may begin a handshake: what strangers may cost before they have shown who they are.
//!
//! Three lanes, each with its limits: whoever has not proved that its address is its own, and
//! is asked to where the lane is full; whoever has, and is refused where it is; and attempts
//! to join. What somebody does under a forged address takes nothing from who really has it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_node::clock::Clock;

/// How many addresses a lane keeps account of. Beyond that nobody new gets in, until one has
/// been quiet for long enough to be forgotten.
const MAX_ADDRESSES: usize = 4_096;
/// A place in a lane is counted in thousandths, so that a millisecond gives back a whole number.
const TOKEN: u64 = 1_000;

/// How somebody comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// From an address that may be forged.
    Unproven,
    /// From an address that has proved that it can be reached.
    Proven,
    /// To become a node.
    Join,
}

/// What one lane lets through.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Strangers at once, from everywhere.
    total: u32,
    /// At once from one address.
    per_address: u32,
    /// In a row from one address.
    burst: u64,
    /// Afterwards, per second from one address.
    per_second: u64,
}

/// A handshake costs about a millisecond of a core, and a stranger's connection some 100 KB
/// until it is over. So strangers take at most 32 MB, and those of one address at most a
/// twentieth of a core.
const fn limits(lane: Lane) -> Limits {
    match lane {
        Lane::Unproven => Limits {
            total: 64,
            per_address: 16,
            burst: 32,
            per_second: 16,
        },
        Lane::Proven => Limits {
            total: 256,
            per_address: 64,
            burst: 128,
            per_second: 50,
        },
        // A rack of machines may join at once; a code has 128 bits, so one guess a second
        // finds none.
        Lane::Join => Limits {
            total: 64,
            per_address: 16,
            burst: 60,
            per_second: 1,
        },
    }
}

/// The gate; a clone is another handle on it.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    lanes: Arc<Mutex<[Strangers; 3]>>,
    clock: Arc<dyn Clock>,
}

/// A stranger's place; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    gate: Gate,
    lane: Lane,
    address: IpAddr,
}

/// The strangers of one lane.
#[derive(Debug)]
struct Strangers {
    limits: Limits,
    total: u32,
    addresses: HashMap<IpAddr, Visits>,
}

#[derive(Debug)]
struct Visits {
    at_once: u32,
    /// In thousandths.
    tokens: u64,
    seen_at: Duration,
}

impl Gate {
    /// Nobody has come yet.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let strangers = |lane| Strangers {
            limits: limits(lane),
            total: 0,
            addresses: HashMap::new(),
        };
        Self {
            lanes: Arc::new(Mutex::new(
                [Lane::Unproven, Lane::Proven, Lane::Join].map(strangers),
            )),
            clock,
        }
    }

    /// A place for somebody from `address`; `None` where there is none now.
    pub(super) fn enter(&self, lane: Lane, address: IpAddr) -> Option<Place> {
        let address = network_of(address);
        let now = self.clock.monotonic();
        let entered = self.lock()[lane as usize].enter(address, now);
        entered.then(|| Place {
            gate: self.clone(),
            lane,
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, [Strangers; 3]> {
        // Nothing panics while holding it; if something did, the counts are still whole.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.lock()[self.lane as usize].leave(self.address);
    }
}

impl Strangers {
    fn enter(&mut self, address: IpAddr, now: Duration) -> bool {
        let limits = self.limits;
        if self.total >= limits.total || !self.has_room_for(address, now) {
            return false;
        }
        let visits = self.addresses.entry(address).or_insert(Visits {
            at_once: 0,
            tokens: limits.burst * TOKEN,
            seen_at: now,
        });
        visits.tokens = visits.tokens_at(now, limits);
        visits.seen_at = now;
        if visits.at_once >= limits.per_address || visits.tokens < TOKEN {
            return false;
        }
        visits.tokens -= TOKEN;
        visits.at_once += 1;
        self.total += 1;
        true
    }

    fn leave(&mut self, address: IpAddr) {
        if let Some(visits) = self.addresses.get_mut(&address) {
            visits.at_once = visits.at_once.saturating_sub(1);
        }
        self.total = self.total.saturating_sub(1);
    }

    /// Forgets who has been quiet for long enough, where that is needed.
    fn has_room_for(&mut self, address: IpAddr, now: Duration) -> bool {
        let is_full = |addresses: &HashMap<IpAddr, Visits>| addresses.len() >= MAX_ADDRESSES;
        if is_full(&self.addresses) && !self.addresses.contains_key(&address) {
            let limits = self.limits;
            self.addresses.retain(|_, visits| {
                visits.at_once > 0 || visits.tokens_at(now, limits) < limits.burst * TOKEN
            });
            return !is_full(&self.addresses);
        }
        true
    }
}

impl Visits {
    fn tokens_at(&self, now: Duration, limits: Limits) -> u64 {
        let passed = now.saturating_sub(self.seen_at).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.tokens
            .saturating_add(passed.saturating_mul(limits.per_second))
            .min(limits.burst * TOKEN)
    }
}

/// Whose address it is: of IPv6, one customer has at least a /64.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        total: 5,
        per_address: 3,
        burst: 4,
        per_second: 2,
    };

    fn strangers() -> Strangers {
        Strangers {
            limits: LIMITS,
            total: 0,
            addresses: HashMap::new(),
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn one_address_has_so_many_places_at_once_and_all_together_so_many() {
        let mut strangers = strangers();
        let (a, b) = (ip("192.0.2.1"), ip("192.0.2.2"));
        for (address, entered) in [
            (a, true),
            (a, true),
            (a, true),
            (a, false),
            (b, true),
            (b, true),
            (b, false),
        ] {
            assert_eq!(strangers.enter(address, at(0)), entered, "{address}");
        }
        strangers.leave(a);
        assert!(strangers.enter(b, at(0)), "a place is a place");
        assert!(!strangers.enter(b, at(0)), "and these were all");
    }

    #[test]
    fn who_has_come_too_often_waits_its_turn() {
        let mut strangers = strangers();
        let a = ip("192.0.2.1");
        let mut comes = |now| {
            let entered = strangers.enter(a, at(now));
            if entered {
                strangers.leave(a);
            }
            entered
        };
        assert!((0..4).all(|_| comes(0)), "so many in a row");
        for (now, entered) in [
            (0, false),
            (499, false),
            (500, true),
            (999, false),
            (1_000, true),
            (60_000, true),
            (60_000, true),
            (60_000, true),
            (60_000, true),
            (60_000, false),
        ] {
            assert_eq!(comes(now), entered, "at {now}");
        }
    }

    #[test]
    fn the_account_of_addresses_is_bounded_and_forgets_the_quiet() {
        let mut strangers = strangers();
        let address = |n: usize| {
            let n = u32::try_from(n).expect("few");
            IpAddr::V4((0x0a00_0000 + n).into())
        };
        for n in 0..MAX_ADDRESSES {
            assert!(strangers.enter(address(n), at(0)));
            strangers.leave(address(n));
        }
        assert!(!strangers.enter(address(MAX_ADDRESSES), at(499)));
        assert!(strangers.enter(address(7), at(499)), "known already");
        assert!(strangers.enter(address(MAX_ADDRESSES), at(500)));
        assert_eq!(strangers.addresses.len(), 2);
    }

    #[test]
    fn an_address_is_its_network_and_a_mapped_one_is_itself() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ] {
            assert_eq!(network_of(ip(address)), ip(network), "{address}");
        }
    }

    #[test]
    fn a_place_is_given_back_when_it_is_dropped() {
        let gate = Gate::new(Arc::new(tidings_node::clock::SystemClock::new()));
        let address = ip("192.0.2.1");
        let per_address = limits(Lane::Join).per_address;
        let places: Vec<_> = (0..per_address)
            .map(|_| gate.enter(Lane::Join, address).expect("a place"))
            .collect();
        assert!(gate.enter(Lane::Join, address).is_none());
        assert!(gate.enter(Lane::Proven, address).is_some(), "another lane");
        drop(places);
        assert!(gate.enter(Lane::Join, address).is_some());
    }
}
