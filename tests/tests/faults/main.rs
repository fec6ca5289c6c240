//! Faults: disks that are full, broken or slow, clocks that jump, databases that are not what
//! they should be, readers that do not read. Nothing that was answered is lost, and every
//! fault has a name.

mod backed_up;
mod clocks;
mod disk;
mod full;
mod locked;
mod refused;
mod replaced;
mod slow;

use tidings_protocol::session_api::{ApiError, Reply, Request, SignalsRecord, Status};
use tidings_protocol::{SessionKey, SignalKind};
use tidings_tests::{DoorClient, Gateway};

/// Records that something happened in a session. The sequence, or why not; nothing when the
/// gateway has gone.
fn record(door: &mut DoorClient, session: &str) -> Option<Result<u64, ApiError>> {
    let request = Request::SignalsRecord(SignalsRecord {
        session: SessionKey::parse(session).expect("a key"),
        kind: SignalKind::GoalChanged,
        actor: "system".to_owned(),
        parent: None,
        channel: None,
        outcome: None,
        run_id: None,
        summary: None,
        dedupe_key: None,
    });
    match door.try_ask(&request)? {
        Reply::SignalsRecord(recorded) => Some(Ok(recorded.sequence.expect("a sequence"))),
        Reply::Error(error) => Some(Err(error)),
        reply => panic!("{reply:?} to a signal"),
    }
}

fn status(gateway: &Gateway) -> Status {
    let mut door = DoorClient::connect(gateway.state_dir());
    match door.ask(&Request::Status {}) {
        Reply::Status(status) => *status,
        reply => panic!("{reply:?} to status"),
    }
}
