//! The session tools by MCP, as programs use them: a server per program, over its standard
//! input and output.

use std::path::Path;
use std::process::Stdio;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult, RequestMetaObject, Tool};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{Gateway, Hooks, Node, Scratch, Setup, binaries, counted_turns, notice};
use tokio::process::Child;

/// A program's end of an MCP server.
struct Program {
    running: RunningService<RoleClient, ()>,
    /// Ends with it.
    _server: Child,
}

impl Program {
    /// Of a conversation, where it says which one it is.
    async fn start(
        scratch: &Scratch,
        (binary, state_dir): (&Path, &Path),
        claude: Option<&str>,
    ) -> Self {
        let mut command = scratch.command(binary);
        command.args(["mcp", "--state-dir"]).arg(state_dir);
        if let Some(session) = claude {
            command.env("CLAUDE_CODE_SESSION_ID", session);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let mut server = command.kill_on_drop(true).spawn().expect("a server");
        let out = server.stdout.take().expect("stdout is piped");
        let input = server.stdin.take().expect("stdin is piped");
        Self {
            running: ().serve((out, input)).await.expect("a handshake"),
            _server: server,
        }
    }

    async fn at_gateway(gateway: &Gateway, claude: Option<&str>) -> Self {
        let server = (&*binaries().tidings, gateway.state_dir());
        Self::start(gateway.scratch(), server, claude).await
    }

    async fn tools(&self) -> Vec<Tool> {
        self.running.list_all_tools().await.expect("tools")
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        self.call_with(tool, arguments, json!({})).await
    }

    async fn call_with(&self, tool: &str, arguments: Value, meta: Value) -> CallToolResult {
        let (Value::Object(arguments), Value::Object(meta)) = (arguments, meta) else {
            panic!("objects");
        };
        let mut call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut of_request = RequestMetaObject::new();
        of_request.0.0 = meta;
        call.meta = Some(of_request);
        self.running.call_tool(call).await.expect("an answer")
    }

    /// What a call answers that must do what it was asked.
    async fn done(&self, tool: &str, arguments: Value) -> Value {
        done(&self.call(tool, arguments).await)
    }
}

#[track_caller]
fn done(result: &CallToolResult) -> Value {
    assert_ne!(result.is_error, Some(true), "{result:?}");
    let value = result.structured_content.clone();
    value.expect("structured content")
}

/// The text of a call's error.
#[track_caller]
fn refused(result: &CallToolResult) -> String {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    assert_eq!(result.structured_content, None);
    let text = result.content[0].as_text().expect("a text");
    text.text.clone()
}

#[tokio::test]
async fn a_server_needs_no_gateway_to_begin_and_a_call_says_since_when_and_what_to_do() {
    let scratch = Scratch::new();
    let mut gateway = Gateway::stopped(&scratch, Setup::without_local_node());
    let program = Program::at_gateway(&gateway, None).await;
    let peer = program
        .running
        .peer_info()
        .expect("an answer to initialize");
    let server = peer.server_info.clone().expect("what it is");
    assert_eq!(server.name, "tidings");
    assert_eq!(server.version, env!("CARGO_PKG_VERSION"));

    let tools = program.tools().await;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        [
            "session_status",
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "session_watch",
            "session_unwatch",
        ]
    );
    for tool in &tools {
        let annotations = tool.annotations.as_ref().expect("annotations");
        let looks_only = matches!(
            &*tool.name,
            "session_status" | "sessions_list" | "sessions_history"
        );
        assert_eq!(
            annotations.read_only_hint,
            Some(looks_only),
            "{}",
            tool.name
        );
        assert_eq!(tool.input_schema["type"], "object");
        assert_eq!(tool.input_schema["additionalProperties"], false);
        assert!(tool.output_schema.is_some() && tool.description.is_some());
    }

    let asked = json!({"sessionKey": "agent:main:main"});
    let first = refused(&program.call("session_status", asked.clone()).await);
    assert!(first.contains("out of reach at least since 20"), "{first}");
    assert!(
        first.contains("hint: tidings gateway run --state-dir "),
        "{first}"
    );
    let again = refused(&program.call("session_status", asked.clone()).await);
    assert_eq!(again, first, "since then, not since now");

