//! The local time of the gateway's machine.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tidings_protocol::EpochMs;

/// The machine's time zone; UTC where it has none that can be read.
#[must_use]
pub fn machine() -> TimeZone {
    TimeZone::try_system().unwrap_or_else(|error| {
        tracing::warn!(%error, "the time zone of this machine is not known: UTC is used");
        TimeZone::UTC
    })
}

/// How far local time is ahead of UTC at a time, in milliseconds.
#[must_use]
pub fn offset_at(zone: &TimeZone, time: EpochMs) -> EpochMs {
    // A time that is none of this calendar is as good as its end.
    let time = Timestamp::from_millisecond(time).unwrap_or(Timestamp::MAX);
    EpochMs::from(zone.to_offset(time).seconds()) * 1_000
}
