//! What is kept no more reaches a reader as a gap, never as silence.

use tidings_gateway::state::Retention;
use tidings_protocol::SignalKind;
use tidings_protocol::session_api::{Reply, Request, Signals, SignalsQuery, SignalsRecord};
use tokio::time::timeout;

use crate::served::{PATIENCE, Served, ask, body, key};

const OLD: &str = "agent:main:old";
const NEW: &str = "agent:main:new";

/// Ten signals, of which the last three are kept; the newest is of another session.
async fn shortened() -> Served {
    let served = Served::start();
    let mut door = served.connect().await;
    for at in 0..10 {
        let record = SignalsRecord {
            session: key(if at < 9 { OLD } else { NEW }),
            kind: SignalKind::GoalChanged,
            actor: "human".to_owned(),
            parent: None,
            channel: None,
            outcome: None,
            run_id: None,
            summary: None,
            dedupe_key: None,
        };
        ask(&mut door, Request::SignalsRecord(record)).await;
    }
    let retention = Retention {
        max_rows: 3,
        recorded_since: None,
    };
    assert_eq!(served.state.prune(retention).await.expect("pruned"), 7);
    served
}

fn query(session: Option<&str>, after: Option<u64>) -> SignalsQuery {
    SignalsQuery {
        session: session.map(key),
        after,
        limit: None,
    }
}

fn sequences(page: &Signals) -> Vec<u64> {
    page.signals.iter().map(|signal| signal.sequence).collect()
}

#[tokio::test]
async fn a_page_says_when_it_is_not_all_that_happened_since() {
    let served = shortened().await;
    let mut door = served.connect().await;
    for (session, after, gap, kept) in [
        (None, None, None, vec![8, 9, 10]),
        (None, Some(6), Some(8), vec![8, 9, 10]),
        (None, Some(7), None, vec![8, 9, 10]),
        (None, Some(10), None, vec![]),
        (None, Some(u64::MAX), None, vec![]),
        (Some(OLD), Some(u64::MAX), None, vec![]),
        (Some(OLD), Some(6), Some(8), vec![8, 9]),
        (Some(OLD), Some(7), None, vec![8, 9]),
        (Some(NEW), Some(0), None, vec![10]),
        (Some("agent:main:nobody"), Some(0), None, vec![]),
    ] {
        let request = Request::SignalsList(query(session, after));
        let page = body!(ask(&mut door, request).await, Signals);
        assert_eq!(
            page.earliest_available_sequence, gap,
            "{session:?} {after:?}"
        );
        assert_eq!(sequences(&page), kept, "{session:?} {after:?}");
    }
}

#[tokio::test]
async fn a_follower_hears_of_the_gap_before_anything_else() {
    let served = shortened().await;
    let mut stream = served.connect().await;
    let follow = Request::SignalsFollow(query(None, Some(2)));
    stream.send(&follow).await.expect("sent");
    let mut pages = Vec::new();
    while pages.len() < 2 {
        let reply = timeout(PATIENCE, stream.next()).await.expect("in time");
        match reply.expect("a reply") {
            Some(Reply::Signals(page)) => pages.push(page),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pages[0].earliest_available_sequence, Some(8));
    assert!(pages[0].signals.is_empty());
    assert_eq!(sequences(&pages[1]), [8, 9, 10]);
}
