//! A look at the gateway from a machine whose agent does not run: would it be welcome?

use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Goaway, Refused};

use super::agent::{dial, random};
use super::identity::NodeIdentity;
use super::session::hello;
use super::tls::paired;
use super::transport::CONTROL_FRAME_BYTES;
use crate::clock::Clock;
use crate::framed;

/// How long an address may take to answer.
const CONNECT_DEADLINE: Duration = Duration::from_secs(6);
/// How long the gateway may take to welcome.
const WELCOME_DEADLINE: Duration = Duration::from_secs(10);

/// What the gateway says to this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It is welcome.
    Welcome {
        /// How far the gateway's clock is ahead of this machine's, in milliseconds.
        gateway_ahead_ms: i64,
    },
    /// It is turned away.
    Refused(Refused),
}

/// Connects as the node with this identity, and says goodbye at once.
pub async fn probe(identity: &NodeIdentity, clock: &Arc<dyn Clock>) -> Result<Probe, String> {
    let config = paired(identity, clock).map_err(|error| error.to_string())?;
    let (endpoint, connection) =
        dial(&identity.gateway, config, &**clock, CONNECT_DEADLINE).await?;
    let greeting = async {
        let (mut send, mut receive) = connection.open_bi().await.map_err(std::io::Error::from)?;
        framed::write(&mut send, &Message::Hello(hello(random(), Vec::new()))).await?;
        let answer = framed::read(&mut receive, CONTROL_FRAME_BYTES).await?;
        let goodbye = Message::Goaway(Goaway {
            reason: "only a look".to_owned(),
        });
        // The gateway hears of the end in any case.
        let _ = framed::write(&mut send, &goodbye).await;
        Ok::<_, framed::StreamError>(answer)
    };
    let answer = tokio::time::timeout(WELCOME_DEADLINE, greeting).await;
    let closed = connection.close_reason();
    connection.close(0u32.into(), b"only a look");
    endpoint.wait_idle().await;
    match answer {
        Ok(Ok(Some(Message::Welcome(welcome)))) => Ok(Probe::Welcome {
            gateway_ahead_ms: welcome.gateway_time.saturating_sub(clock.now()),
        }),
        Ok(Ok(Some(Message::Refused(refused)))) => Ok(Probe::Refused(refused)),
        Ok(Ok(_)) => Err("the gateway did not welcome".to_owned()),
        Ok(Err(error)) => Err(closed.map_or_else(|| error.to_string(), |why| why.to_string())),
        Err(_) => Err("the gateway did not welcome in time".to_owned()),
    }
}
