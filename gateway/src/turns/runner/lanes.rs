//! Who is run when: one turn at a time in each session, a few sessions at once. Pure.

use std::collections::{BTreeMap, VecDeque};

use crate::state::SessionAddress;

/// How many turns wait in one session: a person who types faster is told so.
const MAX_WAITING: usize = 32;
/// How many sessions are run at once: each holds its conversation in memory.
const MAX_RUNNING: usize = 8;

/// What waits and what runs.
#[derive(Debug)]
pub(super) struct Lanes<J> {
    sessions: BTreeMap<SessionAddress, Lane<J>>,
    // In the order in which they came to have something to do.
    due: VecDeque<SessionAddress>,
    running: usize,
}

#[derive(Debug)]
struct Lane<J> {
    waiting: VecDeque<J>,
    is_running: bool,
}

/// A job that found no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full<J>(pub(super) J);

impl<J> Default for Lanes<J> {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            due: VecDeque::new(),
            running: 0,
        }
    }
}

impl<J> Lanes<J> {
    /// Adds a job behind those that wait in its session; not where `is_covered` by one that
    /// waits already.
    pub(super) fn add(
        &mut self,
        session: SessionAddress,
        job: J,
        is_covered: impl Fn(&J) -> bool,
    ) -> Result<(), Full<J>> {
        let lane = self
            .sessions
            .entry(session.clone())
            .or_insert_with(|| Lane {
                waiting: VecDeque::new(),
                is_running: false,
            });
        if lane.waiting.iter().any(is_covered) {
            return Ok(());
        }
        if lane.waiting.len() == MAX_WAITING {
            return Err(Full(job));
        }
        lane.waiting.push_back(job);
        if !lane.is_running && lane.waiting.len() == 1 {
            self.due.push_back(session);
        }
        Ok(())
    }

    /// The next job to run; its session runs from now on, until it has [ended](Self::end).
    pub(super) fn next(&mut self) -> Option<(SessionAddress, J)> {
        if self.running == MAX_RUNNING {
            return None;
        }
        let session = self.due.pop_front()?;
        let lane = self.sessions.get_mut(&session)?;
        let job = lane.waiting.pop_front()?;
        lane.is_running = true;
        self.running += 1;
        Some((session, job))
    }

    /// A session runs no more.
    pub(super) fn end(&mut self, session: &SessionAddress) {
        let Some(lane) = self
            .sessions
            .get_mut(session)
            .filter(|lane| lane.is_running)
        else {
            return;
        };
        lane.is_running = false;
        self.running -= 1;
        if lane.waiting.is_empty() {
            self.sessions.remove(session);
        } else {
            self.due.push_back(session.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::SessionKey;

    use super::*;
    use crate::state::AgentId;

    fn session(rest: &str) -> SessionAddress {
        let key = SessionKey::parse(&format!("agent:main:{rest}")).expect("key");
        SessionAddress::resolve(key, &AgentId::parse("main").expect("agent")).expect("address")
    }

    fn add(lanes: &mut Lanes<u32>, rest: &str, job: u32) {
        let added = lanes.add(session(rest), job, |waiting| *waiting == job);
        added.expect("room");
    }

    fn next(lanes: &mut Lanes<u32>) -> Option<u32> {
        lanes.next().map(|(_, job)| job)
    }

    #[test]
    fn a_session_runs_one_job_at_a_time_in_order_and_others_do_not_wait_for_it() {
        let mut lanes = Lanes::default();
        for (rest, job) in [("a", 1), ("a", 2), ("b", 3), ("a", 2), ("a", 4)] {
            add(&mut lanes, rest, job);
        }
        assert_eq!((next(&mut lanes), next(&mut lanes)), (Some(1), Some(3)));
        assert_eq!(next(&mut lanes), None);
        lanes.end(&session("b"));
        assert_eq!(next(&mut lanes), None);
        for job in [2, 4] {
            lanes.end(&session("a"));
            assert_eq!(next(&mut lanes), Some(job), "what waits twice waits once");
        }
        lanes.end(&session("a"));
        lanes.end(&session("a"));
        assert_eq!((next(&mut lanes), lanes.sessions.len()), (None, 0));
    }

    #[test]
    fn so_many_run_at_once_and_wait_and_no_more() {
        let mut lanes = Lanes::default();
        for number in 0..=MAX_RUNNING {
            add(&mut lanes, &number.to_string(), 0);
        }
        assert_eq!(std::iter::from_fn(|| lanes.next()).count(), MAX_RUNNING);
        lanes.end(&session("0"));
        let (last, _) = lanes.next().expect("room for one");
        assert_eq!(last, session(&MAX_RUNNING.to_string()));

        let waiting = (0..).take(MAX_WAITING);
        for job in waiting {
            add(&mut lanes, "x", job);
        }
        assert_eq!(lanes.add(session("x"), 99, |_| false), Err(Full(99)));
    }
}
