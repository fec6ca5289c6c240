//! Loss, delay, reordering, small packets, partitions, other addresses, and no UDP at all.

use std::time::Duration;

use tidings_tests::{DEADLINE, Gateway, Node, Proxy, Scratch, TwoMachines, Weather};

use crate::Conversation;

/// Lines said in bad weather.
const LINES: usize = 40;
/// What is left of an IP packet of 1280 bytes behind the headers of IPv4 and UDP.
const LARGEST_AT_1280: usize = 1_252;

/// All that is said in this weather is told, and told once; also what is said before and
/// afterwards. How many datagrams were lost.
fn survives(weather: Weather) -> u64 {
    let (machines, proxy) = TwoMachines::with_weather();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    proxy.set(weather);
    for _ in 0..LINES {
        conversation.say(1);
        conversation.follow.signal_within(Duration::from_millis(20));
    }
    conversation.all_told();
    proxy.set(Weather::FAIR);
    conversation.counted_exactly(&machines);
    let (lost, _) = proxy.counts();
    lost
}

#[test]
fn a_fifth_of_all_datagrams_is_lost() {
    let lost = survives(Weather {
        loss_percent: 20,
        ..Weather::FAIR
    });
    assert!(lost > 0);
}

#[test]
fn every_datagram_takes_300_ms() {
    survives(Weather {
        delay: Duration::from_millis(300),
        ..Weather::FAIR
    });
}

#[test]
fn datagrams_overtake_each_other() {
    survives(Weather {
        jitter: Duration::from_millis(80),
        ..Weather::FAIR
    });
}

#[test]
fn packets_have_1280_bytes_at_most() {
    let lost = survives(Weather {
        largest: LARGEST_AT_1280,
        ..Weather::FAIR
    });
    assert!(
        lost > 0,
        "nothing was too large: the path's limit was not looked for"
    );
}

#[test]
fn a_machine_joins_and_works_where_all_of_that_comes_together() {
    let gateway = Gateway::start(&Scratch::new());
    let proxy = Proxy::to(gateway.address());
    proxy.set(Weather {
        loss_percent: 10,
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(40),
        largest: LARGEST_AT_1280,
        cut: false,
    });
    let mut node = Node::join_at(&gateway, "laptop", &proxy.address());
    node.run();
    let machines = TwoMachines { gateway, node };
    let mut conversation = Conversation::begin(&machines);
    conversation.say(LINES);
    conversation.all_told();
    conversation.counted_exactly(&machines);
}

#[test]
fn a_short_partition_heals_without_a_new_connection() {
    let (machines, proxy) = TwoMachines::with_weather();
    let mut conversation = Conversation::begin(&machines);
    let since = connected_since(&machines.node);
    proxy.set(Weather::CUT);
    conversation.say(3);
    let early = conversation.follow.signal_within(Duration::from_secs(2));
    assert!(early.is_none(), "{early:?}");
    proxy.set(Weather::FAIR);
    conversation.all_told();
    conversation.counted_exactly(&machines);
    assert_eq!(connected_since(&machines.node), since);
}

#[test]
fn a_long_partition_is_noticed_on_both_sides_and_heals() {
    let (machines, proxy) = TwoMachines::with_weather();
    let mut conversation = Conversation::begin(&machines);
    conversation.say(1);
    conversation.all_told();
    proxy.set(Weather::CUT);
    conversation.say(3);
    machines.node.wait_for_loss();
    until_the_node_is(&machines.gateway, "offline");
    conversation.say(3);
    proxy.set(Weather::FAIR);
    machines.node.wait_for_welcome();
    conversation.all_told();
    conversation.counted_exactly(&machines);
}

#[test]
fn another_source_address_goes_unnoticed() {
    let (machines, proxy) = TwoMachines::with_weather();
    let mut conversation = Conversation::begin(&machines);
    let since = connected_since(&machines.node);
    for _ in 0..5 {
        conversation.say(2);
        proxy.rebind();
        conversation.say(2);
        conversation.all_told();
    }
    conversation.counted_exactly(&machines);
    assert_eq!(connected_since(&machines.node), since);
}

#[test]
fn where_udp_is_blocked_the_error_says_so() {
    let (mut machines, proxy) = TwoMachines::with_weather();
    proxy.set(Weather::CUT);
    let other = Node::new(machines.gateway.scratch(), "desk");
    let link = other.invite_at(&machines.gateway, &proxy.address());
    let answer = other.join_with(&link);
    assert_eq!(answer.code, 69, "{answer}");
    let error = answer.refused();
    assert_eq!(error["type"], "unavailable");
    let asks = "is UDP let through to that port?";
    assert!(
        error["message"].as_str().is_some_and(|m| m.contains(asks)),
        "{error}"
    );

    // An agent that runs says the same.
    machines.node.kill();
    machines.node.start_unwelcomed();
    machines.node.wait_for_loss();
    let status = machines.node.command(&["status"]).done();
    assert_eq!(status["connection"], "connecting", "{status}");
    assert!(
        status["connectionError"]
            .as_str()
            .is_some_and(|m| m.contains(asks)),
        "{status}"
    );
    proxy.set(Weather::FAIR);
    machines.node.wait_for_welcome();
}

/// Since when the agent is connected.
pub(crate) fn connected_since(node: &Node) -> u64 {
    let status = node.command(&["status"]).done();
    assert_eq!(status["connection"], "connected", "{status}");
    status["connectionSince"].as_u64().expect("a time")
}

/// Waits until the gateway says that its one node is so.
pub(crate) fn until_the_node_is(gateway: &Gateway, expected: &str) {
    let began = std::time::Instant::now();
    loop {
        let list = gateway.ask(&["nodes", "list"]);
        let node = &list["nodes"][0];
        assert_eq!(node["name"], "laptop", "{list}");
        if node["status"] == expected {
            return;
        }
        // A silent connection is given up after 20 s.
        assert!(began.elapsed() < 2 * DEADLINE, "still {}", node["status"]);
    }
}
