//! `tidings status`

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    Counts, GatewayStatus, LinkStatus, Reply, Status, UpstreamState,
};
use tidings_protocol::{Catalog, Host};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{DAY, TIME, key, laptop, laptop_id, local, thread};

fn link(session: &str, state: UpstreamState) -> LinkStatus {
    LinkStatus {
        session_key: key(session),
        catalog: Catalog::Claude,
        host: Host::Node(laptop_id()),
        thread_id: thread("0a1b"),
        state,
        last_outcome: "none".to_owned(),
        last_report_at: None,
        lag_bytes: 0,
        unclassified: 0,
        blocked: None,
    }
}

fn status(links: Vec<LinkStatus>) -> Reply {
    Reply::Status(Box::new(Status {
        gateway: GatewayStatus {
            version: "0.1.0".to_owned(),
            pid: 4711,
            state_dir: "/home/ada/.tidings".to_owned(),
            listen: "[::]:7430".to_owned(),
            http: Some("http://127.0.0.1:7431".to_owned()),
            started_at: TIME - DAY,
            database: "ok".to_owned(),
            warnings: vec!["the clock went back by 2 h".to_owned()],
            model: None,
            server_certificate_not_after: TIME + 90 * DAY,
            authority_not_after: TIME + 3_650 * DAY,
        },
        nodes: vec![local(), laptop()],
        counts: Counts {
            sessions: 3,
            signals: 12,
            head: 15,
            watches: 2,
            notices: 1,
            links: links.len() as u64,
        },
        links,
    }))
}

#[test]
fn everything_is_seen_at_a_glance() {
    let blocked = LinkStatus {
        last_outcome: "activity".to_owned(),
        last_report_at: Some(TIME),
        lag_bytes: 123_456,
        unclassified: 7,
        blocked: Some("the rule of a report is too long".to_owned()),
        ..link(
            "agent:main:adopted:claude:laptop:0a1b",
            UpstreamState::Blocked,
        )
    };
    let live = link("global", UpstreamState::Live);
    let fake = Fake::answering(status(vec![blocked, live]));
    assert_snapshot!(with(&fake, "status"), @"
    exit 0
    --- stdout
    gateway   0.1.0, process 4711, since 2026-11-29 21:05:03 UTC
    listens   [::]:7430
    http      http://127.0.0.1:7431
    state     /home/ada/.tidings
    database  ok
    shows     a certificate until 2027-02-28 21:05:03 UTC; its authority until 2036-11-27 21:05:03 UTC
    counts    sessions 3, signals 12 (head 15), watches 2, notices 1, links 2

    NODE    CALLED        STATUS     LAST SEEN (UTC)      VERSION  CERTIFICATE UNTIL (UTC)  ID
    local   -             connected  2026-11-30 21:05:03  0.1.0    2026-12-30 21:05:03      ffffffffffffffffffffffffffffffff
    laptop  Ada's laptop  offline    -                    -        2026-12-01 21:05:03      0123456789abcdef0123456789abcdef

    SESSION                                STATE    LAST OUTCOME  LAST REPORT (UTC)      UNREAD  UNCLASSIFIED  BLOCKED BECAUSE
    agent:main:adopted:claude:laptop:0a1b  blocked  activity      2026-11-30 21:05:03  123.5 kB             7  the rule of a report is too long
    global                                 live     none          -                         0 B             0  -
    --- stderr
    warning: the clock went back by 2 h
    warning: laptop: its certificate expires within a day
    --- asked
    Status
    ");
    assert_snapshot!(with(&fake, "status --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"gateway":{"version":"0.1.0","pid":4711,"stateDir":"/home/ada/.tidings","listen":"[::]:7430","http":"http://127.0.0.1:7431","startedAt":1795986303123,"database":"ok","warnings":["the clock went back by 2 h"],"serverCertificateNotAfter":1803848703123,"authorityNotAfter":2111432703123},"nodes":[{"id":"ffffffffffffffffffffffffffffffff","name":"local","hostName":"local","host":"gateway:local","status":"connected","lastSeenAt":1796072703123,"version":"0.1.0","certificateNotAfter":1798664703123},{"id":"0123456789abcdef0123456789abcdef","name":"Ada's laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"offline","certificateNotAfter":1796159103123,"warnings":["its certificate expires within a day"]}],"links":[{"sessionKey":"agent:main:adopted:claude:laptop:0a1b","catalog":"claude","host":"node:0123456789abcdef0123456789abcdef","threadId":"0a1b","state":"blocked","lastOutcome":"activity","lastReportAt":1796072703123,"lagBytes":123456,"unclassified":7,"blocked":"the rule of a report is too long"},{"sessionKey":"global","catalog":"claude","host":"node:0123456789abcdef0123456789abcdef","threadId":"0a1b","state":"live","lastOutcome":"none","lagBytes":0,"unclassified":0}],"counts":{"sessions":3,"signals":12,"head":15,"watches":2,"notices":1,"links":2}}
    --- stderr
    --- asked
    Status
    "#);
}

#[test]
fn a_gateway_that_follows_nothing_says_what_comes_next() {
    let fake = Fake::answering(status(vec![]));
    assert_snapshot!(with(&fake, "status"), @"
    exit 0
    --- stdout
    gateway   0.1.0, process 4711, since 2026-11-29 21:05:03 UTC
    listens   [::]:7430
    http      http://127.0.0.1:7431
    state     /home/ada/.tidings
    database  ok
    shows     a certificate until 2027-02-28 21:05:03 UTC; its authority until 2036-11-27 21:05:03 UTC
    counts    sessions 3, signals 12 (head 15), watches 2, notices 1, links 0

    NODE    CALLED        STATUS     LAST SEEN (UTC)      VERSION  CERTIFICATE UNTIL (UTC)  ID
    local   -             connected  2026-11-30 21:05:03  0.1.0    2026-12-30 21:05:03      ffffffffffffffffffffffffffffffff
    laptop  Ada's laptop  offline    -                    -        2026-12-01 21:05:03      0123456789abcdef0123456789abcdef
    --- stderr
    warning: the clock went back by 2 h
    warning: laptop: its certificate expires within a day
    no thread is followed
    hint: tidings catalog list shows threads, tidings sessions adopt follows one
    --- asked
    Status
    ");
}

#[test]
fn a_status_larger_than_a_frame_comes_out_whole() {
    let links = (0..3_000).map(|n| link(&format!("agent:main:{n}"), UpstreamState::Live));
    let fake = Fake::answering(status(links.collect()));
    let output = with(&fake, "status --json");
    assert!(output.starts_with("exit 0\n"));
    for n in [0, 1_499, 2_999] {
        assert!(output.contains(&format!("\"agent:main:{n}\"")), "{n}");
    }
}
