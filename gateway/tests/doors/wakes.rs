//! The wake stream.

use tidings_node::cli::Connection;
use tidings_protocol::session_api::{LeaseRef, Request, Wake};
use tokio::time::timeout;

use crate::served::{PATIENCE, Served, ask, body, key, speak, speaker, watch};

const WATCHER: &str = "agent:main:main";
const OTHER: &str = "agent:main:other";
const NESTED: &str = "agent:main:subagent:1";
const TARGET: &str = "agent:ops:main";

async fn follow(served: &Served) -> Connection {
    let mut connection = served.connect().await;
    connection
        .send(&Request::WakesFollow {})
        .await
        .expect("send");
    connection
}

async fn next(stream: &mut Connection) -> Vec<Wake> {
    let reply = timeout(PATIENCE, stream.next()).await.expect("in time");
    let reply = reply.expect("no error").expect("the stream goes on");
    body!(reply, Wakes).wakes
}

fn wake(watcher: &str) -> Vec<Wake> {
    vec![Wake {
        watcher: key(watcher),
        target: key(TARGET),
    }]
}

#[tokio::test]
async fn a_subscriber_hears_first_of_what_is_there_and_then_of_each_notice_once() {
    let served = Served::start();
    let mut door = served.connect().await;
    let mut early = follow(&served).await;
    assert_eq!(next(&mut early).await, []);
    watch(&mut door, WATCHER, TARGET).await;
    for _ in 0..20 {
        speak(&mut door, TARGET).await;
    }
    assert_eq!(next(&mut early).await, wake(WATCHER));

    let mut late = follow(&served).await;
    assert_eq!(next(&mut late).await, wake(WATCHER));

    // The nineteen events behind the first said nothing: the next wake is another's.
    watch(&mut door, NESTED, TARGET).await;
    watch(&mut door, OTHER, TARGET).await;
    speak(&mut door, TARGET).await;
    for stream in [&mut early, &mut late] {
        assert_eq!(next(stream).await, wake(OTHER));
    }
}

#[tokio::test]
async fn a_notice_that_is_given_back_wakes_again() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    speak(&mut door, TARGET).await;
    let request = Request::TurnBegin(speaker(WATCHER));
    let begun = body!(ask(&mut door, request).await, TurnBegin);
    let mut stream = follow(&served).await;
    assert_eq!(next(&mut stream).await, [], "it is leased");

    let token = begun.token.expect("a token");
    ask(&mut door, Request::TurnRelease(LeaseRef { token })).await;

    assert_eq!(next(&mut stream).await, wake(WATCHER));
}
