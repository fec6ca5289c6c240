//! What sessions give each other, against a naive model: random interleavings of messages,
//! children, results, goals, leases and deletions, compared after each turn and at the end.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidings_protocol::session_api::{ChildRuntime, RunEnd};

use super::*;
use crate::state::{FinishedRun, GoalChange, LEASE_MS, NewChild, RunBy, StateError, TurnToken};

/// Sessions that talk: two of one agent, one of another.
const TALKERS: [&str; 3] = ["agent:a:main", "agent:a:x", "agent:b:main"];
/// How many interleavings are tried.
const CASES: u32 = 60;

/// One step. Talkers are named by their place in [`TALKERS`], children and leases by how
/// new they are.
#[derive(Debug, Clone)]
enum Step {
    Send { from: Option<usize>, to: usize },
    Begin { who: Who },
    Confirm { nth: usize },
    Release { nth: usize },
    Spawn { parent: usize },
    Finish { nth: usize, run: Option<u8> },
    Goal { of: usize, goal: Option<u8> },
    Delete { who: Who },
    DeleteAgent { of: usize },
    Pass { ms: EpochMs },
    ExpireLeases,
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Talker(usize),
    Child(usize),
}

fn talker() -> impl Strategy<Value = usize> {
    0..TALKERS.len()
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        3 => talker().prop_map(Who::Talker),
        1 => (0..3_usize).prop_map(Who::Child),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let run = option::of(0..2_u8);
    prop_oneof![
        8 => (option::of(talker()), talker()).prop_map(|(from, to)| Step::Send { from, to }),
        8 => who().prop_map(|who| Step::Begin { who }),
        4 => (0..3_usize).prop_map(|nth| Step::Confirm { nth }),
        3 => (0..3_usize).prop_map(|nth| Step::Release { nth }),
        3 => talker().prop_map(|parent| Step::Spawn { parent }),
        3 => (0..3_usize, run).prop_map(|(nth, run)| Step::Finish { nth, run }),
        3 => (talker(), option::of(0..2_u8)).prop_map(|(of, goal)| Step::Goal { of, goal }),
        1 => who().prop_map(|who| Step::Delete { who }),
        1 => talker().prop_map(|of| Step::DeleteAgent { of }),
        2 => prop_oneof![Just(1), Just(LEASE_MS - 1), Just(LEASE_MS)]
            .prop_map(|ms| Step::Pass { ms }),
        2 => Just(Step::ExpireLeases),
        1 => Just(Step::Reopen),
    ]
}

/// A message as the model has it.
#[derive(Debug, Clone)]
struct Message {
    id: u64,
    to: String,
    body: String,
    /// The newest lease that it was handed out under.
    lease: Option<usize>,
}

/// A lease as the model has it.
struct Lease {
    token: TurnToken,
    session: String,
    until: EpochMs,
    is_closed: bool,
}

struct Child {
    key: String,
    parent: String,
    /// The runs that have ended, with what was answered.
    ended: Vec<(Option<u8>, u64)>,
    is_there: bool,
}

struct World {
    fixture: Option<Fixture>,
    sessions: Vec<String>,
    /// Waiting or leased, in the order they were sent.
    messages: Vec<Message>,
    leases: Vec<Lease>,
    children: Vec<Child>,
    goals: std::collections::BTreeMap<String, String>,
    sent: u64,
}

impl World {
    fn new() -> Self {
        Self {
            fixture: Some(Fixture::new()),
            sessions: Vec::new(),
            messages: Vec::new(),
            leases: Vec::new(),
            children: Vec::new(),
            goals: std::collections::BTreeMap::new(),
            sent: 0,
        }
    }

    fn fixture(&self) -> &Fixture {
        self.fixture.as_ref().expect("open")
    }

    fn now(&self) -> EpochMs {
        self.fixture().clock.now()
    }

    fn exist(&mut self, session: &str) {
        if !self.exists(session) {
            self.sessions.push(session.to_owned());
        }
    }

    fn exists(&self, session: &str) -> bool {
        self.sessions.iter().any(|there| there == session)
    }

    fn key_of(&self, who: Who) -> Option<String> {
        match who {
            Who::Talker(at) => Some(TALKERS[at].to_owned()),
            Who::Child(nth) => nth_newest(&self.children, nth).map(|child| child.key.clone()),
        }
    }

    fn queue(&mut self, id: u64, to: &str, body: String) {
        self.messages.push(Message {
            id,
            to: to.to_owned(),
            body,
            lease: None,
        });
    }

