//! How QUIC is set up on both sides.

use std::time::Duration;

use quinn::{TransportConfig, VarInt};

/// The largest frame on the control stream and while pairing: names, reasons, counters.
pub const CONTROL_FRAME_BYTES: usize = 64 * 1024;
/// How long a request to the other side may take.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A silent connection is probed this often.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// And given up after this long: four probes.
const IDLE_MS: u32 = 20_000;
/// Unread bytes per stream: one frame fits.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Unread bytes per connection: a frame on each of the four long-lived streams.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Streams the other side may have open at once: the long-lived ones, its requests, and
/// those of its machine's programs.
const STREAMS: u32 = 64;

/// The round trip assumed before one is measured: lost first packets are sent again after
/// three of these, not after the second that the standard's cautious default makes of it.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// The transport of both sides.
#[must_use]
pub fn transport_config() -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .initial_rtt(INITIAL_RTT)
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(u64::from(CONNECTION_WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS))
        .datagram_receive_buffer_size(None);
    config
}
