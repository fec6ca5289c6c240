//! The server: answers what a program asks by the protocol, and has the gateway answer the
//! calls of its tools.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Listed,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::caller::{CLAUDE_VARIABLE, Callers};
use super::gateway::Gateway;
use super::tools::Tool;

/// Its name to programs.
const NAME: &str = "tidings";
/// What a program is told of it as a whole.
const INSTRUCTIONS: &str = "Tidings tells this conversation, once and in time, that somebody \
    else changed a session it depends on. When a prompt comes with a line like Session \"…\" \
    changed, call session_status with its sessionKey and changesSince before acting. \
    session_watch says which sessions matter.";

/// The MCP server of one program.
#[derive(Debug)]
pub(super) struct Server {
    callers: Callers,
    gateway: Gateway,
}

impl Server {
    pub(super) fn new(callers: Callers, gateway: Gateway) -> Self {
        Self { callers, gateway }
    }

    async fn call(
        &self,
        tool: Tool,
        arguments: Map<String, Value>,
        meta: &Map<String, Value>,
    ) -> Result<Value, ApiError> {
        let request = tool.request(arguments)?;
        let caller = self.callers.of_call(meta);
        if caller.is_none() && tool.needs_caller() {
            return Err(nobody_calls(tool));
        }
        let reply = self.gateway.ask(caller, request).await?;
        tool.result(reply).ok_or_else(|| {
            ApiError::new(ErrorType::InvalidData, "the answer is to another question")
                .with_hint("the gateway may be of another version")
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().build();
        let own = Implementation::new(NAME, env!("CARGO_PKG_VERSION")).with_title("Tidings");
        ServerConfig::new(tools)
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Tool::ALL.map(Tool::listed).to_vec();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Listed> {
        Tool::parse(name).map(Tool::listed)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::parse(&call.name) else {
            let tools = Tool::ALL.map(Tool::name).join(", ");
            let message = format!("there is no such tool; there are {tools}");
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = call.arguments.unwrap_or_default();
        let answered = self.call(tool, arguments, &context.meta.0).await;
        Ok(match answered {
            Ok(value) => CallToolResult::structured(value),
            Err(error) => refused(&error),
        }
        .into())
    }
}

/// An error as a tool's result, so that the model reads it and can act on it. As text only:
/// clients hold whatever is structured against the schema of a success.
fn refused(error: &ApiError) -> CallToolResult {
    let text = match &error.hint {
        Some(hint) => format!("{}\nhint: {hint}", error.message),
        None => error.message.clone(),
    };
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn nobody_calls(tool: Tool) -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        format!(
            "{} speaks as the conversation that calls it, and nobody said which one that is",
            tool.name()
        ),
    )
    .with_hint(format!(
        "Claude Code says it in {CLAUDE_VARIABLE}, Codex with each call; a program that says \
         neither can only look"
    ))
}
