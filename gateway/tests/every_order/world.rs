//! The real state layer, and what the specification says of it, side by side.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidings_gateway::state::{
    AgentId, Effect, LEASE_MS, NewSignal, RollOver, SessionAddress, State, StateOptions,
    StatusRead, TurnToken,
};
use tidings_node::clock::Clock;
use tidings_protocol::session_api::Notice;
use tidings_protocol::{Actor, EpochMs, SessionKey, SignalKind};
use tokio::sync::broadcast;

use crate::op::{Op, Turn, Who};
use crate::standing::{Reader, Standing};
use crate::watcher::Watcher;

const START: EpochMs = 1_800_000_000_000;
/// How long a watch is kept when nothing moves.
const WATCH_MS: EpochMs = 30 * 24 * 60 * 60 * 1_000;

#[derive(Debug)]
struct StillClock(Mutex<EpochMs>);

impl Clock for StillClock {
    fn now(&self) -> EpochMs {
        *self.0.lock().expect("clock")
    }

    fn monotonic(&self) -> Duration {
        let since_start = self.now() - START;
        Duration::from_millis(since_start.try_into().expect("forwards"))
    }
}

pub(crate) struct World {
    clock: Arc<StillClock>,
    state: State,
    effects: broadcast::Receiver<Effect>,
    reader: Reader,
    /// How often all has begun anew, each time with other sessions.
    life: u64,
    watchers: [Watcher; 2],
    head: u64,
    /// Whom a step must wake.
    woken: Vec<Who>,
    /// What was pending after the last step.
    pending: [Vec<String>; 2],
    dir: TempDir,
}

impl World {
    /// A target that exists, and two who watch it.
    pub(crate) async fn new() -> Self {
        let dir = scratch();
        let clock = Arc::new(StillClock(Mutex::new(START)));
        let state = open(&dir, &clock);
        let mut world = Self {
            effects: state.subscribe(),
            reader: Reader::open(state.path()),
            dir,
            clock,
            state,
            life: 0,
            watchers: Default::default(),
            head: 0,
            woken: Vec::new(),
            pending: Default::default(),
        };
        world.start_anew().await;
        world
    }