    // The same server finds the gateway once it is there.
    gateway.restart();
    let listed = program.done("sessions_list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    let unknown = refused(&program.call("session_status", asked).await);
    assert!(unknown.contains("agent:main:main"), "{unknown}");
}

#[tokio::test]
async fn who_nobody_knows_may_look_and_not_speak() {
    let gateway = Gateway::start(&Scratch::new());
    let program = Program::at_gateway(&gateway, None).await;
    gateway.goal_changed("agent:main:t");
    let target = json!({"sessionKey": "agent:main:t"});
    let status = program.done("session_status", target.clone()).await;
    assert_eq!(status["stateVersion"], 1);
    for (tool, arguments) in [
        ("session_watch", target.clone()),
        ("session_unwatch", target.clone()),
        (
            "sessions_send",
            json!({"sessionKey": "agent:main:t", "message": "Stop."}),
        ),
    ] {
        let error = refused(&program.call(tool, arguments).await);
        assert!(error.contains("CLAUDE_CODE_SESSION_ID"), "{error}");
    }
    let odd = json!({"sessionKey": "agent:main:t", "since": 0});
    let error = refused(&program.call("session_status", odd).await);
    assert!(error.contains("since"), "{error}");
    let negative = json!({"sessionKey": "agent:main:t", "changesSince": -1});
    refused(&program.call("session_status", negative).await);
    let no_such_tool = CallToolRequestParams::new("session_delete");
    assert!(program.running.call_tool(no_such_tool).await.is_err());
}

#[tokio::test]
async fn a_conversation_watches_is_told_at_its_prompt_and_reconciles_across_two_machines() {
    let scratch = Scratch::new();
    let roots = ["claude", "codex"].map(|root| scratch.folder(root));
    let gateway = Gateway::start_with_local_node(&scratch, &roots[0], &roots[1]);
    let mut laptop = Node::join(&gateway, "laptop");
    laptop.run();
    let mine = Claude::create(&roots[0]);
    let mut theirs = Claude::create(&laptop.claude());
    let on_laptop = format!("agent:main:adopted:claude:laptop:{}", theirs.thread());
    let here = format!("agent:main:adopted:claude:local:{}", mine.thread());
    let hooks = Hooks::on_gateway(&gateway, &mine);
    hooks.fire("SessionStart", &json!({"source": "startup"}));
    let program = Program::at_gateway(&gateway, Some(mine.thread())).await;

    // Both threads become sessions by this: the one that asks and the one that is named.
    let target = json!({"sessionKey": on_laptop});
    let watched = program.done("session_watch", target.clone()).await;
    assert_eq!(watched["watched"], true, "{watched}");
    let version = watched["fromVersion"].as_u64().expect("a version");
    let sent = json!({"sessionKey": on_laptop, "message": "Which mill?", "watch": true});
    let sent = program.done("sessions_send", sent).await;
    assert_eq!(
        (&sent["queued"], &sent["watched"]),
        (&json!(true), &json!(true))
    );

    let other_side = Hooks::on_node(&laptop, &theirs);
    let asked = other_side.prompt(&json!({})).expect("a message");
    assert!(
        asked.contains(&format!("from session \"{here}\"")),
        "{asked}"
    );
    assert!(asked.ends_with(":\nWhich mill?"), "{asked}");
    let turn = theirs.human("The left one.");
    other_side.fire("Stop", &json!({}));
    let mut follow = gateway.follow(version);
    follow.wait_for_turns(&on_laptop, 1);

    assert_eq!(hooks.prompt(&json!({})), Some(notice(&on_laptop, version)));
    let since = json!({"sessionKey": on_laptop, "changesSince": version});
    let status = program.done("session_status", since).await;
    let events = status["stateChanges"]["events"].as_array().expect("events");
    assert_eq!(events.len(), 1, "{status}");
    assert_eq!(events[0]["kind"], "human_direct_message");
    assert_eq!(status["stateChanges"]["historyGap"], false);
    assert_eq!(status["upstream"]["state"], "live");
    // By looking it has read what it was told: no tool has shown it.
    let left = gateway.ask(&["notices", "list", &here]);
    assert_eq!(left["notices"], json!([]));
    assert_eq!(hooks.prompt(&json!({})), None);
    assert_eq!(counted_turns(&gateway, &on_laptop), [turn]);

    let said = program.done("sessions_history", target.clone()).await;
    let items = said["items"].as_array().expect("items");
    assert!(
        items.iter().any(|item| item["text"] == "The left one."),
        "{said}"
    );
    let ended = program.done("session_unwatch", target.clone()).await;
    assert_eq!(ended, json!({"removed": true}));
    assert_eq!(
        program.done("session_unwatch", target).await,
        json!({"removed": false})
    );
}

#[tokio::test]
async fn a_server_follows_its_program_into_another_conversation() {
    let scratch = Scratch::new();
    let roots = ["claude", "codex"].map(|root| scratch.folder(root));
    let gateway = Gateway::start_with_local_node(&scratch, &roots[0], &roots[1]);
    let first = Claude::create(&roots[0]);
    let second = Claude::create(&roots[0]);
    gateway.ask(&[
        "signals",
        "record",
        "--session",
        "agent:main:t",
        "--kind",
        "goal_changed",
        "--actor",
        "human",
    ]);
    let hooks = Hooks::on_gateway(&gateway, &first);
    hooks.fire("SessionStart", &json!({"source": "startup"}));
    let program = Program::at_gateway(&gateway, Some(first.thread())).await;
    let target = json!({"sessionKey": "agent:main:t"});
    program.done("session_watch", target.clone()).await;
    hooks
        .gone_on_in(second.thread())
        .fire("SessionStart", &json!({"source": "clear"}));
    program.done("session_watch", target).await;
    let watches = gateway.ask(&["watch", "list", "--target", "agent:main:t"]);
    let key = format!("agent:main:adopted:claude:local:{}", second.thread());
    let list = watches["watches"].as_array().expect("watches");
    let by: Vec<&Value> = list.iter().map(|watch| &watch["watcher"]).collect();
    assert_eq!(by, [&json!(key)], "the first was cleared away");
}

#[tokio::test]
async fn on_a_node_the_agents_socket_relays_and_codex_says_who_calls_with_each_call() {
    let mut gateway = Gateway::start(&Scratch::new());
    let mut laptop = Node::join(&gateway, "laptop");
    laptop.run();
    gateway.ask(&[
        "signals",
        "record",
        "--session",
        "agent:main:t",
        "--kind",
        "goal_changed",
        "--actor",
        "human",
    ]);
    let codex = Codex::create(&laptop.codex());
    let state_dir = laptop.state_dir();
    let server = (&*binaries().node, &*state_dir);
    let program = Program::start(gateway.scratch(), server, None).await;
    let target = json!({"sessionKey": "agent:main:t"});
    let meta = json!({"x-codex-turn-metadata": {"thread_id": codex.thread(), "turn_id": "1"}});
    let answer = program
        .call_with("session_watch", target.clone(), meta)
        .await;
    assert_eq!(done(&answer)["watched"], true);
    let watches = gateway.ask(&["watch", "list", "--target", "agent:main:t"]);
    let key = format!("agent:main:adopted:codex:laptop:{}", codex.thread());
    assert_eq!(watches["watches"][0]["watcher"], key, "{watches}");

    gateway.stop();
    laptop.wait_for_loss();
    let error = refused(&program.call("session_status", target.clone()).await);
    assert!(
        error.contains("out of reach") && error.contains("since"),
        "{error}"
    );
    assert!(error.contains("tidings gateway run"), "{error}");
    gateway.restart();
    laptop.wait_for_welcome();
    assert_eq!(
        program.done("session_status", target).await["stateVersion"],
        1
    );
}
