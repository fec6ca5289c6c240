//! The MCP server of an agent program: its session tools, over standard input and output. It
//! lives as long as its program, and needs no gateway to begin.

mod caller;
mod gateway;
mod listing;
mod server;
mod tools;

use std::path::PathBuf;

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::binding;
use crate::cli::Door;
use caller::Callers;
use gateway::Gateway;
use server::Server;

/// The longest line that a program may send, in bytes: a message at its largest, and what
/// JSON makes of it.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// An MCP server to be run.
#[derive(Debug)]
pub struct Mcp {
    /// The state directory.
    pub state_dir: PathBuf,
    /// Who answers its calls.
    pub door: Door,
}

/// Serves until the program closes standard input.
pub fn run(mcp: Mcp) -> Result<(), ApiError> {
    binding::sweep(&mcp.state_dir);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let server = Server::new(Callers::of_process(mcp.state_dir), Gateway::new(mcp.door));
    let ended = runtime.block_on(async {
        let (stdin, stdout) = stdio();
        let transport = AsyncRwTransport::new(stdin, stdout).with_max_line_length(MAX_LINE_BYTES);
        let running = server
            .serve(transport)
            .await
            .map_err(|error| failed(&error))?;
        running.waiting().await.map_err(|error| failed(&error))
    });
    // A reading of standard input that nobody ends is not waited for.
    runtime.shutdown_background();
    ended.map(|_| ())
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(
        ErrorType::Unavailable,
        format!("the MCP server has ended: {error}"),
    )
    .with_hint("an agent program starts it by itself: tidings integrate claude, or codex")
}
