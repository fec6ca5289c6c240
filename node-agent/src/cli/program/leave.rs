//! `tidings-node leave`: gives up the pairing, so that this machine can join anew.

use serde::Serialize;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::{HostName, NodeId};

use super::run::{hold_error, identity_error};
use crate::cli::{CommandError, CommonArgs, Note, Page};
use crate::connection::NodeIdentity;
use crate::held_dir::{HeldDir, HoldError, Holder};

/// This machine is no node any more.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Departure {
    left: bool,
    node_id: NodeId,
    host_name: HostName,
    gateway: String,
}

/// Removes key and certificate. The gateway keeps the node on its list until its operator
/// removes it there: nobody can ask for that in the name of a key that is gone.
pub(super) fn run(common: &CommonArgs) -> Result<(), CommandError> {
    let dir = common.state_dir()?;
    let identity = NodeIdentity::load(&dir).map_err(identity_error)?;
    let _held = HeldDir::hold(&dir, Holder::NodeAgent).map_err(|error| match error {
        HoldError::Held { .. } => {
            hold_error(&error).with_hint("stop that process first, then run the same command again")
        }
        _ => hold_error(&error),
    })?;
    NodeIdentity::remove(&dir)
        .map_err(|error| ApiError::new(ErrorType::CannotCreate, error.to_string()))?;
    let departure = Departure {
        left: true,
        node_id: identity.node_id,
        host_name: identity.host_name,
        gateway: identity.gateway,
    };
    common.output().answer(&departure, |left| {
        Page::of(format_args!(
            "{} has left the gateway at {}\n",
            left.host_name, left.gateway
        ))
        .with(Note::Hint(format!(
            "on the gateway: tidings nodes remove {}",
            left.host_name
        )))
    })
}
