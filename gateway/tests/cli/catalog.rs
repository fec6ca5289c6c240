//! `tidings catalog`

use insta::assert_snapshot;
use tidings_protocol::session_api::{CatalogThread, CatalogThreads, HostError, Reply};
use tidings_protocol::{Catalog, Host};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{catalog_thread, key, laptop, laptop_id};

fn found(threads: Vec<CatalogThread>) -> Fake {
    let errors = vec![HostError {
        host: Host::Node(laptop_id()),
        node: laptop().host_name,
        message: "it is not connected".to_owned(),
    }];
    Fake::answering(Reply::CatalogList(CatalogThreads { threads, errors }))
}

#[test]
fn list_shows_threads_of_all_machines_and_which_could_not_be_asked() {
    let adopted = CatalogThread {
        size_bytes: 1_234_567,
        cwd: Some("/home/ada/src".to_owned()),
        adopted_as: Some(key("agent:main:adopted:claude:local:0a1b")),
        ..catalog_thread("0a1b")
    };
    let titled = CatalogThread {
        catalog: Catalog::Codex,
        node: laptop().host_name,
        host: Host::Node(laptop_id()),
        title: Some("Two lines\nand an \u{1b}[31mescape".to_owned()),
        ..catalog_thread("2c3d")
    };
    let fake = found(vec![adopted, titled]);
    let line = "catalog list --host local --catalog claude --titles";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    CATALOG  HOST    THREAD  CHANGED (UTC)          SIZE  ADOPTED AS                            DIRECTORY      TITLE
    claude   local   0a1b    2026-11-30 21:05:03  1.2 MB  agent:main:adopted:claude:local:0a1b  /home/ada/src  -
    codex    laptop  2c3d    2026-11-30 21:05:03   999 B  -                                     -              Two lines and an �[31mescape
    --- stderr
    warning: laptop (node:0123456789abcdef0123456789abcdef) is not listed whole: it is not connected
    --- asked
    CatalogList(CatalogList { host: Some("local"), catalog: Some(Claude), titles: true })
    "#);
    assert_snapshot!(with(&fake, "catalog list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"threads":[{"catalog":"claude","host":"gateway:local","node":"local","threadId":"0a1b","path":"/home/ada/.claude/projects/x/0a1b.jsonl","cwd":"/home/ada/src","updatedAt":1796072703123,"sizeBytes":1234567,"adoptedAs":"agent:main:adopted:claude:local:0a1b"},{"catalog":"codex","host":"node:0123456789abcdef0123456789abcdef","node":"laptop","threadId":"2c3d","path":"/home/ada/.claude/projects/x/2c3d.jsonl","title":"Two lines\nand an \u001b[31mescape","updatedAt":1796072703123,"sizeBytes":999}],"errors":[{"host":"node:0123456789abcdef0123456789abcdef","node":"laptop","message":"it is not connected"}]}
    --- stderr
    --- asked
    CatalogList(CatalogList { host: None, catalog: None, titles: false })
    "#);
}

#[test]
fn columns_with_nothing_to_say_are_left_out() {
    let fake = found(vec![catalog_thread("0a1b")]);
    assert_snapshot!(with(&fake, "catalog list"), @"
    exit 0
    --- stdout
    CATALOG  HOST   THREAD  CHANGED (UTC)         SIZE
    claude   local  0a1b    2026-11-30 21:05:03  999 B
    --- stderr
    warning: laptop (node:0123456789abcdef0123456789abcdef) was not asked: it is not connected
    --- asked
    CatalogList(CatalogList { host: None, catalog: None, titles: false })
    ");
}

#[test]
fn an_empty_catalog_says_where_to_look() {
    let nothing = CatalogThreads {
        threads: vec![],
        errors: vec![],
    };
    assert_snapshot!(with(&Fake::answering(Reply::CatalogList(nothing)), "catalog list"), @"
    exit 0
    --- stdout
    --- stderr
    no threads found
    hint: tidings gateway run --root CATALOG=DIR looks in other directories
    --- asked
    CatalogList(CatalogList { host: None, catalog: None, titles: false })
    ");
    assert_snapshot!(with(&found(vec![]), "catalog list --host laptop"), @r#"
    exit 0
    --- stdout
    --- stderr
    no threads found on the machines that could be asked
    hint: tidings nodes list shows which are connected; tidings-node run on a machine starts its agent
    warning: laptop (node:0123456789abcdef0123456789abcdef) was not asked: it is not connected
    --- asked
    CatalogList(CatalogList { host: Some("laptop"), catalog: None, titles: false })
    "#);
}
