//! Machines that ask to become nodes without a link: when they may ask, how many, and what
//! becomes of each.
//!
//! All of it is in memory. A gateway that ends forgets who asked, and they ask again; what
//! was approved stands in the database.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_node::clock::Clock;
use tidings_protocol::pairing::PairingWords;
use tidings_protocol::session_api::{PairingEvent, PairingNews, PairingRequest};
use tidings_protocol::wire::messages::{Joined, RefusalCode, Refused};
use tidings_protocol::{EpochMs, NodeId};
use tokio::sync::{broadcast, oneshot};

use super::admission::refusal;
use super::gate::network_of;

/// How long machines may ask, and how long each waits for an answer.
const WINDOW_MS: EpochMs = 10 * 60 * 1_000;
/// How many of one address wait at once.
const MAX_PER_ADDRESS: usize = 3;
/// How many wait at once: a person compares the words of each.
const MAX_WAITING: usize = 64;
/// How many news a listener may lag behind: it sees the list afresh then.
const NEWS_KEPT: usize = 256;

/// What a machine that waits is told in the end.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is a node.
    Approved(Joined),
    /// It is not.
    Refused(Refused),
}

/// A machine that waits, as whoever decides on it needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Which one.
    pub(crate) ticket: Ticket,
    /// What it shows.
    pub(crate) request: PairingRequest,
    /// Its signing request, DER.
    pub(crate) signing_request: Vec<u8>,
}

/// One request: a machine that asks again gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// Those who ask, shared by connections and operators.
#[derive(Debug)]
pub struct Approvals {
    book: Mutex<Book>,
    news: broadcast::Sender<PairingNews>,
    clock: Arc<dyn Clock>,
}

/// While it lives machines may ask, until its end at the latest.
#[derive(Debug)]
pub(crate) struct Window {
    approvals: Arc<Approvals>,
    id: u64,
    /// Its end.
    pub(crate) until: EpochMs,
}

/// A request on its way: dropping it withdraws the request.
#[derive(Debug)]
pub(super) struct Pending {
    approvals: Arc<Approvals>,
    ticket: Ticket,
}

/// Who may ask and who does: plain data, so that each rule can be tested by itself.
#[derive(Debug, Default)]
struct Book {
    windows: Vec<(u64, EpochMs)>,
    waiting: Vec<Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    node: NodeId,
    origin: IpAddr,
    shown: Option<Shown>,
}

/// A request that people see: both sides have their words.
#[derive(Debug)]
struct Shown {
    request: PairingRequest,
    signing_request: Vec<u8>,
    verdict: oneshot::Sender<Verdict>,
}

