//! What can happen.

/// One of the two watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Who {
    A,
    B,
}

/// One of the last two turns of a watcher that took something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// The last one.
    Last,
    /// The one before: all it can do is too late.
    Before,
}

/// What happens to the target, or between it and a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Op {
    /// Somebody else changes the target.
    Event,
    /// A watcher changes it.
    OwnEvent(Who),
    /// Something happens in it that notifies nobody.
    Quiet,
    /// A watcher spawns it.
    Spawn(Who),
    Watch(Who),
    Unwatch(Who),
    Begin(Who),
    Confirm(Who, Turn),
    Release(Who, Turn),
    Drain(Who),
    /// A watcher asks for its target's status since what it has seen.
    Look(Who),
    /// A watcher begins a new conversation because somebody asked for one.
    Reset(Who),
    /// A watcher begins a new conversation because time has passed.
    RollOver(Who),
    /// Every lease runs out.
    Lapse,
    /// The gateway closes the leases that have run out.
    Upkeep,
    /// Nothing moves for as long as a watch is kept, and the gateway ends those that stand.
    Expire,
    /// The gateway ends and starts again.
    Restart,
}

impl Who {
    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Op {
    /// Everything that can happen.
    pub(crate) fn all() -> Vec<Self> {
        let of_one = |who| {
            [
                Self::OwnEvent(who),
                Self::Spawn(who),
                Self::Watch(who),
                Self::Unwatch(who),
                Self::Begin(who),
                Self::Confirm(who, Turn::Last),
                Self::Confirm(who, Turn::Before),
                Self::Release(who, Turn::Last),
                Self::Release(who, Turn::Before),
                Self::Drain(who),
                Self::Look(who),
                Self::Reset(who),
                Self::RollOver(who),
            ]
        };
        let of_both = [
            Self::Event,
            Self::Quiet,
            Self::Lapse,
            Self::Upkeep,
            Self::Expire,
            Self::Restart,
        ];
        let mut all = of_both.to_vec();
        all.extend(of_one(Who::A));
        all.extend(of_one(Who::B));
        all
    }

    /// The same with the watchers in each other's place.
    pub(crate) fn turned(self) -> Self {
        match self {
            Self::OwnEvent(who) => Self::OwnEvent(who.other()),
            Self::Spawn(who) => Self::Spawn(who.other()),
            Self::Watch(who) => Self::Watch(who.other()),
            Self::Unwatch(who) => Self::Unwatch(who.other()),
            Self::Begin(who) => Self::Begin(who.other()),
            Self::Confirm(who, turn) => Self::Confirm(who.other(), turn),
            Self::Release(who, turn) => Self::Release(who.other(), turn),
            Self::Drain(who) => Self::Drain(who.other()),
            Self::Look(who) => Self::Look(who.other()),
            Self::Reset(who) => Self::Reset(who.other()),
            Self::RollOver(who) => Self::RollOver(who.other()),
            of_both @ (Self::Event
            | Self::Quiet
            | Self::Lapse
            | Self::Upkeep
            | Self::Expire
            | Self::Restart) => of_both,
        }
    }
}
