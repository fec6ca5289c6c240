//! Leases: what a turn takes, confirms, and gives back.

use super::*;
use crate::state::{LEASE_MS, TurnBegun, TurnSettled, TurnToken};

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";

/// A watcher with one notice pending since version 1.
async fn told() -> Fixture {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.watch(W, T).await;
    fixture.change(T).await;
    fixture
}

impl Fixture {
    async fn begin(&self, session: &str) -> TurnBegun {
        let begun = self.state.turn_begin(address(session)).await;
        begun.expect("a turn")
    }

    async fn confirm(&self, token: TurnToken) -> TurnSettled {
        self.state.turn_confirm(token).await.expect("an answer")
    }
}

fn settled(notices: u64, messages: u64) -> TurnSettled {
    TurnSettled { notices, messages }
}

#[tokio::test]
async fn a_lease_moves_nothing_and_a_second_turn_gets_nothing_new() {
    let fixture = told().await;
    let first = fixture.begin(W).await;
    assert_eq!(sequences(&first.notices), [1]);
    assert_eq!(fixture.pending(W).await, first.notices, "still pending");
    fixture.change("agent:main:other").await;
    fixture.watch(W, "agent:main:other").await;
    fixture.change("agent:main:other").await;
    assert_eq!(fixture.begin(W).await, TurnBegun::default());
    // A drain passes over what is leased, and takes what is not.
    let drained = fixture.drain(W).await;
    assert_eq!(drained.len(), 1);
    assert_eq!(drained[0].target, key("agent:main:other"));
}

#[tokio::test]
async fn a_confirm_moves_to_what_was_handed_out_and_never_to_the_head() {
    let fixture = told().await;
    let begun = fixture.begin(W).await;
    fixture.change(T).await;
    let mut effects = fixture.state.subscribe();
    let token = begun.token.expect("a lease");
    assert_eq!(fixture.confirm(token).await, settled(1, 0));
    assert_eq!(woken(&mut effects).len(), 1, "the rest is one notice anew");
    assert_eq!(sequences(&fixture.pending(W).await), [2]);
    // The token is spent.
    assert_eq!(fixture.confirm(token).await, settled(0, 0));
    let next = fixture.begin(W).await;
    assert_eq!(sequences(&next.notices), [2]);
}

#[tokio::test]
async fn a_release_makes_the_same_bytes_available_and_wakes() {
    let fixture = told().await;
    let begun = fixture.begin(W).await;
    let mut effects = fixture.state.subscribe();
    let token = begun.token.expect("a lease");
    let released = fixture.state.turn_release(token).await;
    assert_eq!(released, Ok(settled(1, 0)));
    assert_eq!(woken(&mut effects).len(), 1);
    assert_eq!(
        fixture.state.turn_release(token).await,
        Ok(settled(0, 0)),
        "once"
    );
    let again = fixture.begin(W).await;
    assert_eq!(again.notices, begun.notices);
    assert_ne!(again.token, begun.token);
}

#[tokio::test]
async fn an_expired_lease_makes_the_same_bytes_available_and_wakes_once() {
    let fixture = told().await;
    let begun = fixture.begin(W).await;
    let until = START + LEASE_MS;
    assert_eq!(fixture.state.expire_leases().await, Ok(Some(until)));
    fixture.clock.pass(LEASE_MS - 1);
    assert_eq!(fixture.begin(W).await, TurnBegun::default());
    fixture.clock.pass(1);
    let mut effects = fixture.state.subscribe();
    assert_eq!(fixture.state.expire_leases().await, Ok(None));
    assert_eq!(fixture.state.expire_leases().await, Ok(None));
    assert_eq!(woken(&mut effects).len(), 1);
    assert_eq!(fixture.begin(W).await.notices, begun.notices);
}

#[tokio::test]
async fn a_late_confirm_counts_unless_it_was_handed_out_again() {
    let fixture = told().await;
    let first = fixture.begin(W).await.token.expect("a lease");
    fixture.clock.pass(LEASE_MS);
    fixture.state.expire_leases().await.expect("expired");
    assert_eq!(fixture.confirm(first).await, settled(1, 0), "late");
    assert_eq!(fixture.pending(W).await, []);

    fixture.change(T).await;
    let second = fixture.begin(W).await.token.expect("a lease");
    fixture.clock.pass(LEASE_MS);
    let third = fixture.begin(W).await.token.expect("handed out again");
    assert_eq!(fixture.confirm(second).await, settled(0, 0));
    assert_eq!(fixture.pending(W).await.len(), 1);
    assert_eq!(fixture.confirm(third).await, settled(1, 0));
}

#[tokio::test]
async fn a_lease_that_was_taken_under_a_wrong_clock_ends_when_the_clock_is_set_right() {
    const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1_000;
    let fixture = told().await;
    fixture.clock.set_wall(START + YEAR_MS);
    let begun = fixture.begin(W).await;
    fixture.clock.set_wall(START);
    assert_eq!(fixture.state.expire_leases().await, Ok(None));
    let again = fixture.begin(W).await;
    assert_eq!(again.notices, begun.notices);
    // Clocks are set back by a little all the time: that ends nothing.
    fixture.clock.set_wall(START - 60_000);
    let until = START + LEASE_MS;
    assert_eq!(fixture.state.expire_leases().await, Ok(Some(until)));
    assert_eq!(fixture.begin(W).await, TurnBegun::default());
}

