//! What a token permits, request by request.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tidings_gateway::doors::http::HttpLimits;
use tidings_protocol::session_api::{Request, TokenScope};
use tidings_protocol::wire::frame::FrameMessage;

use crate::served::Served;
use crate::web::{open, token};

#[tokio::test]
async fn each_request_takes_a_token_of_its_scope_or_a_wider_one() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let document = door.web.get("/v1/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    let backup = served.dir.path().join("backup.sqlite");
    let mut asked = BTreeSet::new();
    for scope in TokenScope::ALL {
        let shown = token(served.dir.path(), &format!("of {scope}"), scope).await;
        let web = door.web.with(&shown);
        for (path, item) in paths {
            let operation = &item["post"];
            let Some(name) = operation["operationId"].as_str() else {
                continue;
            };
            assert_eq!(path, &format!("/v1/{name}"));
            asked.insert(name.to_owned());
            let content = &operation["requestBody"]["content"]["application/json"];
            let mut body = content["example"].clone();
            if name == "backup" {
                // The example's file is a real place.
                body["file"] = json!(backup.display().to_string());
            }
            let request: Request =
                serde_json::from_value(json!({ name: body.clone() })).expect("a request");
            let needed = request.scope();
            assert_eq!(operation["x-scope"], needed.as_str(), "{name}");
            let answer = web.post(name, &body.to_string()).await;
            let says_so = format!("this takes a token of scope {needed}, and this one has {scope}");
            if scope < needed {
                let refusal = answer.refusal();
                assert_eq!(
                    (refusal.0, refusal.1.as_str()),
                    (403, "not_permitted"),
                    "{name}"
                );
                assert_eq!(refusal.2, says_so, "{name}");
            } else {
                assert_ne!(answer.status, 401, "{name}");
                assert_ne!(answer.status, 403, "{name}: {answer:?}");
                assert!(answer.json().is_object(), "{name}: {answer:?}");
            }
        }
    }
    assert!(backup.is_file(), "an admin's request is done");
    let elsewhere = [
        "signals_follow",
        "wakes_follow",
        "chat",
        "hook_event",
        "nodes_listen",
        "session_compact",
        "node_status",
    ];
    for name in elsewhere {
        let refusal = door.web.post(name, "").await.refusal();
        assert_eq!(
            (refusal.0, refusal.1.as_str()),
            (501, "unsupported"),
            "{name}"
        );
        assert!(!refusal.3.is_empty(), "{name}: where it is answered");
        asked.insert(name.to_owned());
    }
    let known: BTreeSet<_> = Request::NAMES
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(asked, known);
}

#[tokio::test]
async fn a_read_token_streams_and_confirms_nothing() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let read = token(served.dir.path(), "read", TokenScope::Read).await;
    let web = door.web.with(&read);
    for path in ["/v1/signals/stream", "/v1/wakes"] {
        web.events(path, None).await;
    }
    let body = r#"{"sessionKey":"agent:main:a","reader":"agent:main:main"}"#;
    let refusal = web.post("session_status", body).await.refusal();
    assert_eq!(
        refusal.2,
        "this takes a token of scope write, and this one has read"
    );
}

#[tokio::test]
async fn a_conversation_by_http_is_the_one_at_the_socket() {
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let web = &door.web;
    for session in ["agent:main:main", "agent:ops:main"] {
        let body = json!({"sessionKey": session}).to_string();
        web.asked("turn_begin", &body).await;
        web.asked("turn_end", &body).await;
    }
    let pair = r#"{"watcher":"agent:main:main","target":"agent:ops:main"}"#;
    assert_eq!(web.asked("watch_add", pair).await["watched"], true);
    let sent = web
        .asked(
            "sessions_send",
            r#"{"sessionKey":"agent:ops:main","message":"Grüße 👋"}"#,
        )
        .await;
    assert_eq!(sent["queued"], true);
    let begun = web
        .asked("turn_begin", r#"{"sessionKey":"agent:ops:main"}"#)
        .await;
    assert_eq!(begun["messages"][0]["body"], "Grüße 👋");
    let begun = web
        .asked("turn_begin", r#"{"sessionKey":"agent:main:main"}"#)
        .await;
    let notices = begun["notices"].as_array().expect("notices");
    assert_eq!(notices.len(), 1, "{begun}");
    let since = notices[0]["changesSince"].as_u64().expect("a version");
    let body = json!({"sessionKey": "agent:ops:main", "changesSince": since}).to_string();
    let status = web.asked("session_status", &body).await;
    let events = status["stateChanges"]["events"].as_array().expect("events");
    assert_eq!(events[0]["kind"], "human_direct_message");
    let token = json!({"token": begun["token"]}).to_string();
    assert_eq!(web.asked("turn_confirm", &token).await["notices"], 1);
    let left = web
        .asked("notices_list", r#"{"sessionKey":"agent:main:main"}"#)
        .await;
    assert_eq!(left["notices"], Value::Array(vec![]));
}
