//! `tidings watch`

use insta::assert_snapshot;
use tidings_protocol::session_api::{Reply, Request, Watch, WatchRemoved, Watched, Watches};

use crate::fake::{Does, Fake, frame};
use crate::run::with;
use crate::values::{TIME, key, sessions};

#[test]
fn add_says_from_which_version_it_watches() {
    let fake = Fake::answering(Reply::WatchAdd(Watched {
        watched: true,
        from_version: Some(12),
        reason: None,
    }));
    let line = "watch add agent:main:main cron:nightly --target-agent ops";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    watched from version 12
    --- stderr
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:main:main), target: cron:nightly, target_agent: Some("ops") })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"watched":true,"fromVersion":12}
    --- stderr
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:main:main), target: cron:nightly, target_agent: Some("ops") })
    "#);
}

#[test]
fn a_refused_watch_is_an_answer_with_its_reason() {
    let fake = Fake::that(|request| {
        let reply = match request {
            Request::WatchAdd(_) => Reply::WatchAdd(Watched {
                watched: false,
                from_version: None,
                reason: Some("there is no session agent:main:mian".to_owned()),
            }),
            _ => sessions(&["agent:main:main", "agent:main:other"]),
        };
        Does::Sends(vec![frame(&reply)])
    });
    let line = "watch add agent:ops:main agent:main:mian";
    assert_snapshot!(with(&fake, line), @"
    exit 0
    --- stdout
    not watched: there is no session agent:main:mian
    --- stderr
    hint: did you mean agent:main:main? the sessions are agent:main:main, agent:main:other (`tidings sessions list`)
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:ops:main), target: agent:main:mian, target_agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"watched":false,"reason":"there is no session agent:main:mian"}
    --- stderr
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:ops:main), target: agent:main:mian, target_agent: None })
    "#);
}

#[test]
fn a_watch_refused_for_another_reason_suggests_no_other_target() {
    let fake = Fake::that(|request| {
        let reply = match request {
            Request::WatchAdd(_) => Reply::WatchAdd(Watched {
                watched: false,
                from_version: None,
                reason: Some("a session cannot watch itself".to_owned()),
            }),
            _ => sessions(&["agent:main:main"]),
        };
        Does::Sends(vec![frame(&reply)])
    });
    let line = "watch add agent:main:main agent:main:main";
    assert_snapshot!(with(&fake, line), @"
    exit 0
    --- stdout
    not watched: a session cannot watch itself
    --- stderr
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:main:main), target: agent:main:main, target_agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
}

#[test]
fn remove_says_whether_there_was_one() {
    let line = "watch remove agent:main:main agent:ops:main";
    let removed = Fake::answering(Reply::WatchRemove(WatchRemoved { removed: true }));
    assert_snapshot!(with(&removed, line), @"
    exit 0
    --- stdout
    removed
    --- stderr
    --- asked
    WatchRemove(WatchPair { watcher: Some(agent:main:main), target: agent:ops:main, target_agent: None })
    ");
    let none = Fake::answering(Reply::WatchRemove(WatchRemoved { removed: false }));
    assert_snapshot!(with(&none, line), @"
    exit 0
    --- stdout
    not removed: there is no such watch
    --- stderr
    hint: tidings watch list
    --- asked
    WatchRemove(WatchPair { watcher: Some(agent:main:main), target: agent:ops:main, target_agent: None })
    ");
    assert_snapshot!(with(&none, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"removed":false}
    --- stderr
    --- asked
    WatchRemove(WatchPair { watcher: Some(agent:main:main), target: agent:ops:main, target_agent: None })
    "#);
}

#[test]
fn list_shows_each_cursor() {
    let watch = |target: &str, provenance: &str, pending| Watch {
        watcher: key("agent:main:main"),
        target: key(target),
        target_agent_id: "ops".to_owned(),
        provenance: provenance.to_owned(),
        last_seen_sequence: 3,
        notified_sequence: 7,
        material_sequence: 12,
        pending,
        created_at: TIME - 1_000,
        updated_at: TIME,
    };
    let fake = Fake::answering(Reply::WatchList(Watches {
        watches: vec![
            watch("agent:ops:main", "explicit", true),
            watch("global", "spawn", false),
        ],
    }));
    let line = "watch list --watcher agent:main:main --target agent:ops:main";
    assert_snapshot!(with(&fake, line), @"
    exit 0
    --- stdout
    WATCHER          TARGET           BY        SEEN  TOLD  NEWEST  NOTICE   MOVED (UTC)
    agent:main:main  agent:ops:main   explicit     3     7      12  pending  2026-11-30 21:05:03
    agent:main:main  global (of ops)  spawn        3     7      12  -        2026-11-30 21:05:03
    --- stderr
    --- asked
    WatchList(WatchFilter { watcher: Some(agent:main:main), target: Some(agent:ops:main) })
    ");
    assert_snapshot!(with(&fake, "watch list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"watches":[{"watcher":"agent:main:main","target":"agent:ops:main","targetAgentId":"ops","provenance":"explicit","lastSeenSequence":3,"notifiedSequence":7,"materialSequence":12,"pending":true,"createdAt":1796072702123,"updatedAt":1796072703123},{"watcher":"agent:main:main","target":"global","targetAgentId":"ops","provenance":"spawn","lastSeenSequence":3,"notifiedSequence":7,"materialSequence":12,"pending":false,"createdAt":1796072702123,"updatedAt":1796072703123}]}
    --- stderr
    --- asked
    WatchList(WatchFilter { watcher: None, target: None })
    "#);
}

#[test]
fn no_watches_says_how_to_add_one() {
    let fake = Fake::answering(Reply::WatchList(Watches { watches: vec![] }));
    assert_snapshot!(with(&fake, "watch list"), @"
    exit 0
    --- stdout
    --- stderr
    no watches
    hint: tidings watch add WATCHER TARGET
    --- asked
    WatchList(WatchFilter { watcher: None, target: None })
    ");
}
