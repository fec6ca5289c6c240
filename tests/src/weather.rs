//! A network with weather: a UDP proxy between a node and its gateway, which loses, delays,
//! reorders and cuts off datagrams, and changes the address that the gateway sees.
//!
//! It stands where `tc netem` would, and needs neither root nor a kernel that has it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::dice::{Dice, seed};

/// How soon a thread notices that the proxy has gone.
const ROUND: Duration = Duration::from_millis(200);
/// The largest datagram there is.
const MAX_DATAGRAM: usize = 65_535;
/// Datagrams on their way at once; the next are lost, as in any router.
const MAX_UNDER_WAY: usize = 100_000;

/// What becomes of datagrams, in each direction.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// So many of a hundred are lost.
    pub loss_percent: u64,
    /// All take so long.
    pub delay: Duration,
    /// Some take up to so much longer, and are overtaken.
    pub jitter: Duration,
    /// Larger ones are lost, as on a path with an IP packet size of 28 bytes more.
    pub largest: usize,
    /// None gets through.
    pub cut: bool,
}

impl Weather {
    /// Nothing happens.
    pub const FAIR: Self = Self {
        loss_percent: 0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        largest: MAX_DATAGRAM,
        cut: false,
    };
    /// Nothing gets through.
    pub const CUT: Self = Self {
        cut: true,
        ..Self::FAIR
    };
}

/// A proxy in front of a gateway; dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    front: UdpSocket,
    gateway: SocketAddr,
    weather: Mutex<Weather>,
    /// By the node's address: the socket that the gateway sees it by.
    backs: Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>,
    under_way: Mutex<UnderWay>,
    changed: Condvar,
    lost: AtomicU64,
    passed: AtomicU64,
    ended: AtomicBool,
}

#[derive(Debug)]
struct UnderWay {
    datagrams: BinaryHeap<Reverse<Datagram>>,
    sent: u64,
    dice: Dice,
}

/// One datagram; the one that is due first is the smallest.
#[derive(Debug)]
struct Datagram {
    due: Instant,
    number: u64,
    by: Arc<UdpSocket>,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Proxy {
    /// A proxy to the gateway at `gateway`.
    pub fn to(gateway: &str) -> Self {
        Self::by(gateway, Dice::new(seed()))
    }

    /// The same; these dice decide what is lost, and what comes when.
    pub fn by(gateway: &str, dice: Dice) -> Self {
        let front = socket();
        let address = front.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            front,
            gateway: gateway.parse().expect("an address"),
            weather: Mutex::new(Weather::FAIR),
            backs: Mutex::default(),
            under_way: Mutex::new(UnderWay {
                datagrams: BinaryHeap::new(),
                sent: 0,
                dice,
            }),
            changed: Condvar::new(),
            lost: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let (receiving, sending) = (shared.clone(), shared.clone());
        thread::spawn(move || receiving.receive_from_nodes());
        thread::spawn(move || sending.send_what_is_due());
        Self { address, shared }
    }

    /// Where nodes reach the gateway through it.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The weather changes.
    pub fn set(&self, weather: Weather) {
        *lock(&self.shared.weather) = weather;
    }

    /// Every node gets another address, as when the router between is restarted: what comes
    /// to the old one is lost.
    pub fn rebind(&self) {
        lock(&self.shared.backs).clear();
    }

    /// How many datagrams were lost and how many got through.
    pub fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.lost), count(&self.shared.passed))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn receive_from_nodes(self: Arc<Self>) {
        let front = Arc::new(self.front.try_clone().expect("a socket"));
        while !self.ended.load(Ordering::Relaxed) {
            let Some((bytes, node)) = receive(&front) else {
                continue;
            };
            let back = lock(&self.backs).get(&node).cloned();
            let back = back.unwrap_or_else(|| self.begin(node, &front));
            self.put(bytes, back, self.gateway);
        }
    }

    /// A new way to the gateway for a node, and back.
    fn begin(self: &Arc<Self>, node: SocketAddr, front: &Arc<UdpSocket>) -> Arc<UdpSocket> {
        let back = Arc::new(socket());
        lock(&self.backs).insert(node, back.clone());
        let (shared, front, own) = (self.clone(), front.clone(), back.clone());
        thread::spawn(move || {
            let stands = || {
                let backs = lock(&shared.backs);
                !shared.ended.load(Ordering::Relaxed)
                    && backs.get(&node).is_some_and(|now| Arc::ptr_eq(now, &own))
            };
            while stands() {
                if let Some((bytes, _)) = receive(&own) {
                    shared.put(bytes, front.clone(), node);
                }
            }
        });
        back
    }

    /// A datagram sets out, or is lost.
    fn put(&self, bytes: Vec<u8>, by: Arc<UdpSocket>, to: SocketAddr) {
        let weather = *lock(&self.weather);
        let mut under_way = lock(&self.under_way);
        let lost = weather.cut
            || bytes.len() > weather.largest
            || under_way.dice.below(100) < weather.loss_percent
            || under_way.datagrams.len() >= MAX_UNDER_WAY;
        if lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let jitter_us = u64::try_from(weather.jitter.as_micros()).expect("a short time");
        let jitter = Duration::from_micros(under_way.dice.below(jitter_us + 1));
        under_way.sent += 1;
        let number = under_way.sent;
        under_way.datagrams.push(Reverse(Datagram {
            due: Instant::now() + weather.delay + jitter,
            number,
            by,
            to,
            bytes,
        }));
        self.changed.notify_all();
    }

    fn send_what_is_due(&self) {
        let mut under_way = lock(&self.under_way);
        while !self.ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            let next = under_way.datagrams.peek().map(|Reverse(next)| next.due);
            match next {
                Some(due) if due <= now => {
                    let Reverse(next) = under_way.datagrams.pop().expect("seen just now");
                    self.passed.fetch_add(1, Ordering::Relaxed);
                    // What cannot be sent is lost, as on any network.
                    let _ = next.by.send_to(&next.bytes, next.to);
                }
                next => {
                    let wait = next.map_or(ROUND, |due| due - now);
                    let waited = self.changed.wait_timeout(under_way, wait);
                    under_way = waited.expect("nobody panics").0;
                }
            }
        }
    }
}

