//! `tidings-node doctor` on a real machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tidings_tests::{Gateway, Node, Scratch, until};

/// What the doctor of this machine finds that has `part` in it. The limits of the machine that
/// the test runs on are its own affair.
fn found(node: &Node, part: &str) -> Option<Value> {
    let diagnosis = node.command(&["doctor"]).json();
    let findings = diagnosis["findings"].as_array().expect("findings");
    let has_part = |finding: &&Value| {
        let what = finding["what"].as_str().expect("what");
        what.contains(part)
    };
    findings.iter().find(has_part).cloned()
}

fn wrong(node: &Node) -> Vec<String> {
    let diagnosis = node.command(&["doctor"]).json();
    let findings = diagnosis["findings"].as_array().expect("findings");
    let what = findings.iter().map(|finding| &finding["what"]);
    let what = what.map(|what| what.as_str().expect("what").to_owned());
    what.filter(|what| !what.contains("this system lets a user watch only"))
        .collect()
}

#[test]
fn the_doctor_names_what_is_wrong_at_each_step_from_no_pairing_to_a_revoked_node() {
    let mut gateway = Gateway::start(&Scratch::new());
    let mut node = Node::new(gateway.scratch(), "laptop");
    assert!(found(&node, "holds no paired node").is_some());

    let link = node.invite(&gateway);
    node.join_with(&link).done();
    // The gateway was asked, and has nothing against this node.
    let only = ["the node agent is not running: this machine's transcripts are not followed"];
    assert_eq!(wrong(&node), only);

    node.run();
    until("the agent's gateway to have nothing to say", || {
        wrong(&node).is_empty().then_some(())
    });
    let key = node.state_dir().join("node.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("mode");
    let open = found(&node, "node.key").expect("an open key");
    assert_eq!(open["severity"], "error", "{open}");
    let fixed = node.command(&["doctor", "--fix"]).json();
    assert_eq!(fixed["fixed"][0]["is"], "0600", "{fixed}");
    assert_eq!(wrong(&node), [""; 0]);

    gateway.kill();
    until("the agent to miss its gateway", || {
        found(&node, "not connected to the gateway")
    });
    assert_eq!(node.stop(), 0);
    let unreachable = found(&node, "cannot be reached over UDP").expect("no gateway");
    let hint = unreachable["hint"].as_str().expect("a hint");
    assert!(hint.contains("firewall"), "{hint}");

    gateway.restart();
    gateway.ask(&["nodes", "revoke", "laptop"]);
    assert!(found(&node, "the gateway turns this node away").is_some());
}
