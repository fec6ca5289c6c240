//! When a conversation is too old to go on: a pure function of its times, the time, and how
//! local time runs.

use tidings_protocol::{EpochMs, SessionKey};

use crate::config::{Hour, Reset, ResetMode, ResetOverride, ResetType, Session};

const SECOND_MS: EpochMs = 1_000;
const MINUTE_MS: EpochMs = 60 * SECOND_MS;
const DAY_MS: EpochMs = 24 * 60 * MINUTE_MS;

/// How local time runs: the offset from UTC at a time, in milliseconds.
pub type OffsetAt<'a> = &'a dyn Fn(EpochMs) -> EpochMs;

/// When a conversation ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The hour of the daily boundary.
    pub daily: Option<Hour>,
    /// Minutes of silence.
    pub idle_minutes: Option<u32>,
}

/// The times of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// When it began: of the entry, else of the transcript's header.
    pub started_at: Option<EpochMs>,
    /// When somebody last spoke in it. What the gateway does by itself is no interaction.
    pub last_interaction_at: Option<EpochMs>,
    /// When the entry last changed: counts only where nothing else is known.
    pub updated_at: EpochMs,
}

/// The end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub why: Ended,
    /// When that was.
    pub at: EpochMs,
}

/// Why a conversation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The day it began on is over.
    DayOver,
    /// Nobody has spoken for too long.
    Idle,
}

/// The policy for a session: of its channel, else of its type, else the usual one.
#[must_use]
pub fn policy(session: &Session, key: &SessionKey, chat_type: Option<&str>) -> Policy {
    let by_type = session.reset_by_type.get(&reset_type(key, chat_type));
    let by_channel = channel(key).and_then(|channel| {
        let of_channel = |(name, _): &(&String, _)| name.eq_ignore_ascii_case(channel);
        session
            .reset_by_channel
            .iter()
            .find(of_channel)
            .map(|(_, otherwise)| otherwise)
    });
    resolve(&session.reset, [by_channel, by_type])
}

fn resolve(usual: &Reset, otherwise: [Option<&ResetOverride>; 2]) -> Policy {
    let otherwise = || otherwise.into_iter().flatten();
    let mode = otherwise()
        .find_map(|reset| reset.mode)
        .unwrap_or(usual.mode);
    let hour = otherwise()
        .find_map(|reset| reset.at_hour)
        .unwrap_or(usual.at_hour);
    let idle = otherwise()
        .find_map(|reset| reset.idle_minutes)
        .unwrap_or(usual.idle_minutes);
    Policy {
        daily: (mode == ResetMode::Daily).then_some(hour),
        idle_minutes: idle.value().filter(|_| mode != ResetMode::Off),
    }
}

/// What kind of conversation a session is.
#[must_use]
pub fn reset_type(key: &SessionKey, chat_type: Option<&str>) -> ResetType {
    let has = |part| key.as_str().contains(part);
    if has(":thread:") || has(":topic:") {
        return ResetType::Thread;
    }
    match chat_type {
        Some("group") => ResetType::Group,
        Some("room") => ResetType::Room,
        None if has(":group:") => ResetType::Group,
        None if has(":channel:") || has(":room:") => ResetType::Room,
        Some(_) | None => ResetType::Direct,
    }
}

/// The channel that stands in a key.
fn channel(key: &SessionKey) -> Option<&str> {
    let mut segments = key.as_str().split(':').skip(2);
    let channel = segments.next()?;
    let is_chat = |segment: &str| matches!(segment, "direct" | "group" | "channel" | "room");
    // `<channel>:<chat>:…` or `<channel>:<account>:direct:…`.
    let has_chat = segments.take(2).any(is_chat);
    (has_chat && !is_chat(channel)).then_some(channel)
}

