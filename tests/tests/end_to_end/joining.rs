//! Pairing by a printed link: what a link admits, and what it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tidings_tests::{Answer, Gateway, Node, Scratch, containing, files, until};

#[test]
fn a_link_admits_one_machine_and_no_second() {
    let gateway = Gateway::start(&Scratch::new());
    let first = Node::new(gateway.scratch(), "laptop");
    let link = first.invite(&gateway);
    first.join_with(&link).done();

    let second = Node::new(gateway.scratch(), "desktop");
    let answer = second.join_with(&link);
    refused_without_repeating(&answer, &link);
    assert_eq!(node_names(&gateway), ["laptop"]);

    let own_link = second.invite(&gateway);
    second.join_with(&own_link).done();
    assert_eq!(node_names(&gateway), ["desktop", "laptop"]);
}

#[test]
fn a_machine_that_missed_the_answer_gets_the_same_one_again() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    let first = node.join_with(&link).done();
    // What is left of a machine that lost its power before the answer came: its key.
    for file in files(&node.state_dir()) {
        if !is_key(&file) {
            fs::remove_file(file).expect("a file goes");
        }
    }
    assert_eq!(node.join_with(&link).done(), first);
    node.run();
    assert_eq!(node_names(&gateway), ["laptop"]);
}

#[test]
fn a_gateway_killed_after_it_has_admitted_a_machine_gives_the_same_answer_again() {
    let mut gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    let first = node.join_with(&link).done();
    let identity = node.state_dir().join("node.json");
    let kept = fs::read(&identity).expect("an identity");
    gateway.kill();
    fs::remove_file(&identity).expect("the answer is lost");
    gateway.restart();
    assert_eq!(node.join_with(&link).done(), first);
    assert_eq!(
        fs::read(&identity).expect("an identity"),
        kept,
        "the same certificate"
    );
    node.run();
    assert_eq!(node_names(&gateway), ["laptop"]);
}

#[test]
fn a_machine_that_has_joined_does_not_join_again() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    let link = Node::new(gateway.scratch(), "desk").invite(&gateway);
    let answer = node.join_with(&link);
    refused_without_repeating(&answer, &link);
    assert!(answer.stdout.contains("laptop"), "{answer}");
    node.run();
}

#[test]
fn a_machine_that_has_joined_gets_the_same_answer_by_the_same_link() {
    let mut gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    let first = node.join_with(&link).done();
    let identity = node.state_dir().join("node.json");
    let kept = fs::read(&identity).expect("an identity");
    assert_eq!(node.join_with(&link).done(), first);
    // It is what it is, whether or not there is a gateway to ask.
    gateway.kill();
    assert_eq!(node.join_with(&link).done(), first);
    let file = node.state_dir().join("link.txt");
    fs::write(&file, &link).expect("a file with the link");
    let path = file.to_str().expect("a path");
    assert_eq!(node.command(&["join", "--link-file", path]).done(), first);
    assert!(!file.exists(), "a link is deleted once it is read");
    assert_eq!(fs::read(&identity).expect("an identity"), kept);
}

#[test]
fn a_machine_that_has_left_joins_anew_as_another_node() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    node.run();
    let busy = node.command(&["leave"]);
    assert_eq!(busy.code, 69, "not while its agent runs: {busy}");
    let hint = busy.refused()["hint"].to_string();
    assert!(hint.contains("stop that process first"), "{busy}");
    assert_eq!(node.stop(), 0);
    assert_eq!(node.command(&["leave"]).done()["hostName"], "laptop");
    let nothing_left = files(&node.state_dir());
    assert!(
        !nothing_left.iter().any(|file| is_key(file)),
        "{nothing_left:?}"
    );
    let link = Node::new(gateway.scratch(), "desk").invite(&gateway);
    assert_eq!(node.join_with(&link).done()["hostName"], "desk");
    node.run();
}

#[test]
fn a_gateway_that_is_not_the_links_is_refused_before_the_code_is_told() {
    let gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    let last = if link.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &link[..link.len() - 1]);
    refused_without_repeating(&node.join_with(&wrong), &link);
    assert_eq!(node_names(&gateway), [""; 0]);
    // The code was not used up: it was never sent.
    node.join_with(&link).done();
}

#[test]
fn a_link_that_is_too_old_is_refused() {
    let mut gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    assert_eq!(gateway.stop(), 0);
    let changed = database(&gateway)
        .execute("UPDATE join_codes SET expires_at = 1", [])
        .expect("join codes expire");
    assert_eq!(changed, 1);
    gateway.restart();
    refused_without_repeating(&node.join_with(&link), &link);
    assert_eq!(node_names(&gateway), [""; 0]);
}

