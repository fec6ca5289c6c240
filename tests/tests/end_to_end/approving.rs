//! Pairing by approval, with the real programs on both sides.

use tidings_tests::{Gateway, Node, Scratch};

#[test]
fn a_machine_that_asks_is_approved_by_its_words_and_runs() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    let listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    let words = asking.wait_for("waiting")["words"].clone();
    let words = words.as_str().expect("words");
    assert_eq!(words.split(' ').count(), 6, "{words}");
    let requested = listening.wait_for("requested");
    assert_eq!(requested["request"]["words"], words, "{requested}");
    let list = gateway.ask(&["nodes", "list"]);
    assert_eq!(list["nodes"][0]["status"], "pending", "{list}");

    let mut approve = vec!["nodes", "approve"];
    approve.extend(words.split(' '));
    assert_eq!(gateway.ask(&approve)["hostName"], "laptop");

    let ended = asking.wait_for_end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.said.last().expect("an answer")["hostName"], "laptop");
    listening.wait_for("approved");
    assert_eq!(listening.interrupt().code, 0);
    node.run();
    let shown = gateway.ask(&["nodes", "show", "laptop"]);
    assert_eq!(shown["status"], "connected", "{shown}");
    assert_eq!(shown["audit"][0]["action"], "nodes.approve", "{shown}");
}

#[test]
fn a_machine_that_nobody_listens_to_or_that_is_rejected_ends_with_an_error() {
    let gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let nobody = node.ask(&gateway).wait_for_end();
    assert_eq!(nobody.code, 69, "{nobody:?}");
    let error = &nobody.said[0]["error"];
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.contains("tidings nodes listen"), "{error}");

    let listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    let id = asking.wait_for("waiting")["nodeId"].clone();
    let rejected = gateway.ask(&["nodes", "reject", id.as_str().expect("an id")]);
    assert_eq!(rejected["rejected"], true, "{rejected}");
    let ended = asking.wait_for_end();
    assert_eq!(ended.code, 77, "{ended:?}");
    listening.wait_for("rejected");
    assert!(!node.state_dir().join("node.json").exists());
}

#[test]
fn a_machine_that_is_interrupted_while_it_waits_withdraws_its_request() {
    let gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    asking.wait_for("waiting");
    let ended = asking.interrupt();
    assert_eq!(ended.code, 69, "{ended:?}");
    listening.wait_for("withdrawn");
    let list = gateway.ask(&["nodes", "list"]);
    assert_eq!(list["nodes"].as_array().map(Vec::len), Some(0), "{list}");
}

#[test]
fn a_gateway_that_is_killed_while_a_machine_waits_forgets_it_and_it_may_ask_again() {
    let mut gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    let listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    asking.wait_for("waiting");
    gateway.kill();
    gateway.restart();
    assert_eq!(asking.wait_for_end().code, 69);
    assert_eq!(listening.wait_for_end().code, 69);
    let _listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    let id = asking.wait_for("waiting")["nodeId"].clone();
    gateway.ask(&["nodes", "approve", id.as_str().expect("an id")]);
    assert_eq!(asking.wait_for_end().code, 0);
    node.run();
}

#[test]
fn a_gateway_stops_while_a_machine_waits() {
    let mut gateway = Gateway::start(&Scratch::new());
    let node = Node::new(gateway.scratch(), "laptop");
    let _listening = gateway.listen_for_nodes();
    let asking = node.ask(&gateway);
    asking.wait_for("waiting");
    assert_eq!(gateway.stop(), 0);
    assert_eq!(asking.wait_for_end().code, 69);
}
