//! The MCP server of an agent program: its session tools, over standard input and output. It
//! lives as long as its program, and needs no gateway to begin.

mod caller;
mod gateway;
mod lines;
mod listing;
mod server;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio;
use rmcp::{RoleServer, ServiceExt};
use tidings_protocol::session_api::{ApiError, ErrorType};
use tokio::io::DuplexStream;
use tokio::time::timeout;

use super::{binding, hook};
use crate::cli::Door;
use caller::Callers;
use gateway::Gateway;
use lines::Lines;
use server::Server;

/// How long the last lines may take to be written, once the program has no more to say.
const FAREWELL: Duration = Duration::from_secs(5);

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
    hook::sweep(&mcp.state_dir);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let server = Server::new(Callers::of_process(mcp.state_dir), Gateway::new(mcp.door));
    let ended = runtime.block_on(async {
        let (stdin, stdout) = stdio();
        let lines = Lines::between(stdin, stdout);
        let transport = AsyncRwTransport::new(lines.input, lines.output);
        let ended = serve(server, transport).await;
        // A program that reads no more has gone, or will.
        let _ = timeout(FAREWELL, lines.written).await;
        ended
    });
    // A reading of standard input that nobody ends is not waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(
    server: Server,
    transport: AsyncRwTransport<RoleServer, DuplexStream, DuplexStream>,
) -> Result<(), ApiError> {
    let running = server.serve(transport).await;
    let running = running.map_err(|error| failed(&error))?;
    running.waiting().await.map_err(|error| failed(&error))?;
    Ok(())
}

fn failed(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(
        ErrorType::Unavailable,
        format!("the MCP server has ended: {error}"),
    )
    .with_hint("an agent program starts it by itself: tidings integrate claude, or codex")
}
