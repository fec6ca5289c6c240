//! `tidings notices`

use insta::assert_snapshot;
use tidings_protocol::session_api::{Notice, Notices, Reply};

use crate::fake::Fake;
use crate::run::with;
use crate::values::key;

fn pending(targets: &[&str]) -> Fake {
    let notice = |target: &&str| Notice {
        target: key(target),
        text: format!(
            "Session \"{target}\" changed (other actor). Reconcile before acting: \
             session_status sessionKey \"{target}\" changesSince 3."
        ),
        changes_since: 3,
    };
    Fake::answering(Reply::Notices(Notices {
        notices: targets.iter().map(notice).collect(),
    }))
}

#[test]
fn drain_prints_the_lines_as_the_watcher_gets_them() {
    let fake = pending(&["agent:ops:main", "global"]);
    assert_snapshot!(with(&fake, "notices drain agent:main:main"), @r#"
    exit 0
    --- stdout
    Session "agent:ops:main" changed (other actor). Reconcile before acting: session_status sessionKey "agent:ops:main" changesSince 3.
    Session "global" changed (other actor). Reconcile before acting: session_status sessionKey "global" changesSince 3.
    --- stderr
    --- asked
    NoticesDrain(SessionRef { session_key: agent:main:main, agent: None })
    "#);
    assert_snapshot!(with(&fake, "notices drain agent:main:main --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"notices":[{"target":"agent:ops:main","text":"Session \"agent:ops:main\" changed (other actor). Reconcile before acting: session_status sessionKey \"agent:ops:main\" changesSince 3.","changesSince":3},{"target":"global","text":"Session \"global\" changed (other actor). Reconcile before acting: session_status sessionKey \"global\" changesSince 3.","changesSince":3}]}
    --- stderr
    --- asked
    NoticesDrain(SessionRef { session_key: agent:main:main, agent: None })
    "#);
}

#[test]
fn list_leaves_them_and_says_how_to_take_them() {
    let fake = pending(&["agent:ops:main"]);
    assert_snapshot!(with(&fake, "notices list agent:main:main"), @r#"
    exit 0
    --- stdout
    Session "agent:ops:main" changed (other actor). Reconcile before acting: session_status sessionKey "agent:ops:main" changesSince 3.
    --- stderr
    hint: tidings notices drain takes them
    --- asked
    NoticesList(SessionRef { session_key: agent:main:main, agent: None })
    "#);
    assert_snapshot!(with(&fake, "notices list agent:main:main --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"notices":[{"target":"agent:ops:main","text":"Session \"agent:ops:main\" changed (other actor). Reconcile before acting: session_status sessionKey \"agent:ops:main\" changesSince 3.","changesSince":3}]}
    --- stderr
    --- asked
    NoticesList(SessionRef { session_key: agent:main:main, agent: None })
    "#);
}

#[test]
fn nothing_pending_is_no_output() {
    let fake = pending(&[]);
    assert_snapshot!(with(&fake, "notices drain agent:main:main"), @"
    exit 0
    --- stdout
    --- stderr
    no notices pending
    hint: tidings watch list
    --- asked
    NoticesDrain(SessionRef { session_key: agent:main:main, agent: None })
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    ");
    assert_snapshot!(with(&fake, "notices drain agent:main:main --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"notices":[]}
    --- stderr
    --- asked
    NoticesDrain(SessionRef { session_key: agent:main:main, agent: None })
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    "#);
    assert_snapshot!(with(&fake, "notices list agent:main:main"), @"
    exit 0
    --- stdout
    --- stderr
    no notices pending
    hint: tidings watch list
    --- asked
    NoticesList(SessionRef { session_key: agent:main:main, agent: None })
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    ");
}