/// What ended a conversation before somebody speaks now: what did so first, where both did;
/// `None` where it goes on. One that began in the future, by a wrong clock, goes on.
#[must_use]
pub fn end_of(times: Times, now: EpochMs, policy: Policy, offset_at: OffsetAt<'_>) -> Option<End> {
    let started = times.started_at.unwrap_or(times.updated_at);
    let last_interaction = times.last_interaction_at.unwrap_or(started);
    let day_over = policy
        .daily
        .map(|hour| next_boundary(started, hour, offset_at))
        .filter(|boundary| *boundary <= now);
    let idle = policy
        .idle_minutes
        .map(|minutes| last_interaction + EpochMs::from(minutes) * MINUTE_MS)
        .filter(|end| *end < now);
    let day_over = day_over.map(|at| End {
        why: Ended::DayOver,
        at,
    });
    let idle = idle.map(|at| End {
        why: Ended::Idle,
        at,
    });
    day_over.into_iter().chain(idle).min_by_key(|end| end.at)
}

/// The first daily boundary after a time.
fn next_boundary(after: EpochMs, hour: Hour, offset_at: OffsetAt<'_>) -> EpochMs {
    let day = (after + offset_at(after)).div_euclid(DAY_MS);
    // The day before too: when clocks are set back, its boundary may come again.
    (-1..=2)
        .map(|days| boundary_of(day + days, hour, offset_at))
        .find(|boundary| *boundary > after)
        .unwrap_or(EpochMs::MAX)
}

/// When the hour of a local day begins: the first time where it comes twice, and where it
/// does not come at all, when the clocks jump over it.
fn boundary_of(day: EpochMs, hour: Hour, offset_at: OffsetAt<'_>) -> EpochMs {
    let local = day * DAY_MS + EpochMs::from(hour.get()) * 60 * MINUTE_MS;
    let (before, after) = (offset_at(local - DAY_MS), offset_at(local + DAY_MS));
    let by = |offset: EpochMs| {
        let time = local - offset;
        (offset_at(time) == offset).then_some(time)
    };
    let comes = [by(before), by(after)].into_iter().flatten().min();
    comes.unwrap_or_else(|| {
        jump(
            local - before.max(after),
            local - before.min(after),
            offset_at,
        )
    })
}