impl Approvals {
    /// Nobody may ask yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            book: Mutex::default(),
            news: broadcast::Sender::new(NEWS_KEPT),
            clock,
        })
    }

    /// Lets machines ask while the window lives.
    pub(crate) fn open(self: &Arc<Self>) -> Window {
        let until = self.clock.now().saturating_add(WINDOW_MS);
        Window {
            id: self.lock().open(until),
            approvals: self.clone(),
            until,
        }
    }

    /// What happens from now on.
    pub(crate) fn news(&self) -> broadcast::Receiver<PairingNews> {
        self.news.subscribe()
    }

    /// Whether anybody may ask now: a look that costs nothing.
    pub(super) fn must_be_open(&self) -> Result<(), Refused> {
        self.lock().must_be_open(self.clock.now())
    }

    /// Takes a place for a machine that asks, or says why there is none.
    pub(super) fn arrive(
        self: &Arc<Self>,
        node: &NodeId,
        origin: IpAddr,
    ) -> Result<Pending, Refused> {
        let now = self.clock.now();
        let mut book = self.lock();
        let (ticket, replaced) = book.arrive(node, origin, now)?;
        drop(book);
        self.tell_of(PairingEvent::Withdrawn, replaced);
        Ok(Pending {
            approvals: self.clone(),
            ticket,
        })
    }

    /// Everybody who waits.
    pub(crate) fn waiting(&self) -> Vec<PairingRequest> {
        let book = self.lock();
        let shown = book
            .waiting
            .iter()
            .filter_map(|waiting| waiting.shown.as_ref());
        shown.map(|shown| shown.request.clone()).collect()
    }

    /// The one who waits under these six words, or this id.
    pub(crate) fn find(&self, name: &str) -> Option<Candidate> {
        let words: Option<PairingWords> = name.parse().ok();
        let book = self.lock();
        book.waiting.iter().find_map(|waiting| {
            let shown = waiting.shown.as_ref()?;
            let is_meant =
                words == Some(shown.request.words) || waiting.node.as_str() == name.trim();
            is_meant.then(|| Candidate {
                ticket: waiting.ticket,
                request: shown.request.clone(),
                signing_request: shown.signing_request.clone(),
            })
        })
    }

    /// Tells one who waits what became of it. False when it has gone in the meantime.
    pub(crate) fn settle(&self, ticket: Ticket, verdict: Verdict) -> bool {
        let Some(shown) = self.lock().take(ticket) else {
            return false;
        };
        let event = match &verdict {
            Verdict::Approved(_) => PairingEvent::Approved,
            Verdict::Refused(_) => PairingEvent::Rejected,
        };
        let told = shown.verdict.send(verdict).is_ok();
        self.tell_of(event, Some(shown.request));
        told
    }

    fn tell_of(&self, event: PairingEvent, request: Option<PairingRequest>) {
        if request.is_some() {
            // Nobody may listen any more.
            let _ = self.news.send(PairingNews {
                event,
                address: None,
                until: None,
                request,
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while holding it; the book is whole at every moment.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.approvals.lock().close(self.id);
    }
}

impl Pending {
    /// Shows the request to people, and gives what will hold the verdict.
    pub(super) fn show(
        &self,
        mut request: PairingRequest,
        signing_request: Vec<u8>,
    ) -> oneshot::Receiver<Verdict> {
        let (verdict, answer) = oneshot::channel();
        request.expires_at = self.approvals.clock.now().saturating_add(WINDOW_MS);
        let shown = Shown {
            request: request.clone(),
            signing_request,
            verdict,
        };
        // One that was replaced in the meantime is not shown: its answer will not come.
        let placed = self.approvals.lock().show(self.ticket, shown);
        self.approvals
            .tell_of(PairingEvent::Requested, placed.then_some(request));
        answer
    }

    /// Waits until its time is over, and says so to everybody.
    pub(super) async fn expired(&self) -> Refused {
        let now = self.approvals.clock.now();
        passed(&*self.approvals.clock, now.saturating_add(WINDOW_MS)).await;
        let late = self.approvals.lock().take(self.ticket);
        let request = late.map(|shown| shown.request);
        self.approvals.tell_of(PairingEvent::Expired, request);
        refusal(
            RefusalCode::TimedOut,
            "nobody approved this machine in time",
            "ask again while tidings nodes listen runs on the gateway's machine",
        )
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let left = self.approvals.lock().take(self.ticket);
        let request = left.map(|shown| shown.request);
        self.approvals.tell_of(PairingEvent::Withdrawn, request);
    }
}

/// Completes when `clock` has passed `deadline`. It looks every second: a clock can be set.
pub(crate) async fn passed(clock: &dyn Clock, deadline: EpochMs) {
    while clock.now() < deadline {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

impl Book {
    fn open(&mut self, until: EpochMs) -> u64 {
        self.next += 1;
        self.windows.push((self.next, until));
        self.next
    }

    fn close(&mut self, window: u64) {
        self.windows.retain(|(id, _)| *id != window);
    }

    fn must_be_open(&self, now: EpochMs) -> Result<(), Refused> {
        if self.windows.iter().any(|(_, until)| now < *until) {
            return Ok(());
        }
        Err(refusal(
            RefusalCode::NotListening,
            "the gateway does not listen for machines that ask without a link",
            "on the gateway's machine: tidings nodes listen; or tidings nodes invite",
        ))
    }

    /// A place for this key, and the request of the same key that it takes the place of.
    fn arrive(
        &mut self,
        node: &NodeId,
        address: IpAddr,
        now: EpochMs,
    ) -> Result<(Ticket, Option<PairingRequest>), Refused> {
        self.must_be_open(now)?;
        let origin = network_of(address);
        let others = |waiting: &&Waiting| waiting.node != *node;
        let of_origin = self
            .waiting
            .iter()
            .filter(others)
            .filter(|waiting| waiting.origin == origin);
        if of_origin.count() >= MAX_PER_ADDRESS
            || self.waiting.iter().filter(others).count() >= MAX_WAITING
        {
            return Err(refusal(
                RefusalCode::TooMany,
                "too many machines wait for approval already",
                "approve or reject them first: tidings nodes list",
            ));
        }
        let same_key = self
            .waiting
            .iter()
            .position(|waiting| waiting.node == *node);
        let replaced = same_key.map(|at| self.waiting.remove(at));
        self.next += 1;
        let ticket = Ticket(self.next);
        self.waiting.push(Waiting {
            ticket,
            node: node.clone(),
            origin,
            shown: None,
        });
        let shown = replaced.and_then(|waiting| waiting.shown);
        Ok((ticket, shown.map(|shown| shown.request)))
    }

    fn show(&mut self, ticket: Ticket, shown: Shown) -> bool {
        let waiting = self.waiting.iter_mut().find(|w| w.ticket == ticket);
        waiting.is_some_and(|waiting| {
            waiting.shown = Some(shown);
            true
        })
    }

    /// Takes a request out of the book; nothing where people never saw it.
    fn take(&mut self, ticket: Ticket) -> Option<Shown> {
        let at = self.waiting.iter().position(|w| w.ticket == ticket)?;
        self.waiting.remove(at).shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: EpochMs = 1_800_000_000_000;

    fn key(name: &str) -> NodeId {
        NodeId::of_public_key(name.as_bytes())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn listening() -> Book {
        let mut book = Book::default();
        book.open(NOW + WINDOW_MS);
        book
    }

    fn code(asked: Result<(Ticket, Option<PairingRequest>), Refused>) -> Option<RefusalCode> {
        asked.err().map(|refused| refused.code)
    }

    #[test]
    fn machines_may_ask_only_while_somebody_listens() {
        let mut book = Book::default();
        let (ada, home) = (key("ada"), address("192.0.2.1"));
        let not_listening = Some(RefusalCode::NotListening);
        assert_eq!(code(book.arrive(&ada, home, NOW)), not_listening);
        let first = book.open(NOW + 10);
        let second = book.open(NOW + 20);
        assert_eq!(code(book.arrive(&ada, home, NOW + 19)), None);
        assert_eq!(code(book.arrive(&ada, home, NOW + 20)), not_listening);
        book.close(second);
        assert_eq!(code(book.arrive(&ada, home, NOW + 9)), None);
        assert_eq!(code(book.arrive(&ada, home, NOW + 10)), not_listening);
        book.close(first);
        assert_eq!(code(book.arrive(&ada, home, NOW)), not_listening);
    }

    #[test]
    fn a_key_has_one_request_however_often_it_asks() {
        let mut book = listening();
        let home = address("192.0.2.1");
        let mut tickets = Vec::new();
        for _ in 0..20 {
            let (ticket, _) = book.arrive(&key("ada"), home, NOW).expect("a place");
            tickets.push(ticket);
        }
        assert_eq!(book.waiting.len(), 1);
        // The older ones are nobody's any more.
        let last = tickets.pop().expect("tickets");
        for ticket in tickets {
            assert!(book.take(ticket).is_none());
            assert_eq!(book.waiting.len(), 1);
        }
        assert!(book.take(last).is_none(), "people never saw it");
        assert_eq!(book.waiting.len(), 0);
    }

    #[test]
    fn three_of_one_address_wait_at_once_and_of_ipv6_a_network_is_one() {
        let too_many = Some(RefusalCode::TooMany);
        for (addresses, other) in [
            (["192.0.2.1"; 4], "192.0.2.2"),
            (["::ffff:192.0.2.1"; 4], "192.0.2.2"),
            (
                ["2001:db8::1", "2001:db8::2", "2001:db8::3:4", "2001:db8::5"],
                "2001:db8:0:1::1",
            ),
        ] {
            let mut book = listening();
            for (at, from) in addresses.iter().enumerate() {
                let asked = book.arrive(&key(&at.to_string()), address(from), NOW);
                let expected = if at < MAX_PER_ADDRESS { None } else { too_many };
                assert_eq!(code(asked), expected, "{from}");
            }
            // One that waits already may ask anew, and others have places of their own.
            assert_eq!(
                code(book.arrive(&key("0"), address(addresses[0]), NOW)),
                None
            );
            assert_eq!(code(book.arrive(&key("other"), address(other), NOW)), None);
        }
    }

    #[test]
    fn a_crowd_is_turned_away_whatever_its_addresses() {
        let mut book = listening();
        for at in 0..MAX_WAITING {
            let from = address(&format!("192.0.2.{at}"));
            assert_eq!(code(book.arrive(&key(&at.to_string()), from, NOW)), None);
        }
        let one_more = book.arrive(&key("late"), address("198.51.100.1"), NOW);
        assert_eq!(code(one_more), Some(RefusalCode::TooMany));
    }
}
