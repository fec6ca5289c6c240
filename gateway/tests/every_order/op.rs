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
    Watch(Who),
    Unwatch(Who),
    Begin(Who),
    Confirm(Who, Turn),
    Release(Who, Turn),
    Drain(Who),
    /// A watcher asks for its target's status since what it has seen.
    Look(Who),
    /// Every lease runs out.
    Lapse,
    /// The gateway closes the leases that have run out.
    Upkeep,
}

impl Op {
    /// Everything that can happen.
    pub(crate) fn all() -> Vec<Self> {
        let of_one = |who| {
            [
                Self::OwnEvent(who),
                Self::Watch(who),
                Self::Unwatch(who),
                Self::Begin(who),
                Self::Confirm(who, Turn::Last),
                Self::Confirm(who, Turn::Before),
                Self::Release(who, Turn::Last),
                Self::Release(who, Turn::Before),
                Self::Drain(who),
                Self::Look(who),
            ]
        };
        let of_both = [Self::Event, Self::Quiet, Self::Lapse, Self::Upkeep];
        let mut all = of_both.to_vec();
        all.extend(of_one(Who::A));
        all.extend(of_one(Who::B));
        all
    }
}