    /// Begins anew with other sessions; the watches of those before are ended.
    pub(crate) async fn start_anew(&mut self) {
        for who in [Who::A, Who::B] {
            self.take(Op::Unwatch(who)).await;
        }
        self.life += 1;
        self.watchers = Default::default();
        self.record(SignalKind::Compacted, Actor::System).await;
        for who in [Who::A, Who::B] {
            self.take(Op::Watch(who)).await;
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        let now = self.clock.now();
        let read = |who: Who| {
            self.reader
                .read(self.key(who).as_str(), self.watcher(who), now)
        };
        [read(Who::A), read(Who::B)]
    }

    /// Takes a step, and compares what it answers, whom it wakes and what is pending with
    /// what must be so.
    pub(crate) async fn take(&mut self, op: Op) {
        self.step(op).await;
        for who in [Who::A, Who::B] {
            let after = self.pending(who).await;
            let before = std::mem::replace(&mut self.pending[who as usize], after.clone());
            let expected = self.texts(self.watcher(who).pending());
            assert_eq!(after, expected, "{op:?} {who:?}");
            // Whatever happens, what is pending stays as it is until it is taken or given up.
            if !before.is_empty() && !may_end_notice(op, who) {
                assert_eq!(after, before, "{op:?} {who:?}");
            }
            assert_eq!(
                self.watcher(who).lost(),
                Vec::<u64>::new(),
                "{op:?} {who:?}"
            );
        }
        self.compare_wakes(op);
    }

    async fn step(&mut self, op: Op) {
        match op {
            Op::Event => self.record(SignalKind::GoalChanged, Actor::Human).await,
            Op::OwnEvent(who) => {
                let actor = Actor::Agent(self.key(who));
                self.record(SignalKind::GoalChanged, actor).await;
            }
            Op::Quiet => self.record(SignalKind::Compacted, Actor::System).await,
            Op::Spawn(who) => {
                let actor = Actor::Agent(self.key(who));
                self.record(SignalKind::ChildSpawned, actor).await;
                self.watchers[who as usize].spawned(self.head);
            }
            Op::Watch(who) => {
                let added = self.state.watch_add(self.key(who), self.target()).await;
                let expected = self.watchers[who as usize].watch(self.head);
                assert_eq!(added.expect("watch").from_version, Some(expected));
            }
            Op::Unwatch(who) => {
                let removed = self.state.watch_remove(self.key(who), self.target()).await;
                let expected = self.watchers[who as usize].unwatch();
                assert_eq!(removed.expect("unwatch").removed, expected);
            }
            Op::Begin(who) => self.begin(who).await,
            Op::Confirm(who, turn) => self.confirm(who, turn).await,
            Op::Release(who, turn) => self.release(who, turn).await,
            Op::Drain(who) => self.drain(who).await,
            Op::Look(who) => self.look(who).await,
            Op::Reset(who) => {
                let ended = self.state.reset_session(address(self.key(who))).await;
                let expected = self.watchers[who as usize].unwatch();
                let ended = ended.map(|reset| reset.watches_ended);
                assert_eq!(ended, Ok(u64::from(expected)));
            }
            Op::RollOver(who) => {
                let dropped = self
                    .state
                    .roll_over_session(RollOver::of(address(self.key(who))))
                    .await;
                let expected = self.watchers[who as usize].roll_over();
                assert_eq!(dropped, Ok(Some(expected)));
            }
            Op::Lapse => {
                *self.clock.0.lock().expect("clock") += LEASE_MS;
                self.watchers.iter_mut().for_each(Watcher::lapse);
            }
            Op::Upkeep => {
                self.state.expire_leases().await.expect("upkeep");
                for who in [Who::A, Who::B] {
                    if self.watchers[who as usize].close_lapsed() {
                        self.woken.push(who);
                    }
                }
            }
            Op::Expire => {
                *self.clock.0.lock().expect("clock") += WATCH_MS;
                let kept_for = Duration::from_millis(WATCH_MS.unsigned_abs());
                let ended = self.state.expire_watches(kept_for).await;
                let stood = [Who::A, Who::B].map(|who| self.watchers[who as usize].unwatch());
                let stood = stood.iter().filter(|stood| **stood).count();
                assert_eq!(ended, Ok(stood as u64));
                self.watchers.iter_mut().for_each(Watcher::lapse);
            }
            Op::Restart => self.restart().await,
        }
    }

    async fn restart(&mut self) {
        self.state.clone().close().await;
        self.state = open(&self.dir, &self.clock);
        self.effects = self.state.subscribe();
        self.reader = Reader::open(self.state.path());
    }

    async fn record(&mut self, kind: SignalKind, actor: Actor) {
        let signal = NewSignal::new(self.target(), kind, actor.clone());
        let recorded = self.state.record(signal).await.expect("record");
        self.head = recorded.sequence.expect("a sequence");
        if !kind.notifies() {
            return;
        }
        for who in [Who::A, Who::B] {
            if actor.id() != Some(&self.key(who)) && self.watchers[who as usize].event(self.head) {
                self.woken.push(who);
            }
        }
    }

    async fn begin(&mut self, who: Who) {
        let begun = self.state.turn_begin(address(self.key(who))).await;
        let begun = begun.expect("begin");
        let available = self.watcher(who).available();
        assert_eq!(texts(&begun.notices), self.texts(available));
        assert_eq!(begun.token.is_some(), available.is_some());
        if let Some(token) = begun.token {
            self.watchers[who as usize].handed_out(token);
        }
    }

    async fn confirm(&mut self, who: Who, turn: Turn) {
        let settled = self.state.turn_confirm(self.token(who, turn)).await;
        let (applied, reopened) = self.watchers[who as usize].confirm(turn);
        assert_eq!(settled.expect("confirm").notices, applied);
        self.wake(who, reopened);
    }

    async fn release(&mut self, who: Who, turn: Turn) {
        let settled = self.state.turn_release(self.token(who, turn)).await;
        let released = self.watchers[who as usize].release(turn);
        assert_eq!(settled.expect("release").notices, released);
        self.wake(who, released > 0);
    }

    async fn drain(&mut self, who: Who) {
        let drained = self.state.drain(self.key(who)).await.expect("drain");
        let available = self.watcher(who).available();
        assert_eq!(texts(&drained.notices), self.texts(available));
        if available.is_some() {
            let reopened = self.watchers[who as usize].drain();
            self.wake(who, reopened);
        }
    }

    async fn look(&mut self, who: Who) {
        let since = self.watcher(who).since().unwrap_or(self.head);
        let read = StatusRead {
            session: self.target(),
            changes_since: Some(since.try_into().expect("small")),
            reader: Some(self.key(who)),
        };
        let answer = self.state.session_status(read).await.expect("status");
        assert_eq!(answer.status.state_version, self.head);
        let reopened = self.watchers[who as usize].look();
        self.wake(who, reopened);
    }

    fn wake(&mut self, who: Who, available: bool) {
        if available {
            self.woken.push(who);
        }
    }

    /// A notice that becomes available wakes its watcher, once and at once.
    fn compare_wakes(&mut self, op: Op) {
        let mut woken = Vec::new();
        while let Ok(effect) = self.effects.try_recv() {
            if let Effect::Wake(wake) = effect {
                assert_eq!(wake.target, self.target_key());
                woken.push(wake.watcher.to_string());
            }
        }
        let mut expected = std::mem::take(&mut self.woken);
        expected.sort();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|who| self.key(who).to_string())
            .collect();
        woken.sort();
        assert_eq!(woken, expected, "{op:?}");
    }

