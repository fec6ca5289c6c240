//! `tidings-node request` and `tidings-node join --certificate`: a key made here, and a
//! certificate for it that somebody carries.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tidings_protocol::NodeId;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::join::join_error;
use super::run::{hold_error, identity_error};
use crate::cli::{CommandError, CommonArgs, Note, Page};
use crate::clock::{Clock, SystemClock};
use crate::connection::{NodeIdentity, NodeKey, ProvisionError, accept, signing_request_pem};
use crate::held_dir::{HeldDir, Holder};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings-node request --out laptop.csr\n\n\
    Then, on the gateway's machine:\n  \
    tidings cert issue laptop --request laptop.csr --out laptop/\n\
    and back here:\n  tidings-node join --certificate laptop/")]
pub(super) struct RequestArgs {
    /// Where to write it; else it goes to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A signing request for the key of this machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    node_id: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    request: String,
}

/// Makes the key of this machine where there is none, and a signing request for it.
pub(super) fn request(args: &RequestArgs, common: &CommonArgs) -> Result<(), CommandError> {
    let dir = common.state_dir()?;
    if let Ok(paired) = NodeIdentity::load(&dir) {
        return Err(join_error(&paired.into()).into());
    }
    let key = NodeKey::load_or_create(&dir).map_err(identity_error)?;
    let made = Made {
        node_id: key.node_id(),
        request: signing_request_pem(&key).map_err(identity_error)?,
        file: args.out.clone(),
    };
    if let Some(file) = &made.file {
        std::fs::write(file, &made.request).map_err(|error| {
            let message = format!("cannot write {}: {error}", file.display());
            ApiError::new(ErrorType::CannotCreate, message)
        })?;
    }
    let next = "on the gateway's machine: tidings cert issue NAME --request FILE --out FOLDER";
    common.output().answer(&made, |made| {
        let text = match &made.file {
            Some(file) => format!("{}\n", file.display()),
            None => made.request.replace('\r', ""),
        };
        Page::of(text).with(Note::Hint(next.to_owned()))
    })
}

/// Takes the certificate that was carried here. An agent that runs would overwrite it.
pub(super) fn take(path: &Path, state_dir: &Path) -> Result<NodeIdentity, ApiError> {
    let _held = HeldDir::hold(state_dir, Holder::NodeAgent).map_err(|error| hold_error(&error))?;
    accept(path, state_dir, SystemClock::new().now()).map_err(|error| {
        let (error_type, hint) = match &error {
            ProvisionError::NoKey { .. } => (
                ErrorType::InvalidData,
                "the certificate must be made for a request of this machine: tidings-node request",
            ),
            ProvisionError::OtherKey { .. } => (
                ErrorType::InvalidData,
                "have one made for this machine's request, or give another --state-dir",
            ),
            ProvisionError::NotValid { .. } => (
                ErrorType::InvalidData,
                "have a new one made: tidings cert renew NODE --out FOLDER; and check the clock",
            ),
            ProvisionError::File(_) => (
                ErrorType::CannotCreate,
                "--certificate takes the file node.json, or the folder that holds it",
            ),
        };
        ApiError::new(error_type, error.to_string()).with_hint(hint)
    })
}
