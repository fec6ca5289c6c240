//! Pairing by join link, as strangers try it.

use tidings_node::connection::{NodeKey, signing_request};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Join, RefusalCode};

use crate::quic::Line;
use crate::served::gateway;

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_do_not_work_are_refused_and_after_too_many_of_them_so_is_the_address() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("gateway")).await;
    let key = NodeKey::generate().expect("key");
    let mut attempts = 0;
    loop {
        let mut line = Line::dial(gateway.listen()).await;
        line.say(&Message::Join(Join {
            code: [7; 16],
            signing_request: signing_request(&key).expect("request"),
            machine_name: "eve".to_owned(),
            agent_version: "0".to_owned(),
        }))
        .await;
        let Message::Refused(refused) = line.hear().await else {
            panic!("not refused");
        };
        match refused.code {
            RefusalCode::JoinCode => attempts += 1,
            code => break assert_eq!(code, RefusalCode::TooMany),
        }
    }
    assert!(
        attempts >= 60,
        "a rack of machines may join at once: {attempts}"
    );
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_join_request_is_refused_with_a_reason() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("gateway")).await;
    let garbled = Message::Join(Join {
        code: [1; 16],
        signing_request: vec![0x30; 10],
        machine_name: "x".repeat(2_000),
        agent_version: "0".to_owned(),
    });
    for message in [Message::Ping {}, garbled] {
        let mut line = Line::dial(gateway.listen()).await;
        line.say(&message).await;
        let Message::Refused(refused) = line.hear().await else {
            panic!("not refused");
        };
        assert_eq!(refused.reason, "the join request cannot be read");
    }
    gateway.stop().await;
}
