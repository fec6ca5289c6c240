//! How the gateway stands, for whoever watches over it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tidings_gateway::doors::http::{HttpLimits, HttpOptions};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_protocol::session_api::TokenScope;
use tokio::time::timeout;

use crate::clock::Shifted;
use crate::raw::Papers;
use crate::served::{self, PATIENCE, Served, connect, speak, watch};
use crate::web::{Web, open, token};

const WATCHER: &str = "agent:main:main";
const TARGET: &str = "agent:ops:secretproject";

/// Checks that a text is what Prometheus reads, and gives the names of its figures.
fn parsed(text: &str) -> BTreeSet<String> {
    let mut typed = BTreeSet::new();
    let mut rows = BTreeSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.split(' ');
            let (kind, name) = (words.next(), words.next().expect("a name"));
            match kind {
                Some("HELP") => assert!(words.next().is_some(), "{line}"),
                Some("TYPE") => {
                    let what = words.next().expect("a type");
                    assert!(["counter", "gauge"].contains(&what), "{line}");
                    assert_eq!(what == "counter", name.ends_with("_total"), "{line}");
                    assert!(typed.insert(name.to_owned()), "{line}: twice");
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let (row, value) = line.rsplit_once(' ').expect("a value");
        value.parse::<f64>().expect(line);
        let (name, labels) = row.split_once('{').unwrap_or((row, "}"));
        assert!(typed.contains(name), "{line}: its type stands before it");
        assert!(rows.insert(row.to_owned()), "{line}: twice");
        let labels = labels.strip_suffix('}').expect(line);
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once('=').expect(line);
            assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{line}");
            assert!(value.starts_with('"') && value.ends_with('"'), "{line}");
        }
    }
    typed
}

#[tokio::test]
async fn the_figures_count_and_name_no_session() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let web = &door.web;
    let mut operator = connect(served.dir.path()).await;
    watch(&mut operator, WATCHER, TARGET).await;
    for _ in 0..3 {
        speak(&mut operator, TARGET).await;
    }
    web.asked("session_status", &json!({"sessionKey": TARGET}).to_string())
        .await;
    web.post(TARGET, "").await;
    web.get(&format!("/{TARGET}")).await;
    let text = web.get("/metrics").await.body;
    let figures = parsed(&text);
    for name in [
        "tidings_commits_total",
        "tidings_committed_requests_total",
        "tidings_certificate_days_left",
        "tidings_echoes_remembered",
        "tidings_unclassified_records",
        "tidings_wal_bytes",
        "tidings_wake_commands_total",
    ] {
        assert!(figures.contains(name), "{name}: {text}");
    }
    assert!(
        !text.contains("agent:") && !text.contains("secretproject"),
        "{text}"
    );
    for (name, value) in [
        ("tidings_signals_recorded_total", 3.0),
        ("tidings_signals_kept", 3.0),
        ("tidings_notices_pending", 1.0),
        ("tidings_watches", 1.0),
        ("tidings_database_serving", 1.0),
        ("tidings_links{state=\"live\"}", 0.0),
        ("tidings_nodes{status=\"connected\"}", 0.0),
        ("tidings_write_queue_length{lane=\"interactive\"}", 0.0),
        (
            "tidings_http_requests_total{route=\"session_status\",status=\"200\"}",
            1.0,
        ),
        (
            "tidings_http_requests_total{route=\"unknown\",status=\"404\"}",
            2.0,
        ),
    ] {
        let found = web.figure(name).await;
        assert!((found - value).abs() < f64::EPSILON, "{name}: {found}");
    }
    assert!(web.figure("tidings_commits_total").await >= 4.0);
    assert!(
        web.figure("tidings_certificate_days_left{kind=\"authority\"}")
            .await
            > 3_000.0
    );
}

#[tokio::test]
async fn it_lives_and_is_ready_without_a_token_while_nothing_is_wrong() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let nobody = door.web.with("");
    let answer = nobody.get("/healthz").await;
    assert_eq!((answer.status, answer.json()), (200, json!({"ok": true})));
    let answer = nobody.get("/readyz").await;
    let ready = json!({"ready": true, "reasons": []});
    assert_eq!((answer.status, answer.json()), (200, ready));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_not_renewed_in_time_is_not_ready_and_stands_in_the_figures() {
    let scratch = tempfile::tempdir().expect("scratch");
    let clock = Arc::new(Shifted::default());
    let options = GatewayOptions {
        http: Some(HttpOptions::at("127.0.0.1:0".parse().expect("address"))),
        ..served::options(clock.clone(), &scratch.path().join("state"), None)
    };
    let gateway = Gateway::start(options).await.expect("gateway");
    let read = token(gateway.state_dir(), "read", TokenScope::Read).await;
    let web = Web::of(&gateway, &read);
    // A node that does not come back to renew its certificate.
    let _papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    assert_eq!(web.get("/readyz").await.status, 200);
    assert!(
        web.figure("tidings_certificate_days_left{kind=\"node\"}")
            .await
            > 28.0
    );
    clock.pass_days(25);
    let overdue = async {
        loop {
            let answer = web.get("/readyz").await;
            if answer.status == 503 {
                return answer.json();
            }
        }
    };
    let answer = timeout(PATIENCE * 3, overdue).await.expect("in time");
    let reasons = json!(["a certificate is overdue for renewal"]);
    assert_eq!(answer, json!({"ready": false, "reasons": reasons}));
    assert!(!answer.to_string().contains("laptop"), "{answer}");
    assert!(web.figure("tidings_certificates_due").await >= 1.0);
    assert!(
        web.figure("tidings_certificate_days_left{kind=\"node\"}")
            .await
            < 6.0
    );
    assert_eq!(
        web.get("/healthz").await.status,
        200,
        "it lives all the same"
    );
    gateway.stop().await;
}
