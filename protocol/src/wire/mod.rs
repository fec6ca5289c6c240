//! The wire between node agent and gateway: ALPNs, versions, frames, messages.

mod control;
pub mod frame;
mod joining;
pub mod messages;

pub use frame::{FrameError, MAX_FRAME_BYTES};
pub use messages::Message;

/// Pairing: no client certificate, tiny limits.
pub const ALPN_JOIN: &[u8] = b"tidings-join/1";
/// Everything else: mutual authentication.
pub const ALPN_NODE: &[u8] = b"tidings/1";

/// The newest protocol version this build speaks. The golden byte tests fail when a
/// message changes its bytes without a new version here.
pub const PROTOCOL_VERSION: u32 = 1;
/// The oldest protocol version this build speaks.
pub const OLDEST_PROTOCOL_VERSION: u32 = 1;

/// The version both sides speak, given the other side's range; `None` where there is none.
#[must_use]
pub fn common_version(oldest: u32, newest: u32) -> Option<u32> {
    let version = newest.min(PROTOCOL_VERSION);
    (version >= oldest && version >= OLDEST_PROTOCOL_VERSION).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::common_version;

    #[test]
    fn ranges_that_overlap_agree_on_the_newest_common_version() {
        for (oldest, newest, common) in [
            (1, 1, Some(1)),
            (1, 9, Some(1)),
            (0, 0, None),
            (2, 9, None),
            (3, 1, None),
        ] {
            assert_eq!(common_version(oldest, newest), common, "{oldest}..{newest}");
        }
    }
}
