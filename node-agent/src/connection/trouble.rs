//! What a failed handshake says about the two machines.

use quinn::{ConnectionError, TransportErrorCode};
use tidings_protocol::EpochMs;

use crate::cli::format::utc;

/// TLS alerts, as QUIC carries them.
const CERTIFICATE_EXPIRED: u8 = 45;
const UNKNOWN_CA: u8 = 48;

/// The two machines do not agree on the time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClockTrouble {
    /// This machine's clock stands outside the life of the gateway's certificate, which is
    /// renewed in time and begins a day back.
    #[error(
        "by this machine's clock ({} UTC) the gateway's certificate is not valid: \
         set the clock right, or the gateway's", utc(*now)
    )]
    Here {
        /// What this machine's clock shows.
        now: EpochMs,
    },
    /// The gateway's clock stands before the life of this node's certificate.
    #[error(
        "by the gateway's clock this node's certificate is not valid (here it is {} UTC): \
         set the gateway's clock right", utc(*now)
    )]
    There {
        /// What this machine's clock shows.
        now: EpochMs,
    },
}

/// The trouble with clocks that made a handshake fail, if that was it.
pub(super) fn clock_trouble(error: &ConnectionError, now: EpochMs) -> Option<ClockTrouble> {
    let expired = TransportErrorCode::crypto(CERTIFICATE_EXPIRED);
    match error {
        ConnectionError::TransportError(error) if error.code == expired => {
            Some(ClockTrouble::Here { now })
        }
        ConnectionError::ConnectionClosed(close) if close.error_code == expired => {
            Some(ClockTrouble::There { now })
        }
        _ => None,
    }
}

/// True where our own verifier does not know the authority that the other side shows.
pub(super) fn is_unknown_authority(error: &ConnectionError) -> bool {
    let unknown_ca = TransportErrorCode::crypto(UNKNOWN_CA);
    matches!(error, ConnectionError::TransportError(error) if error.code == unknown_ca)
}