#[test]
fn a_link_that_is_withdrawn_is_listed_until_then_and_admits_nobody() {
    let gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let other = Node::new(gateway.scratch(), "desk");
    let (link, kept) = (node.invite(&gateway), other.invite(&gateway));
    let names = || {
        let list = gateway.ask(&["nodes", "list"]);
        let open = list["invitations"].as_array().expect("invitations").clone();
        assert!(open.iter().all(|open| open["expiresAt"].is_u64()), "{list}");
        let names: Vec<_> = open.iter().map(|open| open["name"].clone()).collect();
        names
    };
    assert_eq!(names(), ["laptop", "desk"]);
    let withdrawn = gateway.ask(&["nodes", "reject", "laptop"]);
    assert_eq!(withdrawn["rejected"], true, "{withdrawn}");
    assert_eq!(withdrawn["machineName"], "laptop", "{withdrawn}");
    assert_eq!(names(), ["desk"]);
    refused_without_repeating(&node.join_with(&link), &link);
    other.join_with(&kept).done();
    assert_eq!(names(), [""; 0], "used");
    let again = gateway.run(&["nodes", "reject", "laptop"]);
    assert_eq!(again.code, 1, "{again}");
}

#[test]
fn a_machine_whose_node_was_removed_is_told_what_to_do() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    node.run();
    gateway.ask(&["nodes", "remove", "laptop"]);
    let status = until("the node is turned away", || {
        let status = node.command(&["status"]).done();
        (status["connection"] == "refused").then_some(status)
    });
    let leave = "tidings-node leave, then tidings-node join LINK";
    let hint = status["connectionHint"].as_str().expect("a hint");
    assert!(hint.contains(leave), "{status}");
    let doctor = node.command(&["doctor"]);
    assert!(doctor.stdout.contains(leave), "{doctor}");
    let shown = gateway.ask(&["cert", "inspect"]);
    let rows = shown["certificates"].as_array().expect("certificates");
    let of_laptop = rows.iter().find(|row| row["hostName"] == "laptop");
    assert_eq!(of_laptop.expect("its own")["state"], "revoked", "{shown}");
}

#[test]
fn what_is_no_link_is_refused_and_not_repeated() {
    let scratch = Scratch::new();
    let node = Node::new(&scratch, "laptop");
    let code = "0123456789abcdef0123456789abcdef";
    let pin = "ab".repeat(32);
    for garbled in [
        code.to_owned(),
        format!("https://join/{code}@127.0.0.1:1?ca={pin}"),
        format!("tidings://join/{code}x@127.0.0.1:1?ca={pin}"),
        format!("tidings://join/{code}@127.0.0.1?ca={pin}"),
        format!("tidings://join/{code}@127.0.0.1:1?ca={}", &pin[2..]),
        format!("tidings://join/{code}@127.0.0.1:1"),
    ] {
        let answer = node.join_with(&garbled);
        assert!([2, 65].contains(&answer.code), "{garbled}: {answer}");
        let error = answer.refused().to_string() + &answer.stderr;
        assert!(!error.contains(code), "{error}");
    }
}

#[test]
fn a_gateway_that_does_not_answer_is_unavailable() {
    let mut gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    gateway.kill();
    let answer = node.join_with(&link);
    assert_eq!(answer.code, 69, "{answer}");
    let error = answer.refused();
    assert_eq!(error["type"], "unavailable");
    assert!(error.to_string().contains(gateway.address()), "{error}");
}

#[test]
fn keys_are_their_owners_alone_and_the_code_is_stored_nowhere() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    let link = node.invite(&gateway);
    node.join_with(&link).done();
    node.run();
    let code = &link["tidings://join/".len()..][..32];
    for folder in [gateway.state_dir(), &node.state_dir()] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        let files = files(folder);
        assert!(files.iter().any(|file| is_key(file)), "{files:?}");
        for key in files.iter().filter(|file| is_key(file)) {
            assert_eq!(mode(key), 0o600, "{}", key.display());
        }
        assert_eq!(containing(files, code.as_bytes()), Vec::<PathBuf>::new());
    }
    let logs = vec![gateway.log(), node.log()];
    assert_eq!(containing(logs, code.as_bytes()), Vec::<PathBuf>::new());
}

fn is_key(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "key")
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("a file or folder");
    metadata.permissions().mode() & 0o777
}

/// A refusal that says what is wrong, and not the secret.
fn refused_without_repeating(answer: &Answer, link: &str) {
    let error = answer.refused();
    let code = &link["tidings://join/".len()..][..32];
    let said = format!("{error} {}", answer.stderr);
    assert!(!said.contains(code), "{said}");
}

/// The names of the nodes that have joined, in order.
fn node_names(gateway: &Gateway) -> Vec<String> {
    let list = gateway.ask(&["nodes", "list"]);
    let mut names: Vec<String> = list["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| node["name"].as_str().expect("a name").to_owned())
        .filter(|name| name != "local")
        .collect();
    names.sort();
    names
}

/// The database of a gateway that has stopped.
fn database(gateway: &Gateway) -> Connection {
    let magic = b"SQLite format 3\0";
    let mut found = files(gateway.state_dir());
    found.retain(|path| fs::read(path).is_ok_and(|bytes| bytes.starts_with(magic)));
    assert_eq!(found.len(), 1, "{found:?}");
    Connection::open(&found[0]).expect("a database")
}
