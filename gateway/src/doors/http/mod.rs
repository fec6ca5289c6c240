//! The HTTP door: the requests of the session interface as JSON, the log and the wakes as
//! server-sent events, and what a monitoring system asks.
//!
//! | where | what |
//! |---|---|
//! | `listening`, `tls`, `patience` | the port, connections and their limits |
//! | `guard`, `bearer` | who may come in: `Host`, `Origin`, tokens |
//! | `routes`, `call`, `answer` | one request and its answer |
//! | `table`, `shapes`, `faults`, `unique`, `openapi` | what there is to ask, and what it looks like |
//! | `events`, `stream` | server-sent events |
//! | `ready`, `metrics`, `figures` | how it stands |

mod answer;
mod bearer;
mod call;
mod events;
mod faults;
mod figures;
mod guard;
mod listening;
mod metrics;
mod openapi;
mod patience;
mod ready;
mod routes;
mod shapes;
mod stream;
mod table;
mod tls;
mod unique;

use std::net::SocketAddr;
use std::time::Duration;

pub use listening::{HttpError, Listening};
pub(super) use tls::findings;

/// Where HTTP is answered, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// The address.
    pub listen: SocketAddr,
    /// The bounds.
    pub limits: HttpLimits,
}

/// The bounds of the HTTP door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at once; who comes later waits in the port's own queue.
    pub connections: usize,
    /// Streams at once: each may hold two pages of signals.
    pub streams: usize,
    /// How long a TLS handshake, the head of a request or its body may take to arrive.
    pub arrival: Duration,
    /// How long a reader may take nothing of what waits for it.
    pub write_stall: Duration,
    /// How often a stream says that it stands.
    pub keep_alive: Duration,
    /// How long answers may take once the gateway stops.
    pub farewell: Duration,
}

impl HttpOptions {
    /// At this address, with the usual bounds.
    #[must_use]
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            limits: HttpLimits::default(),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            // A machine's programs and some dashboards; each costs some 20 KB while it idles.
            connections: 256,
            // With pages of 500 signals at most 32 MB.
            streams: 64,
            // A slow line sends 1 MB in that time.
            arrival: Duration::from_secs(10),
            // A program that is stopped for this long has lost its place anyway.
            write_stall: Duration::from_secs(30),
            // Proxies give up silent connections after 30 s to 60 s.
            keep_alive: Duration::from_secs(15),
            farewell: Duration::from_secs(5),
        }
    }
}

/// The largest body of a request: a message of 128 KiB with every byte written as `\u00xx`
/// has 768 KiB.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The largest head of a request, and what waits for a reader beside the page it is at.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How many headers a request has at most.
const MAX_HEADERS: usize = 64;
