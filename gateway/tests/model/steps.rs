//! What can happen.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tidings_protocol::SignalKind;
use tidings_protocol::session_api::MAX_CHANGES;

/// The sessions of the model: two of one agent, a nested one, one of another agent, and
/// the same bare key of two agents.
pub(crate) const SESSIONS: [(&str, &str); 6] = [
    ("agent:a:main", "a"),
    ("agent:a:x", "a"),
    ("agent:a:subagent:y", "a"),
    ("agent:b:main", "b"),
    ("global", "a"),
    ("global", "b"),
];

/// Which sessions may watch; the last has a bare key and may not.
pub(crate) const WATCHERS: usize = 5;

/// One step. Sessions are named by their place in [`SESSIONS`].
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Record {
        session: usize,
        kind: SignalKind,
        actor: Actor,
        parent: Option<usize>,
        dedupe: Option<u8>,
        claim: Claim,
    },
    /// So much happens in a session that a delta of it just about takes more than one page.
    Burst {
        session: usize,
        events: usize,
    },
    Watch {
        watcher: usize,
        target: usize,
    },
    Unwatch {
        watcher: usize,
        target: usize,
    },
    Drain {
        watcher: usize,
    },
    Begin {
        watcher: usize,
    },
    /// Confirms the n-th newest lease there ever was.
    Confirm {
        nth: usize,
    },
    /// Releases the n-th newest lease there ever was.
    Release {
        nth: usize,
    },
    /// A watcher asks for its target's status.
    Look {
        watcher: usize,
        target: usize,
        since: Since,
    },
    Ensure {
        session: usize,
    },
    Reset {
        session: usize,
    },
    RollOver {
        session: usize,
    },
    Delete {
        session: usize,
    },
    Prune {
        max_rows: u64,
        max_age_ms: Option<i64>,
    },
    Pass {
        ms: i64,
    },
    ExpireLeases,
    ExpireWatches,
    Reopen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Human,
    System,
    Session(usize),
}

/// When an event is said to have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Nothing,
    /// A time that is not one.
    Absurd,
    /// So many milliseconds from now.
    FromNow(i64),
}

/// From which version a watcher asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// What its cursor has seen, or 0 without one.
    Seen,
    /// One less than that.
    Before,
    /// The target's head.
    Head,
}

fn session() -> impl Strategy<Value = usize> {
    0..SESSIONS.len()
}

/// Mostly the first two, so that one watcher has several notices at a time.
fn watcher() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..2_usize, 1 => 0..WATCHERS]
}

fn actor() -> impl Strategy<Value = Actor> {
    prop_oneof![
        2 => Just(Actor::Human),
        1 => Just(Actor::System),
        3 => session().prop_map(Actor::Session),
    ]
}

fn kind() -> impl Strategy<Value = SignalKind> {
    prop_oneof![
        3 => Just(SignalKind::HumanDirectMessage),
        3 => Just(SignalKind::GoalChanged),
        2 => Just(SignalKind::ChildSpawned),
        2 => (0..SignalKind::ALL.len()).prop_map(|at| SignalKind::ALL[at]),
    ]
}

fn record() -> impl Strategy<Value = Step> {
    let dedupe = option::weighted(0.2, 0..3_u8);
    let parent = option::weighted(0.3, session());
    (session(), kind(), actor(), parent, dedupe, claim()).prop_map(
        |(session, kind, actor, parent, dedupe, claim)| Step::Record {
            session,
            kind,
            actor,
            parent,
            dedupe,
            claim,
        },
    )
}

/// Around the bounds of what is believed.
fn claim() -> impl Strategy<Value = Claim> {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    prop_oneof![
        6 => Just(Claim::Nothing),
        1 => Just(Claim::Absurd),
        3 => proptest::sample::select(vec![-DAY - 1, -DAY, -DAY + 1, -1, 0, 1, DAY])
            .prop_map(Claim::FromNow),
    ]
}

fn look() -> impl Strategy<Value = Step> {
    let since = prop_oneof![Just(Since::Seen), Just(Since::Before), Just(Since::Head)];
    (watcher(), session(), since).prop_map(|(watcher, target, since)| Step::Look {
        watcher,
        target,
        since,
    })
}

fn prune() -> impl Strategy<Value = Step> {
    (0..12_u64, option::of(0..4_i64)).prop_map(|(max_rows, days)| Step::Prune {
        max_rows,
        max_age_ms: days.map(|days| days * 24 * 60 * 60 * 1_000),
    })
}

/// From a moment to longer than the retention.
fn pass() -> impl Strategy<Value = Step> {
    const MINUTE: i64 = 60_000;
    prop_oneof![
        Just(1),
        Just(10 * MINUTE),
        Just(29 * MINUTE),
        Just(30 * MINUTE),
        Just(24 * 60 * MINUTE),
        Just(16 * 24 * 60 * MINUTE),
        Just(29 * 24 * 60 * MINUTE),
    ]
    .prop_map(|ms| Step::Pass { ms })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        64 => record(),
        1 => (session(), MAX_CHANGES - 1..=MAX_CHANGES + 1)
            .prop_map(|(session, events)| Step::Burst { session, events }),
        16 => watch(),
        4 => (watcher(), session()).prop_map(|(watcher, target)| Step::Unwatch { watcher, target }),
        12 => watcher().prop_map(|watcher| Step::Drain { watcher }),
        32 => watcher().prop_map(|watcher| Step::Begin { watcher }),
        16 => (0..3_usize).prop_map(|nth| Step::Confirm { nth }),
        12 => (0..3_usize).prop_map(|nth| Step::Release { nth }),
        24 => look(),
        4 => session().prop_map(|session| Step::Ensure { session }),
        4 => session().prop_map(|session| Step::Reset { session }),
        4 => session().prop_map(|session| Step::RollOver { session }),
        4 => session().prop_map(|session| Step::Delete { session }),
        4 => prune(),
        20 => pass(),
        8 => Just(Step::ExpireLeases),
        8 => Just(Step::ExpireWatches),
        4 => Just(Step::Reopen),
    ]
}

fn watch() -> impl Strategy<Value = Step> {
    (watcher(), session()).prop_map(|(watcher, target)| Step::Watch { watcher, target })
}

/// A beginning in which most sessions exist and some are watched, then up to sixty steps.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let beginning = vec(prop_oneof![record(), watch()], 10..16);
    (beginning, vec(step(), 1..60)).prop_map(|(mut steps, rest)| {
        steps.extend(rest);
        steps
    })
}
