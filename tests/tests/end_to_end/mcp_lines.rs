//! What passes between a program and its MCP server line by line: by hand, and by the MCP
//! project's own client.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tidings_tests::{Gateway, Scratch, binaries, peak_kib, run};

/// A server whose lines a test writes and reads by itself.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(gateway: &Gateway) -> Self {
        let mut command = gateway.scratch().command(&binaries().tidings);
        command
            .args(["mcp", "--state-dir"])
            .arg(gateway.state_dir());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("a server");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Self {
            child,
            stdin,
            stdout,
        };
        server.say(begin().to_string().as_bytes());
        assert_eq!(server.hear()["id"], 1);
        server.say(ready().to_string().as_bytes());
        server
    }

    fn say(&mut self, line: &[u8]) {
        self.stdin.write_all(line).expect("sent");
        self.stdin.write_all(b"\n").expect("sent");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Closes its standard input: its exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin);
        self.child.wait().expect("ended").code()
    }
}

fn begin() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    })
}

fn ready() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

#[test]
fn a_line_that_is_no_json_or_has_no_end_is_answered_and_the_next_one_is_read() {
    let gateway = Gateway::start(&Scratch::new());
    let mut server = Server::start(&gateway);
    let list = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let secret = b"Quetzal7marmalade, which is no JSON";
    let no_json = (-32_700, "the line is no JSON");
    let too_long = (-32_600, "the line has more than 1048576 bytes");
    let endless = vec![b'q'; 64 * 1024 * 1024];
    let long_call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/list",
        "params": {"cursor": "c".repeat(1024 * 1024)},
    });
    let long_call = long_call.to_string();
    let lines: [(&[u8], _); 5] = [
        (secret, no_json),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 8,", no_json),
        (b"\xff\xfe\x00", no_json),
        (&endless, too_long),
        (long_call.as_bytes(), too_long),
    ];
    for (at, (line, (code, message))) in lines.into_iter().enumerate() {
        server.say(line);
        let error = json!({"code": code, "message": message});
        let expected = json!({"jsonrpc": "2.0", "id": null, "error": error});
        assert_eq!(server.hear(), expected, "{at}");
        let id = 100 + at as u64;
        server.say(list(id).to_string().as_bytes());
        let answer = server.hear();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["tools"].as_array().map(Vec::len), Some(6));
    }
    // What is JSON and no message is the protocol's to refuse.
    server.say(b"{\"jsonrpc\": \"2.0\"}");
    assert_eq!(server.hear()["error"]["code"], -32_600);
    let peak = peak_kib(server.child.id());
    assert!(peak < 48.0 * 1024.0, "{peak} KiB for a line of 64 MiB");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_gateway_that_does_not_go_on_is_named_in_the_answer_to_a_call() {
    let gateway = Gateway::start(&Scratch::new());
    let mut server = Server::start(&gateway);
    gateway.suspend();
    let params = json!({"name": "sessions_list", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    server.say(call.to_string().as_bytes());
    let answer = server.hear();
    gateway.resume();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let said = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(said.contains("did not answer within 12s"), "{said}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn not_even_a_trace_log_has_the_text_of_a_message() {
    let gateway = Gateway::start(&Scratch::new());
    let call = |id: u32, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let secret = json!({"sessionKey": "agent:main:t", "message": "Quetzal7marmalade"});
    let odd = json!({"sessionKey": "agent:main:t", "message": ["Quetzal7marmalade"]});
    let lines = [
        begin().to_string(),
        ready().to_string(),
        call(2, "sessions_send", secret),
        call(3, "sessions_send", odd),
        "Quetzal7marmalade, which is no JSON".to_owned(),
    ];
    let input = gateway.scratch().path().join("calls.jsonl");
    std::fs::write(&input, lines.join("\n") + "\n").expect("an input");
    let mut command = gateway.scratch().command(&binaries().tidings);
    command
        .args(["mcp", "--state-dir"])
        .arg(gateway.state_dir())
        .env("TIDINGS_LOG", "trace")
        .env("CLAUDE_CODE_SESSION_ID", "t-1")
        .stdin(std::fs::File::open(&input).expect("an input"));
    let answer = run(&mut command);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(answer.stdout.contains("\"id\":1"), "{answer}");
    let said = format!("{}{}", answer.stdout, answer.stderr);
    assert!(!said.contains("Quetzal"), "{answer}");
}

/// The MCP project's own client for Python, where it is installed or may be.
#[test]
fn the_python_client_gets_on_with_the_server() {
    let Some(python) = python_with_mcp() else {
        println!(
            "SKIPPED: python3 cannot import mcp. scripts/mcp-client makes an environment that \
             can, and runs this test with it."
        );
        return;
    };
    let gateway = Gateway::start(&Scratch::new());
    gateway.goal_changed("agent:main:t");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/mcp_client.py");
    let mut command = gateway.scratch().command(&python);
    command
        .arg(script)
        .arg(&binaries().tidings)
        .arg(gateway.state_dir());
    let answer = run(&mut command);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (0, "well\n"),
        "{answer}"
    );
}

/// The one that `TIDINGS_TEST_PYTHON` names, else the system's, if it has the client.
fn python_with_mcp() -> Option<PathBuf> {
    let named = std::env::var_os("TIDINGS_TEST_PYTHON").map(PathBuf::from);
    let python = named.clone().unwrap_or_else(|| "python3".into());
    let tried = Command::new(&python).args(["-c", "import mcp"]).output();
    let imports = tried.is_ok_and(|output| output.status.success());
    assert!(
        imports || named.is_none(),
        "{} cannot import mcp",
        python.display()
    );
    imports.then_some(python)
}
