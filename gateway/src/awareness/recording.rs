//! What is recorded of an event, and when it is said to have happened.

use tidings_protocol::signal::{Payload, RunOutcome, Summary};
use tidings_protocol::{Actor, EpochMs, SessionKey, SignalKind};

/// How far back an event may claim to have happened: more is a clock that is wrong, or a
/// file that was copied.
pub const MAX_AGE_MS: EpochMs = 24 * 60 * 60 * 1_000;

/// The longest channel name kept, in characters: it stands inside a summary.
pub const MAX_CHANNEL_CHARS: usize = 64;

/// The earliest time that is taken for one, 2001-09-09: anything below is a zero, seconds
/// taken for milliseconds, or noise.
pub const EARLIEST_PLAUSIBLE_MS: EpochMs = 1_000_000_000_000;

/// Whether anybody holds a cursor on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// Somebody does.
    Somebody,
    /// Nobody does.
    Nobody,
}

/// When an event is said to have happened: never after now, at most a day ago, and now
/// where its own word is absurd or missing.
#[must_use]
pub fn occurred_at(claimed: Option<EpochMs>, now: EpochMs) -> EpochMs {
    match claimed {
        Some(at) if at >= EARLIEST_PLAUSIBLE_MS => at.clamp(now.saturating_sub(MAX_AGE_MS), now),
        _ => now,
    }
}

/// A time that a file claims for itself, where it can be one.
#[must_use]
pub fn plausible(claimed: Option<EpochMs>, now: EpochMs) -> Option<EpochMs> {
    claimed.filter(|at| (EARLIEST_PLAUSIBLE_MS..=now).contains(at))
}

/// True when an event of this kind is recorded. A human message to a session that nobody
/// watches is not: it would tell nobody anything.
#[must_use]
pub fn is_recorded(kind: SignalKind, watching: Watching) -> bool {
    kind != SignalKind::HumanDirectMessage || watching == Watching::Somebody
}

/// What a signal of this kind says beyond its summary: only the fields that belong to the
/// kind, a failed run's outcome always, a turn count only where it says something.
#[must_use]
pub fn payload(kind: SignalKind, given: Payload) -> Payload {
    let outcome =
        (kind == SignalKind::RunFailed).then(|| given.outcome.unwrap_or(RunOutcome::Error));
    let channel = match (kind, given.channel) {
        (SignalKind::HumanDirectMessage, Some(channel)) => line(&channel),
        _ => None,
    };
    Payload {
        outcome,
        channel,
        turns: given.turns.filter(|turns| *turns >= 2),
        ..given
    }
}

fn line(channel: &str) -> Option<String> {
    let channel = Summary::from_text(channel)?;
    Some(channel.as_str().chars().take(MAX_CHANNEL_CHARS).collect())
}

/// Whose cursor a spawned child seeds: the parent that was named, else the session that
/// spawned it. Nobody's where that is a bare key, or the child itself.
#[must_use]
pub fn seeded_parent<'a>(
    child: &SessionKey,
    named: Option<&'a SessionKey>,
    actor: &'a Actor,
) -> Option<&'a SessionKey> {
    named
        .or_else(|| actor.id())
        .filter(|parent| parent.is_agent_qualified() && *parent != child)
}

#[cfg(test)]
mod tests {
    use tidings_protocol::{Catalog, Host};

    use super::*;

    #[test]
    fn a_payload_keeps_what_belongs_to_its_kind() {
        use SignalKind::{Adopted, Compacted, HumanDirectMessage, RunFailed};
        let outcome = |outcome| Payload {
            outcome: Some(outcome),
            ..Payload::default()
        };
        let channel = |channel: &str| Payload {
            channel: Some(channel.to_owned()),
            ..Payload::default()
        };
        let turns = |turns| Payload {
            turns: Some(turns),
            ..Payload::default()
        };
        let upstream = Payload {
            catalog: Some(Catalog::Codex),
            host: Some(Host::GatewayLocal),
            ..Payload::default()
        };
        let nothing = Payload::default();
        for (kind, given, kept) in [
            (RunFailed, nothing.clone(), outcome(RunOutcome::Error)),
            (
                RunFailed,
                outcome(RunOutcome::Timeout),
                outcome(RunOutcome::Timeout),
            ),
            (Compacted, outcome(RunOutcome::Timeout), nothing.clone()),
            (
                HumanDirectMessage,
                channel(" telegram\n"),
                channel("telegram"),
            ),
            (HumanDirectMessage, channel(" "), nothing.clone()),
            (Compacted, channel("telegram"), nothing.clone()),
            (HumanDirectMessage, turns(1), nothing),
            (HumanDirectMessage, turns(2), turns(2)),
            (Adopted, upstream.clone(), upstream),
        ] {
            assert_eq!(payload(kind, given.clone()), kept, "{kind} {given:?}");
        }
    }

    #[test]
    fn a_spawn_seeds_the_parent_named_else_the_actor_but_no_bare_key_and_not_the_child() {
        let key = |text| SessionKey::parse(text).expect("key");
        let child = key("agent:main:subagent:1");
        let (parent, other, bare) = (key("agent:main:main"), key("agent:b:main"), key("global"));
        let agent = |key: &SessionKey| Actor::Agent(key.clone());
        for (named, actor, seeded) in [
            (None, agent(&parent), Some(&parent)),
            (Some(&other), agent(&parent), Some(&other)),
            (Some(&other), Actor::System, Some(&other)),
            (None, Actor::Human, None),
            (None, agent(&bare), None),
            (Some(&bare), agent(&parent), None),
            (Some(&child), Actor::System, None),
        ] {
            assert_eq!(
                seeded_parent(&child, named, &actor),
                seeded,
                "{named:?} {actor:?}"
            );
        }
    }

    #[test]
    fn a_claimed_time_is_bounded_on_both_sides() {
        let now = 1_800_000_000_000;
        for (claimed, expected) in [
            (None, now),
            (Some(now), now),
            (Some(now - 1), now - 1),
            (Some(now + 1), now),
            (Some(EpochMs::MAX), now),
            (Some(now - MAX_AGE_MS), now - MAX_AGE_MS),
            (Some(now - MAX_AGE_MS - 1), now - MAX_AGE_MS),
            (Some(EARLIEST_PLAUSIBLE_MS), now - MAX_AGE_MS),
            (Some(1_800_000_000), now),
            (Some(0), now),
            (Some(EpochMs::MIN), now),
        ] {
            assert_eq!(occurred_at(claimed, now), expected, "{claimed:?}");
        }
    }

    #[test]
    fn only_a_human_message_needs_a_watcher() {
        for kind in SignalKind::ALL {
            assert!(is_recorded(kind, Watching::Somebody));
            assert_eq!(
                is_recorded(kind, Watching::Nobody),
                kind != SignalKind::HumanDirectMessage
            );
        }
    }
}
