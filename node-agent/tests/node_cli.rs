//! `tidings-node` as whole outputs of the real binary.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{
    CertificateState, NodeLinkStatus, NodeStatus, Reply, Request, RootStatus,
};
use tidings_protocol::wire::frame::{HEADER_BYTES, decode, encode};
use tidings_protocol::{Catalog, HostName, NodeId, ThreadId};

/// Runs a command line with this on stdin and gives everything it says.
fn run(line: &str, stdin: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidings-node"))
        .args(line.split_whitespace())
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    let mut input = child.stdin.take().expect("piped");
    // A command that reads no stdin may have gone already.
    let _ = input.write_all(stdin.as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("end");
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().expect("ended by itself"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn alone_it_prints_help() {
    let output = run("", "");
    assert!(output.starts_with("exit 0\n--- stdout\nFollows the transcripts"));
    assert_eq!(output, run("--help", ""));
    for verb in ["join", "request", "run", "status", "doctor", "classify"] {
        let help = run(&format!("{verb} --help"), "");
        let example = format!("Example:\n  tidings-node {verb}");
        assert!(help.contains(&example), "{help}");
    }
}

#[test]
fn what_is_no_join_link_is_not_repeated_and_its_file_is_left_alone() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let file = dir.path().join("other.txt");
    std::fs::write(&file, "canary").expect("write");
    let expected = "exit 2\n--- stdout\n--- stderr\n\
        error: no join link: a join link begins with tidings://join/\n\
        hint: tidings nodes invite, on the gateway's machine, prints one\n";
    let as_address = run("join canary", "");
    assert!(as_address.starts_with("exit 2\n"), "{as_address}");
    assert!(as_address.contains("names no port"), "{as_address}");
    assert!(!as_address.contains("canary"), "{as_address}");
    assert_eq!(run("join", "canary"), expected);
    let line = format!("join --link-file {}", file.display());
    assert_eq!(run(&line, ""), expected);
    assert!(file.exists());
    assert_eq!(
        run("join --json", &"x".repeat(4_096)),
        "exit 2\n--- stdout\n{\"schemaVersion\":1,\"ok\":false,\"error\":{\
         \"type\":\"invalid_request\",\"message\":\"no join link: a join link has at most 512 \
         bytes\",\"hint\":\"tidings nodes invite, on the gateway's machine, prints one\"}}\n\
         --- stderr\n"
    );
}

#[test]
fn a_link_file_that_cannot_be_read_is_named() {
    assert_eq!(
        run("join --link-file /nonexistent/link.txt", ""),
        "exit 66\n--- stdout\n--- stderr\n\
         error: cannot read /nonexistent/link.txt: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_link_and_a_file_at_once_cannot_be_meant() {
    let output = run("join tidings://join/x --link-file y", "");
    assert!(output.starts_with("exit 2\n"), "{output}");
    assert!(!output.contains("tidings://"), "{output}");
}

#[test]
fn a_link_in_the_wrong_place_is_not_repeated() {
    let (code, pin) = ("0123456789abcdef".repeat(2), "ab12".repeat(16));
    let link = format!("tidings://join/{code}@127.0.0.1:1?ca={pin}");
    for line in [
        link.clone(),
        format!("join {link} {link}"),
        format!("join --name laptop --link {link}"),
        format!("join --nmae={link}"),
        format!("status {link}"),
        format!("run --root {link}"),
        format!("classify --catalog {code} file"),
        format!("{code} --json"),
        format!("join {code}"),
    ] {
        let output = run(&line, "");
        assert!(output.starts_with("exit 2\n"), "{output}");
        assert!(!output.contains(&code[..8]), "{output}");
    }
}

#[test]
fn without_a_pairing_status_says_how_to_join() {
    assert_eq!(
        run("status --state-dir /nonexistent", ""),
        "exit 69\n--- stdout\n--- stderr\n\
         error: /nonexistent holds no paired node\n\
         hint: pair it first: tidings-node join LINK --state-dir /nonexistent\n"
    );
}

fn status() -> NodeStatus {
    NodeStatus {
        version: "0.1.0".to_owned(),
        node_id: NodeId::parse("0123456789abcdef0123456789abcdef").expect("node id"),
        host_name: HostName::parse("laptop").expect("name"),
        gateway: "gw.example.org:7430".to_owned(),
        connection: "refused".to_owned(),
        connection_since: 1_796_072_703_123,
        connection_error: Some("the node is revoked: pair it again".to_owned()),
        connection_hint: Some("pair it again".to_owned()),
        certificate_not_after: 1_796_159_103_123,
        certificate_state: CertificateState::Expiring,
        gateway_ahead_ms: Some(1_500),
        roots: vec![RootStatus {
            catalog: Catalog::Claude,
            path: "/home/ada/.claude/projects".to_owned(),
            state: "polled".to_owned(),
        }],
        links: vec![NodeLinkStatus {
            link: LinkId(5),
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse("0a1b").expect("thread"),
            path: "/home/ada/.claude/projects/x/0a1b.jsonl".to_owned(),
            offset: 4_096,
            state: "idle".to_owned(),
        }],
        warnings: vec!["file events are used up".to_owned()],
    }
}

/// Answers one `node_status` at a socket in `dir`.
fn answer_once(dir: &Path) {
    let listener = UnixListener::bind(dir.join("node.sock")).expect("bind");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header).expect("header");
        let mut body = vec![0; u32::from_be_bytes(header) as usize];
        stream.read_exact(&mut body).expect("body");
        let request: Request = decode(&body).expect("request");
        assert_eq!(request, Request::NodeStatus {});
        let reply = Reply::NodeStatus(Box::new(status()));
        stream
            .write_all(&encode(&reply).expect("frame"))
            .expect("write");
    });
}

