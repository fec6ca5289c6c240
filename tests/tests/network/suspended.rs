//! Processes that stand still for longer than a connection lives, as when a lid is closed.

use tidings_tests::TwoMachines;

use crate::Conversation;
use crate::weather::until_the_node_is;

#[test]
fn a_suspended_agent_is_given_up_and_comes_back_without_loss() {
    let machines = TwoMachines::start();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    machines.node.suspend();
    conversation.say(3);
    until_the_node_is(&machines.gateway, "offline");
    conversation.say(3);
    machines.node.resume();
    conversation.all_told();
    until_the_node_is(&machines.gateway, "connected");
    conversation.counted_exactly(&machines);
}

#[test]
fn a_suspended_gateway_is_given_up_and_found_again_without_loss() {
    let machines = TwoMachines::start();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    machines.gateway.suspend();
    conversation.say(3);
    machines.node.wait_for_loss();
    conversation.say(3);
    machines.gateway.resume();
    machines.node.wait_for_welcome();
    conversation.all_told();
    conversation.counted_exactly(&machines);
}