    /// The notices pending for a watcher; there is at most one.
    async fn pending(&self, who: Who) -> Vec<String> {
        let notices = self.state.notices(self.key(who)).await.expect("notices");
        assert!(notices.notices.len() <= 1, "{who:?}: {notices:?}");
        texts(&notices.notices)
    }

    /// The token of a turn; for a watcher that had none, one that was never given.
    fn token(&self, who: Who, turn: Turn) -> TurnToken {
        let never = || TurnToken::parse(&"0".repeat(32)).expect("a token");
        self.watcher(who).token(turn).unwrap_or_else(never)
    }

    fn key(&self, who: Who) -> SessionKey {
        let key = format!("agent:{who:?}:life-{}", self.life);
        SessionKey::parse(&key).expect("a key")
    }

    fn target_key(&self) -> SessionKey {
        SessionKey::parse(&format!("agent:t:life-{}", self.life)).expect("a key")
    }

    fn target(&self) -> SessionAddress {
        address(self.target_key())
    }

    /// A notice, as the specification writes it; none where nothing is pending.
    fn texts(&self, since: Option<u64>) -> Vec<String> {
        let target = self.target_key();
        let text = |since| {
            format!(
                "Session \"{target}\" changed (other actor). Reconcile before acting: \
                 session_status sessionKey \"{target}\" changesSince {since}."
            )
        };
        since.map(text).into_iter().collect()
    }

    fn watcher(&self, who: Who) -> &Watcher {
        &self.watchers[who as usize]
    }
}

/// True where a step may end the pending notice of a watcher, or put another in its place.
fn may_end_notice(op: Op, who: Who) -> bool {
    let own = [
        Op::Unwatch(who),
        Op::Confirm(who, Turn::Last),
        Op::Confirm(who, Turn::Before),
        Op::Drain(who),
        Op::Look(who),
        Op::Reset(who),
        Op::RollOver(who),
        Op::Expire,
    ];
    own.contains(&op)
}

fn texts(notices: &[Notice]) -> Vec<String> {
    notices.iter().map(|notice| notice.text.clone()).collect()
}

fn address(key: SessionKey) -> SessionAddress {
    let agent = AgentId::parse("main").expect("an agent");
    SessionAddress::resolve(key, &agent).expect("an address")
}

fn open(dir: &TempDir, clock: &Arc<StillClock>) -> State {
    let options = StateOptions {
        directory: dir.path().to_owned(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
    };
    State::open(&options).expect("open")
}

/// A directory in memory, where there is one: this is about rules, not about disks.
fn scratch() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory
        .or_else(|_| tempfile::tempdir())
        .expect("directory")
}