#[tokio::test]
async fn the_watchers_own_look_at_the_target_confirms_a_leased_notice() {
    let fixture = told().await;
    let look = async |version, reader| {
        let answer = fixture
            .state
            .session_status(since(T, version, reader))
            .await;
        answer.expect("status");
    };
    look(1, Some(W)).await;
    assert_eq!(fixture.pending(W).await.len(), 1, "it is not leased");
    let token = fixture.begin(W).await.token.expect("a lease");
    look(0, Some(W)).await;
    look(1, Some("agent:main:other")).await;
    look(1, None).await;
    assert_eq!(fixture.pending(W).await.len(), 1);
    look(1, Some(W)).await;
    assert_eq!(fixture.pending(W).await, []);
    assert_eq!(fixture.confirm(token).await, settled(0, 0));
    // Nothing is held any more, so the next turn is not kept waiting.
    fixture.change(T).await;
    assert_eq!(sequences(&fixture.begin(W).await.notices), [2]);
}

#[tokio::test]
async fn messages_are_handed_out_in_order_at_least_once_and_erased_when_confirmed() {
    let fixture = Fixture::new();
    let first = fixture.queue(W, None, "one").await;
    let second = fixture.queue(W, Some(T), "two").await;
    let begun = fixture.begin(W).await;
    let bodies: Vec<_> = begun.messages.iter().map(|m| m.body.as_str()).collect();
    assert_eq!(bodies, ["one", "two"]);
    assert_eq!(begun.messages[1].sender, Some(key(T)));
    let token = begun.token.expect("a lease");
    fixture.state.turn_release(token).await.expect("released");
    let again = fixture.begin(W).await;
    let ids: Vec<_> = again.messages.iter().map(|message| message.id).collect();
    assert_eq!(ids, [first, second]);
    let token = again.token.expect("a lease");
    assert_eq!(fixture.confirm(token).await, settled(0, 2));
    assert_eq!(
        fixture.number("SELECT count(*) FROM session_messages WHERE body IS NOT NULL"),
        0
    );
    assert_eq!(fixture.begin(W).await, TurnBegun::default());
}

#[tokio::test]
async fn a_turn_takes_no_more_messages_than_fit_an_answer() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.queue(W, None, &"m".repeat(100 * 1024)).await;
    }
    for left in [2, 1, 0] {
        let begun = fixture.begin(W).await;
        assert_eq!(begun.messages.len(), 1);
        fixture.confirm(begun.token.expect("a lease")).await;
        let queued = "SELECT count(*) FROM messages WHERE delivered_at IS NULL";
        assert_eq!(fixture.number(queued), left);
    }
}

#[tokio::test]
async fn a_thread_of_two_sessions_takes_what_is_pending_for_both() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    fixture.change(T).await;
    let mut keys = Vec::new();
    for name in ["main", "ops"] {
        let adoption = NewAdoption {
            agent: agent(name),
            host: Host::GatewayLocal,
            opened: opened("t1"),
            watch_by: None,
        };
        let adopted = fixture.state.adopt(adoption).await.expect("adopted");
        fixture.watch(adopted.session_key.as_str(), T).await;
        keys.push(adopted.session_key);
    }
    fixture.change(T).await;
    let threads = vec![(Catalog::Claude, ThreadId::parse("t1").expect("thread"))];
    let speaks_as = fixture.state.adopted_as(Host::GatewayLocal, threads).await;
    let oldest = speaks_as.expect("looked up")[0].clone().expect("adopted");
    assert_eq!(oldest.key(), &keys[0]);
    let begun = fixture.state.turn_begin(oldest).await.expect("a turn");
    assert_eq!(sequences(&begun.notices), [1], "the same line, once");
    let token = begun.token.expect("a lease");
    assert_eq!(fixture.begin(keys[1].as_str()).await, TurnBegun::default());
    assert_eq!(fixture.confirm(token).await, settled(2, 0));
}

#[tokio::test]
async fn a_turn_runs_until_it_ends() {
    let fixture = Fixture::new();
    assert_eq!(fixture.state.turn_end(address(W)).await, Ok(false));
    fixture.begin(W).await;
    fixture.begin(W).await;
    assert_eq!(fixture.state.turn_end(address(W)).await, Ok(true));
    assert_eq!(fixture.state.turn_end(address(W)).await, Ok(false));
}

#[tokio::test]
async fn a_lease_outlives_a_restart() {
    let fixture = told().await;
    let begun = fixture.begin(W).await;
    let fixture = fixture.reopened().await;
    assert_eq!(fixture.begin(W).await, TurnBegun::default());
    let token = TurnToken::parse(&begun.token.expect("a lease").to_string());
    assert_eq!(
        fixture.confirm(token.expect("a token")).await,
        settled(1, 0)
    );
}