    async fn take(&mut self, step: &Step) {
        match *step {
            Step::Send { from, to } => self.send(from, to).await,
            Step::Begin { who } => self.begin(who).await,
            Step::Confirm { nth } => self.confirm(nth).await,
            Step::Release { nth } => self.release(nth).await,
            Step::Spawn { parent } => self.spawn(parent).await,
            Step::Finish { nth, run } => self.finish(nth, run).await,
            Step::Goal { of, goal } => self.goal(of, goal).await,
            Step::Delete { who } => self.delete(who).await,
            Step::DeleteAgent { of } => self.delete_agent(of).await,
            Step::Pass { ms } => self.fixture().clock.pass(ms),
            Step::ExpireLeases => {
                let expired = self.fixture().state.expire_leases().await;
                expired.expect("expired");
                let now = self.now();
                for lease in self.leases.iter_mut().filter(|lease| lease.until <= now) {
                    lease.is_closed = true;
                }
            }
            Step::Reopen => {
                let open = self.fixture.take().expect("open");
                self.fixture = Some(open.reopened().await);
            }
        }
    }

    async fn send(&mut self, from: Option<usize>, to: usize) {
        self.sent += 1;
        let body = format!("message {}", self.sent);
        let message = NewMessage {
            sender: from.map(|from| address(TALKERS[from])),
            ..message(TALKERS[to], &body)
        };
        let sent = self.fixture().state.send(message).await;
        if !self.exists(TALKERS[to]) {
            let unknown = StateError::UnknownSession(TALKERS[to].to_owned());
            assert_eq!(sent, Err(unknown));
            return;
        }
        if let Some(from) = from {
            self.exist(TALKERS[from]);
        }
        self.queue(sent.expect("sent").message, TALKERS[to], body);
    }

    async fn begin(&mut self, who: Who) {
        let Some(session) = self.key_of(who) else {
            return;
        };
        let now = self.now();
        let begun = self.fixture().state.turn_begin(address(&session)).await;
        let begun = begun.expect("a turn");
        self.exist(&session);
        let is_open = |lease: &Lease| !lease.is_closed && lease.until > now;
        let holds = |at: usize| self.messages.iter().any(|m| m.lease == Some(at));
        let blocked = self
            .leases
            .iter()
            .enumerate()
            .any(|(at, lease)| lease.session == session && is_open(lease) && holds(at));
        let expected: Vec<(u64, String)> = self
            .messages
            .iter()
            .filter(|m| !blocked && m.to == session)
            .filter(|m| m.lease.is_none_or(|at| !is_open(&self.leases[at])))
            .map(|m| (m.id, m.body.clone()))
            .collect();
        let handed: Vec<_> = begun.messages.into_iter().map(|m| (m.id, m.body)).collect();
        assert_eq!(handed, expected, "what {session} is handed");
        assert_eq!(begun.notices, [], "nobody watches a talker");
        let Some(token) = begun.token else {
            assert_eq!(handed, []);
            return;
        };
        let at = self.leases.len();
        self.leases.push(Lease {
            token,
            session,
            until: now + LEASE_MS,
            is_closed: false,
        });
        for message in &mut self.messages {
            if handed.iter().any(|(id, _)| *id == message.id) {
                message.lease = Some(at);
            }
        }
    }

    async fn confirm(&mut self, nth: usize) {
        let Some(at) = nth_place(&self.leases, nth) else {
            return;
        };
        let token = self.leases[at].token;
        let settled = self.fixture().state.turn_confirm(token).await;
        let before = self.messages.len();
        self.messages.retain(|message| message.lease != Some(at));
        let gone = before - self.messages.len();
        assert_eq!(settled.expect("settled").messages, gone as u64);
        self.leases[at].is_closed = true;
    }

    async fn release(&mut self, nth: usize) {
        let Some(at) = nth_place(&self.leases, nth) else {
            return;
        };
        let token = self.leases[at].token;
        let settled = self.fixture().state.turn_release(token).await;
        let held = self.messages.iter().filter(|m| m.lease == Some(at)).count();
        let expected = if self.leases[at].is_closed { 0 } else { held };
        assert_eq!(settled.expect("settled").messages, expected as u64);
        self.leases[at].is_closed = true;
    }

    async fn spawn(&mut self, parent: usize) {
        self.sent += 1;
        let parent = TALKERS[parent];
        let child = NewChild {
            parent: address(parent),
            agent: agent("c"),
            runtime: ChildRuntime::Acp,
            label: None,
            task: format!("task {}", self.sent),
            run_by: RunBy::default(),
        };
        let spawned = self.fixture().state.spawn(child.clone()).await;
        let spawned = spawned.expect("a child");
        self.exist(parent);
        let key = spawned.session.to_string();
        self.exist(&key);
        self.queue(spawned.message, &key, child.task);
        self.children.push(Child {
            key,
            parent: parent.to_owned(),
            ended: Vec::new(),
            is_there: true,
        });
    }