impl PartialEq for Datagram {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Datagram {}

impl PartialOrd for Datagram {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datagram {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// The next datagram, if one comes within a round. An error is a round without one, or an
/// ICMP message about an earlier one.
fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut bytes = vec![0; MAX_DATAGRAM];
    let (length, from) = socket.recv_from(&mut bytes).ok()?;
    bytes.truncate(length);
    Some((bytes, from))
}

/// A socket on the loopback that gives up a wait after a round.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(ROUND)).expect("a time limit");
    socket
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding it")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy with a node on the one side and a gateway on the other.
    fn network() -> (UdpSocket, Proxy, UdpSocket) {
        let gateway = socket();
        let proxy = Proxy::to(&gateway.local_addr().expect("an address").to_string());
        let node = socket();
        node.connect(proxy.address).expect("connected");
        (node, proxy, gateway)
    }

    fn next(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
        let mut bytes = [0; 2_000];
        let (length, from) = socket.recv_from(&mut bytes).ok()?;
        Some((bytes[..length].to_vec(), from))
    }

    #[test]
    fn in_fair_weather_all_gets_through_both_ways_and_after_a_rebind_from_elsewhere() {
        let (node, proxy, gateway) = network();
        node.send(b"ping").expect("sent");
        let (ping, before) = next(&gateway).expect("a datagram");
        assert_eq!(ping, b"ping");
        gateway.send_to(b"pong", before).expect("sent");
        assert_eq!(next(&node).expect("a datagram").0, b"pong");
        proxy.rebind();
        node.send(b"ping").expect("sent");
        let (_, after) = next(&gateway).expect("a datagram");
        assert_ne!(before, after);
        assert_eq!(proxy.counts(), (0, 3));
    }

    #[test]
    fn weather_loses_what_it_says() {
        let (node, proxy, gateway) = network();
        proxy.set(Weather {
            largest: 4,
            ..Weather::FAIR
        });
        node.send(b"large").expect("sent");
        node.send(b"four").expect("sent");
        assert_eq!(next(&gateway).expect("a datagram").0, b"four");
        proxy.set(Weather::CUT);
        node.send(b"four").expect("sent");
        assert!(next(&gateway).is_none());
        assert_eq!(proxy.counts(), (2, 1));
    }

    #[test]
    fn with_jitter_datagrams_overtake_each_other_and_none_is_lost() {
        let (node, proxy, gateway) = network();
        proxy.set(Weather {
            jitter: Duration::from_millis(50),
            ..Weather::FAIR
        });
        for n in 0..100_u8 {
            node.send(&[n]).expect("sent");
        }
        let mut order: Vec<u8> = (0..100)
            .map(|_| next(&gateway).expect("a datagram").0[0])
            .collect();
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..100));
    }
}