/// The first time after `from` at which the offset is another; it is one at `to`.
fn jump(mut from: EpochMs, mut to: EpochMs, offset_at: OffsetAt<'_>) -> EpochMs {
    let before = offset_at(from);
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        if offset_at(middle) == before {
            from = middle;
        } else {
            to = middle;
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use jiff::civil::DateTime;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::config::Switch;
    use crate::sessions::local_time::offset_at;

    /// Central Europe: clocks go forward on 29 March 2026 at 2, and back on 25 October at 3.
    const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
    /// A zone that jumps over its own midnight, and one without summer time.
    const BEIRUT: &str = "EET-2EEST,M3.5.0/0,M10.5.0/0";
    const KOLKATA: &str = "IST-5:30";

    const FRESH: Option<Ended> = None;
    const DAY_OVER: Option<Ended> = Some(Ended::DayOver);
    const IDLE: Option<Ended> = Some(Ended::Idle);

    fn why(times: Times, now: EpochMs, policy: Policy, offset: OffsetAt<'_>) -> Option<Ended> {
        end_of(times, now, policy, offset).map(|end| end.why)
    }

    fn zone(rule: &str) -> TimeZone {
        TimeZone::posix(rule).expect("a rule")
    }

    /// A local time, or one with an offset.
    fn at(text: &str, zone: &TimeZone) -> EpochMs {
        if let Ok(time) = text.parse::<Timestamp>() {
            return time.as_millisecond();
        }
        let local: DateTime = text.parse().expect("a time");
        let time = zone.to_ambiguous_timestamp(local).compatible();
        time.expect("a time").as_millisecond()
    }

    #[track_caller]
    fn check(rule: &str, hour: u8, started: &str, now: &str, expected: Option<Ended>) {
        let zone = zone(rule);
        let times = Times {
            started_at: Some(at(started, &zone)),
            ..Times::default()
        };
        let policy = Policy {
            daily: Hour::new(hour),
            idle_minutes: None,
        };
        let offset = |time| offset_at(&zone, time);
        let found = why(times, at(now, &zone), policy, &offset);
        assert_eq!(found, expected, "{rule} {hour}: {started} → {now}");
    }

    #[test]
    fn a_conversation_ends_with_the_day_it_began_on() {
        for (started, now, expected) in [
            ("2026-06-10T03:59", "2026-06-10T03:59:59", FRESH),
            ("2026-06-10T03:59", "2026-06-10T04:00", DAY_OVER),
            ("2026-06-10T04:00", "2026-06-11T03:59:59", FRESH),
            ("2026-06-10T04:00", "2026-06-11T04:00", DAY_OVER),
            ("2026-06-10T23:00", "2026-06-11T00:30", FRESH),
            ("2026-06-10T23:00", "2027-06-11T00:30", DAY_OVER),
            ("2026-06-10T23:00", "2026-06-10T22:00", FRESH),
        ] {
            for rule in [BERLIN, KOLKATA, "UTC0"] {
                check(rule, 4, started, now, expected);
            }
        }
    }

    #[test]
    fn on_days_when_clocks_are_set_the_boundary_comes_once_a_day() {
        for (rule, hour, started, now, expected) in [
            // Forward: 2 does not come, so the day begins when the clocks jump to 3.
            (
                BERLIN,
                2,
                "2026-03-29T01:59:59+01:00",
                "2026-03-29T02:59:59.999+02:00",
                FRESH,
            ),
            (
                BERLIN,
                2,
                "2026-03-29T01:59:00+01:00",
                "2026-03-29T03:00:00+02:00",
                DAY_OVER,
            ),
            (
                BERLIN,
                2,
                "2026-03-29T03:00:00+02:00",
                "2026-03-30T01:59:59+02:00",
                FRESH,
            ),
            (
                BERLIN,
                4,
                "2026-03-28T04:00:00+01:00",
                "2026-03-29T03:59:59+02:00",
                FRESH,
            ),
            (
                BERLIN,
                4,
                "2026-03-28T04:00:00+01:00",
                "2026-03-29T04:00:00+02:00",
                DAY_OVER,
            ),
            // Back: 2 comes twice, and only the first time counts.
            (
                BERLIN,
                2,
                "2026-10-25T01:59:00+02:00",
                "2026-10-25T02:00:00+02:00",
                DAY_OVER,
            ),
            (
                BERLIN,
                2,
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:30:00+01:00",
                FRESH,
            ),
            (
                BERLIN,
                2,
                "2026-10-25T02:30:00+02:00",
                "2026-10-26T01:59:59+01:00",
                FRESH,
            ),
            (
                BERLIN,
                2,
                "2026-10-25T02:30:00+01:00",
                "2026-10-26T02:00:00+01:00",
                DAY_OVER,
            ),
            (
                BERLIN,
                4,
                "2026-10-24T05:00:00+02:00",
                "2026-10-25T03:59:59+01:00",
                FRESH,
            ),
            (
                BERLIN,
                4,
                "2026-10-24T05:00:00+02:00",
                "2026-10-25T04:00:00+01:00",
                DAY_OVER,
            ),
        ] {
            check(rule, hour, started, now, expected);
        }
    }

    #[test]
    fn a_midnight_that_is_jumped_over_or_comes_twice_is_one_boundary() {
        for (rule, hour, started, now, expected) in [
            (
                BEIRUT,
                0,
                "2026-03-28T23:59:00+02:00",
                "2026-03-29T01:00:00+03:00",
                DAY_OVER,
            ),
            (
                BEIRUT,
                0,
                "2026-03-29T01:00:00+03:00",
                "2026-03-29T23:59:00+03:00",
                FRESH,
            ),
            (
                BEIRUT,
                0,
                "2026-10-24T23:30:00+03:00",
                "2026-10-24T23:30:00+02:00",
                FRESH,
            ),
            (
                BEIRUT,
                0,
                "2026-10-24T23:30:00+02:00",
                "2026-10-25T00:00:00+02:00",
                DAY_OVER,
            ),
        ] {
            check(rule, hour, started, now, expected);
        }
    }

    #[test]
    fn what_ends_a_conversation_first_is_said_and_only_people_keep_it_alive() {
        let hour = 60 * MINUTE_MS;
        // In hours after midnight of the first day: began, last spoken in, changed, now.
        for (daily, idle_minutes, times, now, expected) in [
            (Some(4), Some(60), (Some(5), Some(6), 6), 7, FRESH),
            (Some(4), Some(60), (Some(5), Some(6), 6), 8, IDLE),
            (Some(4), Some(60), (Some(5), Some(27), 27), 28, DAY_OVER),
            (Some(4), Some(60), (Some(5), Some(20), 20), 40, IDLE),
            (None, Some(60), (Some(5), Some(500), 500), 501, FRESH),
            (None, None, (Some(5), Some(5), 5), 5_000, FRESH),
            // A change of the entry is no interaction, and keeps nothing alive.
            (None, Some(60), (Some(5), Some(5), 99), 99, IDLE),
            (Some(4), None, (Some(5), Some(99), 99), 99, DAY_OVER),
            // What is not known: the start for the interaction, the change for the start.
            (None, Some(60), (Some(5), None, 99), 99, IDLE),
            (Some(4), Some(60), (None, None, 99), 99, FRESH),
        ] {
            let (started, interaction, updated) = times;
            let times = Times {
                started_at: started.map(|at| at * hour),
                last_interaction_at: interaction.map(|at| at * hour),
                updated_at: updated * hour,
            };
            let policy = Policy {
                daily: daily.and_then(Hour::new),
                idle_minutes,
            };
            let found = why(times, now * hour, policy, &|_| 0);
            assert_eq!(found, expected, "{policy:?} {times:?} {now}");
        }
    }

    #[test]
    fn a_channel_decides_before_a_type_and_a_type_before_the_usual() {
        let idle = |minutes| ResetOverride {
            mode: Some(ResetMode::Idle),
            idle_minutes: Some(Switch::On(minutes)),
            ..ResetOverride::default()
        };
        let at_six = ResetOverride {
            at_hour: Hour::new(6),
            ..ResetOverride::default()
        };
        let off = ResetOverride {
            mode: Some(ResetMode::Off),
            ..ResetOverride::default()
        };
        let session = Session {
            reset_by_type: BTreeMap::from([
                (ResetType::Group, idle(10)),
                (ResetType::Thread, at_six.clone()),
                (ResetType::Room, off),
            ]),
            reset_by_channel: BTreeMap::from([
                ("Slack".to_owned(), idle(20)),
                ("irc".to_owned(), at_six),
            ]),
            ..Session::default()
        };
        for (key, chat_type, daily, idle_minutes) in [
            ("agent:a:main", None, Some(4), None),
            ("agent:a:telegram:direct:5", None, Some(4), None),
            ("agent:a:telegram:group:5", None, None, Some(10)),
            ("agent:a:main", Some("group"), None, Some(10)),
            ("agent:a:telegram:group:5:topic:1", None, Some(6), None),
            ("agent:a:discord:channel:5", None, None, None),
            ("agent:a:slack:work:direct:5", None, None, Some(20)),
            ("agent:a:slack:group:5", None, None, Some(20)),
            // The channel's hour, and the type's silence.
            ("agent:a:irc:group:5", None, None, Some(10)),
            ("cron:nightly", None, Some(4), None),
        ] {
            let parsed = SessionKey::parse(key).expect("a key");
            let found = policy(&session, &parsed, chat_type);
            let found = (found.daily.map(Hour::get), found.idle_minutes);
            assert_eq!(found, (daily, idle_minutes), "{key}");
        }
    }
}
