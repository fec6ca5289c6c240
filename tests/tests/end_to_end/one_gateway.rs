//! One gateway per state directory.

use std::path::Path;

use tidings_tests::{Gateway, Scratch, binaries, run};

#[test]
fn a_second_gateway_on_one_state_directory_refuses_and_names_the_first() {
    let gateway = Gateway::start(&Scratch::new());
    let answer = gateway.run(&["gateway", "run", "--listen", "127.0.0.1:0", "--http", "off"]);
    let error = answer.refused();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(&gateway.id().to_string()), "{error}");
    // The first one has not noticed.
    assert_eq!(gateway.ask(&["status"])["gateway"]["pid"], gateway.id());
}

#[test]
fn a_gateway_whose_first_was_killed_starts_at_once() {
    let mut gateway = Gateway::start(&Scratch::new());
    let first = gateway.id();
    gateway.kill();
    gateway.restart();
    let status = gateway.ask(&["status"]);
    assert_ne!(status["gateway"]["pid"], first);
    assert_eq!(status["gateway"]["listen"], gateway.address());
}

#[test]
fn without_a_gateway_a_command_says_how_to_start_one() {
    let mut gateway = Gateway::start(&Scratch::new());
    gateway.kill();
    for question in [&["status"][..], &["signals", "list"], &["nodes", "list"]] {
        let answer = gateway.run(question);
        assert_eq!(answer.code, 69, "{answer}");
        let error = answer.refused();
        assert_eq!(error["type"], "unavailable");
        let hint = error["hint"].as_str().expect("a hint");
        assert!(hint.contains("tidings gateway run"), "{error}");
    }
}

#[test]
fn a_state_directory_that_makes_a_socket_path_too_long_is_a_named_error() {
    let scratch = Scratch::new();
    let deep = scratch.path().join("d".repeat(120));
    let mut command = scratch.command(&binaries().tidings);
    command
        .args(["gateway", "run", "--json", "--http", "off"])
        .args(["--listen", "127.0.0.1:0", "--state-dir"])
        .arg(Path::new(&deep));
    let answer = run(&mut command);
    assert_eq!(answer.code, 78, "{answer}");
    assert_eq!(answer.refused()["type"], "configuration");
}