fn status_output(line: &str) -> String {
    let dir = tempfile::tempdir().expect("scratch directory");
    answer_once(dir.path());
    run(&format!("{line} --state-dir {}", dir.path().display()), "")
}

#[test]
fn status_shows_the_connection_the_roots_and_what_is_followed() {
    assert_eq!(
        status_output("status"),
        "exit 0\n--- stdout\n\
         node         laptop, id 0123456789abcdef0123456789abcdef, version 0.1.0\n\
         gateway      gw.example.org:7430, refused since 2026-11-30 21:05:03 UTC\n\
         certificate  until 2026-12-01 21:05:03 UTC\n\
         \n\
         CATALOG  STATE   ROOT\n\
         claude   polled  /home/ada/.claude/projects\n\
         \n\
         CATALOG  THREAD  STATE  RECORDED  FILE\n\
         claude   0a1b    idle     4.1 kB  /home/ada/.claude/projects/x/0a1b.jsonl\n\
         --- stderr\n\
         warning: the node is revoked: pair it again\n\
         warning: file events are used up\n"
    );
}

#[test]
fn status_as_json_has_every_member() {
    assert_eq!(
        status_output("status --json"),
        "exit 0\n--- stdout\n\
         {\"schemaVersion\":1,\"version\":\"0.1.0\",\
         \"nodeId\":\"0123456789abcdef0123456789abcdef\",\"hostName\":\"laptop\",\
         \"gateway\":\"gw.example.org:7430\",\"connection\":\"refused\",\
         \"connectionSince\":1796072703123,\
         \"connectionError\":\"the node is revoked: pair it again\",\
         \"connectionHint\":\"pair it again\",\
         \"certificateNotAfter\":1796159103123,\"certificateState\":\"expiring\",\
         \"gatewayAheadMs\":1500,\
         \"roots\":[{\"catalog\":\"claude\",\"path\":\"/home/ada/.claude/projects\",\
         \"state\":\"polled\"}],\
         \"links\":[{\"link\":5,\"catalog\":\"claude\",\"threadId\":\"0a1b\",\
         \"path\":\"/home/ada/.claude/projects/x/0a1b.jsonl\",\"offset\":4096,\
         \"state\":\"idle\"}],\
         \"warnings\":[\"file events are used up\"]}\n\
         --- stderr\n"
    );
}

#[test]
fn classify_names_what_it_cannot_read_and_waits_for_none_of_it() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = |name: &str| scratch.path().join(name);
    std::fs::create_dir(path("directory")).expect("a directory");
    std::os::unix::fs::symlink("nowhere", path("dangling")).expect("a link");
    std::os::unix::fs::symlink(path("loop"), path("loop")).expect("a link");
    let (mode, kind) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), kind, mode, 0).expect("a fifo");
    drop(UnixListener::bind(path("socket")).expect("a socket"));
    let (none, other) = (
        ("exit 66\n", "no_input", "no such file"),
        ("exit 65\n", "invalid_data", "is not a regular file"),
    );
    for (name, (exit, kind, message)) in [
        ("missing", none),
        ("dangling", none),
        ("directory", other),
        ("loop", other),
        ("fifo", other),
        ("socket", other),
    ] {
        let line = format!("classify {}", path(name).display());
        let said = run(&line, "");
        assert!(said.starts_with(exit), "{name}: {said}");
        assert!(said.contains(message), "{name}: {said}");
        assert!(
            said.contains("hint: name one transcript, a .jsonl file"),
            "{name}: {said}"
        );
        let json = run(&format!("{line} --json"), "");
        assert!(
            json.contains(&format!("\"type\":\"{kind}\"")),
            "{name}: {json}"
        );
        assert!(
            json.contains(name) && json.contains("\"hint\":\"name one"),
            "{name}: {json}"
        );
    }
}

#[test]
fn an_empty_file_has_no_records_and_that_is_no_error() {
    let file = tempfile::NamedTempFile::new().expect("file");
    let line = format!("classify {}", file.path().display());
    assert_eq!(
        run(&line, ""),
        "exit 0\n--- stdout\n--- stderr\nrecords 0, human 0; of no known program\n"
    );
    assert_eq!(
        run(&format!("{line} --json"), ""),
        "exit 0\n--- stdout\n{\"schemaVersion\":1,\"records\":[]}\n--- stderr\n"
    );
}

#[test]
fn a_root_must_name_its_catalog() {
    let output = run("run --root /srv --json", "");
    assert!(output.starts_with("exit 2\n--- stdout\n{"), "{output}");
    assert!(
        output.contains("a root is given as <catalog>=<directory>"),
        "{output}"
    );
}