    async fn finish(&mut self, nth: usize, run: Option<u8>) {
        let Some(at) = nth_place(&self.children, nth) else {
            return;
        };
        let (child, parent) = (
            self.children[at].key.clone(),
            self.children[at].parent.clone(),
        );
        self.sent += 1;
        let result = format!("result {}", self.sent);
        let finished = FinishedRun {
            session: address(&child),
            outcome: RunEnd::Completed,
            result: Some(result.clone()),
            run_id: run.map(|run| run.to_string()),
            caller: None,
        };
        let ended = self.fixture().state.finish_run(finished).await;
        if !self.children[at].is_there {
            // Gone, or made anew by a turn: then it is nobody's child.
            assert!(ended.is_err(), "{child} was deleted");
            return;
        }
        let ended = ended.expect("ended");
        let tells = self.exists(&parent);
        assert_eq!(ended.parent.is_some(), tells);
        let before = self.children[at].ended.iter().find(|(id, _)| *id == run);
        if let Some((_, sequence)) = before {
            assert_eq!(ended.sequence, Some(*sequence), "the same answer again");
            return;
        }
        let sequence = ended.sequence.expect("a child's run is recorded");
        self.children[at].ended.push((run, sequence));
        if tells {
            // Its id is the newest: nothing else was queued since.
            let id = self.newest_message();
            let body = format!("The run of child session \"{child}\" completed.\n\n{result}");
            self.queue(id, &parent, body);
        }
    }

    fn newest_message(&self) -> u64 {
        let newest = self.fixture().number("SELECT max(id) FROM messages");
        newest.cast_unsigned()
    }

    async fn goal(&mut self, of: usize, goal: Option<u8>) {
        let session = TALKERS[of];
        let goal = goal.map(|goal| format!("goal {goal}"));
        let change = GoalChange {
            session: address(session),
            goal: goal.clone(),
            actor: Actor::Human,
        };
        let changed = self.fixture().state.change_goal(change).await;
        if !self.exists(session) {
            assert!(changed.is_err());
            return;
        }
        let before = match goal {
            Some(goal) => self.goals.insert(session.to_owned(), goal),
            None => self.goals.remove(session),
        };
        let after = self.goals.get(session);
        assert_eq!(
            changed.expect("an answer").changed,
            before.as_ref() != after
        );
    }

    fn forget(&mut self, session: &str) {
        self.sessions.retain(|there| there != session);
        self.messages.retain(|message| message.to != session);
        self.goals.remove(session);
        for child in &mut self.children {
            child.is_there &= child.key != session;
        }
        for lease in &mut self.leases {
            lease.is_closed |= lease.session == session;
        }
    }

    async fn delete(&mut self, who: Who) {
        let Some(session) = self.key_of(who) else {
            return;
        };
        let deleted = self.fixture().state.delete_session(address(&session)).await;
        // A parent that was deleted may still hold the cursor of a later spawn: never here.
        assert_eq!(deleted, Ok(self.exists(&session)), "{session}");
        self.forget(&session);
    }

    async fn delete_agent(&mut self, of: usize) {
        let agent_id = address(TALKERS[of]).agent().clone();
        let theirs: Vec<String> = self
            .sessions
            .iter()
            .filter(|session| *address(session).agent() == agent_id)
            .cloned()
            .collect();
        let deleted = self.fixture().state.delete_agent(agent_id).await;
        assert_eq!(deleted, Ok(theirs.len() as u64));
        for session in theirs {
            self.forget(&session);
        }
    }

    /// What stands in the database besides what the turns have shown.
    async fn finish_comparing(&self) {
        let fixture = self.fixture();
        let waiting = "SELECT count(*) FROM session_messages WHERE body IS NOT NULL";
        assert_eq!(
            fixture.number(waiting).cast_unsigned(),
            self.messages.len() as u64
        );
        for session in &self.sessions {
            let goal = fixture.entry(session).await["goal"]
                .as_str()
                .map(str::to_owned);
            assert_eq!(goal.as_ref(), self.goals.get(session), "{session}");
        }
        for child in self.children.iter().filter(|child| child.is_there) {
            let ends = fixture.log(&child.key).await;
            let ends = ends
                .iter()
                .filter(|(kind, _)| *kind == SignalKind::RunCompleted);
            assert_eq!(ends.count(), child.ended.len(), "{}", child.key);
        }
    }
}

fn nth_place<T>(things: &[T], nth: usize) -> Option<usize> {
    things.len().checked_sub(nth + 1)
}

fn nth_newest<T>(things: &[T], nth: usize) -> Option<&T> {
    nth_place(things, nth).map(|at| &things[at])
}

#[test]
fn what_sessions_give_each_other_arrives_in_order_and_nothing_twice() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let tried = runner.run(&vec(step(), 1..50), |steps| {
        runtime.block_on(async {
            let mut world = World::new();
            for step in &steps {
                world.take(step).await;
            }
            world.finish_comparing().await;
        });
        Ok(())
    });
    tried.expect("every interleaving holds");
}
