//! The session that watches every thread from its adoption on and takes nothing before the
//! end: what it is told then follows from the log alone.

use std::collections::BTreeMap;

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{Notice, Reply, Request, SessionRef};

use super::writer::KEEPER;
use crate::audit::Snapshot;
use crate::door::DoorClient;
use crate::machines::notice;

/// What notifies.
const NOTIFYING: &[&str] = &["human_direct_message", "upstream_missing", "goal_changed"];

/// Takes everything that waits for the keeper, and compares it with the log. What is wrong,
/// one line each.
pub(super) fn compare(door: &mut DoorClient, snapshot: &Snapshot) -> Vec<String> {
    let mut told: BTreeMap<SessionKey, Vec<u64>> = BTreeMap::new();
    let mut wrong = Vec::new();
    loop {
        let notices = drain(door);
        if notices.is_empty() {
            break;
        }
        for told_now in notices {
            if told_now.text != notice(told_now.target.as_str(), told_now.changes_since) {
                wrong.push(format!("told otherwise: {told_now:?}"));
            }
            let before = told.entry(told_now.target).or_default();
            before.push(told_now.changes_since);
        }
    }
    for session in snapshot.links.keys() {
        let should = should_be_told(snapshot, session);
        let key = SessionKey::parse(session).expect("a key");
        let is = told.remove(&key).unwrap_or_default();
        if is != should {
            wrong.push(format!(
                "the keeper was told of {session} since {is:?}, should be {should:?}"
            ));
        }
    }
    wrong.extend(
        told.keys()
            .map(|session| format!("told of {session}, which nobody follows")),
    );
    wrong
}

/// From what versions on a session is told of that watches from the adoption: from there once
/// anything has happened, and from the first of it on once more has.
fn should_be_told(snapshot: &Snapshot, session: &str) -> Vec<u64> {
    let own = snapshot.signals.iter();
    let mut own = own.filter(|(_, row)| row.session == session);
    let adopted = own.find(|(_, row)| row.kind == "adopted");
    let happened = own.filter(|(_, row)| NOTIFYING.contains(&&*row.kind));
    let mut happened = happened.map(|(sequence, _)| *sequence);
    let adopted = adopted.map(|(sequence, _)| *sequence);
    let (first, second) = (happened.next(), happened.next());
    let once = adopted.filter(|_| first.is_some());
    let again = first.filter(|_| second.is_some());
    once.into_iter().chain(again).collect()
}

fn drain(door: &mut DoorClient) -> Vec<Notice> {
    let request = Request::NoticesDrain(SessionRef {
        session_key: SessionKey::parse(KEEPER).expect("a key"),
        agent: None,
    });
    match door.ask(&request) {
        Reply::Notices(notices) => notices.notices,
        reply => panic!("{reply:?} to a drain"),
    }
}
