//! The real programs in two network namespaces. Ignored unless asked for, because it needs root
//! and iproute2: `scripts/namespaces`, which the one command of CI runs where it can.

use tidings_tests::{Cable, Gateway, Node, Scratch, Setup, TwoMachines};

use crate::Conversation;
use crate::weather::{connected_since, until_the_node_is};

/// A gateway at one end of a cable and a node at the other.
fn cabled() -> (Cable, TwoMachines) {
    let cable = Cable::lay();
    let setup = Setup::without_local_node().at(&cable.gateway);
    let gateway = Gateway::start_as(&Scratch::new(), setup);
    let mut node = Node::new(gateway.scratch(), "laptop").at(&cable.node);
    node.join_with(&node.invite(&gateway)).done();
    node.run();
    (cable, TwoMachines { gateway, node })
}

#[test]
#[ignore = "needs root and iproute2: scripts/namespaces"]
fn a_cable_that_is_pulled_out_and_put_back_loses_nothing() {
    let (cable, machines) = cabled();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    cable.node.is_unplugged();
    conversation.say(3);
    machines.node.wait_for_loss();
    until_the_node_is(&machines.gateway, "offline");
    conversation.say(3);
    cable.node.is_plugged_in();
    machines.node.wait_for_welcome();
    conversation.all_told();
    conversation.counted_exactly(&machines);
}

#[test]
#[ignore = "needs root and iproute2: scripts/namespaces"]
fn a_machine_whose_address_changes_keeps_its_connection() {
    let (cable, machines) = cabled();
    let mut conversation = Conversation::begin(&machines);
    let since = connected_since(&machines.node);
    let mut old = cable.node.address();
    for new in ["10.77.0.3", "10.77.0.4"] {
        // The old one first: a later one of the same network would go with it.
        cable.node.loses_address(old);
        cable.node.has_address(new);
        old = new;
        conversation.say(3);
        conversation.all_told();
    }
    conversation.counted_exactly(&machines);
    assert_eq!(connected_since(&machines.node), since);
}

#[test]
#[ignore = "needs root and iproute2: scripts/namespaces"]
fn packets_of_1280_bytes_are_enough() {
    let (cable, machines) = cabled();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    // In the middle of it: what was found to be the largest is too large from now on.
    for end in [&cable.gateway, &cable.node] {
        end.has_packets_of("1280");
    }
    conversation.say(50);
    conversation.all_told();
    conversation.counted_exactly(&machines);
}

#[test]
#[ignore = "needs root and iproute2: scripts/namespaces"]
fn a_firewall_that_refuses_is_named_and_opened_again_it_heals() {
    let (cable, machines) = cabled();
    let mut conversation = Conversation::begin(&machines);
    // Only one direction is closed: the node hears the gateway until that has given it up.
    cable.node.prohibits(cable.gateway.address());
    conversation.say(3);
    until_the_node_is(&machines.gateway, "offline");
    machines.node.wait_for_loss();
    let other = Node::new(machines.gateway.scratch(), "desk").at(&cable.node);
    let answer = other.join_with(&other.invite(&machines.gateway));
    assert_eq!(answer.code, 69, "{answer}");
    let error = answer.refused();
    assert_eq!(error["type"], "unavailable");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| message.contains("is UDP let through to that port?")),
        "{error}"
    );
    cable.node.permits(cable.gateway.address());
    machines.node.wait_for_welcome();
    conversation.all_told();
    conversation.counted_exactly(&machines);
}
