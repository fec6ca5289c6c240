//! Who comes in at the HTTP door, and what does not.

use std::time::Duration;

use serde_json::json;
use tidings_gateway::doors::http::HttpLimits;
use tidings_protocol::session_api::{Request, TokenRef, TokenScope};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::served::{PATIENCE, Served, ask, body, connect};
use crate::web::{OpenDoor, open, read_answer, token};

async fn door(served: &Served) -> OpenDoor {
    open(served, HttpLimits::default()).await
}

#[tokio::test]
async fn a_foreign_name_and_a_foreign_page_are_turned_away_whatever_they_show() {
    let served = Served::start();
    let door = door(&served).await;
    let web = &door.web;
    let own = web.address.to_string();
    for (host, origin, status) in [
        (own.as_str(), "", 200),
        ("localhost", "", 200),
        ("evil.example", "", 403),
        ("127.0.0.1.evil.example", "", 403),
        ("192.0.2.1", "", 403),
        (&own, &format!("Origin: http://{own}\r\n"), 200),
        (&own, "Origin: http://evil.example\r\n", 403),
        (&own, "Origin: null\r\n", 403),
        (&own, "Host: evil.example\r\n", 400),
    ] {
        for path in ["/healthz", "/metrics", "/v1/openapi.json"] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\n{origin}\
                 Authorization: Bearer {}\r\nConnection: close\r\n\r\n",
                web.token
            );
            let answer = web.exchange(request.as_bytes()).await;
            assert_eq!(answer.status, status, "{host} {origin} {path}: {answer:?}");
            if status == 403 {
                assert_eq!(answer.refusal().1, "not_permitted");
            }
        }
    }
    let answer = web.exchange(b"GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.refusal().2, "the request has no Host header");
    let elsewhere = format!(
        "GET http://evil.example/healthz HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(web.exchange(elsewhere.as_bytes()).await.status, 403);

    // A name of the configuration is taken as soon as it stands there.
    let mut config = tidings_gateway::config::Config::default();
    config.http.hosts = vec!["tidings.example".to_owned()];
    let named = "GET /healthz HTTP/1.1\r\nHost: tidings.example\r\nConnection: close\r\n\r\n";
    assert_eq!(web.exchange(named.as_bytes()).await.status, 403);
    let with_name = Served::start_with(config);
    let door = self::door(&with_name).await;
    assert_eq!(door.web.exchange(named.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn a_token_opens_the_door_until_it_ends_and_its_bearer_is_told_why() {
    let served = Served::start();
    let door = door(&served).await;
    let web = &door.web;
    let short = web
        .asked(
            "token_create",
            r#"{"name":"short","scope":"read","expiresInMs":1}"#,
        )
        .await;
    let short = short["token"].as_str().expect("a token").to_owned();
    let ended = token(served.dir.path(), "ended", TokenScope::Read).await;
    let mut operator = connect(served.dir.path()).await;
    let revoke = Request::TokenRevoke(TokenRef {
        name: "ended".to_owned(),
    });
    ask(&mut operator, revoke).await;
    let expired = async {
        while web.with(&short).post("agents_list", "").await.refusal().2 != "the token has expired"
        {
        }
    };
    timeout(PATIENCE * 3, expired).await.expect("it expires");

    let bearer = |value: &str| format!("Authorization: {value}\r\n");
    for (header, said) in [
        (String::new(), "this takes a token"),
        (
            bearer(""),
            "the Authorization header is not Bearer and a token",
        ),
        (
            bearer("Bearer"),
            "the Authorization header is not Bearer and a token",
        ),
        (
            bearer("Basic QQ=="),
            "the Authorization header is not Bearer and a token",
        ),
        (
            bearer(&format!("Bearer {}", "x".repeat(10_000))),
            "the Authorization header is not Bearer and a token",
        ),
        (
            bearer("Bearer tidings_0"),
            "this gateway does not know the token",
        ),
        (
            bearer(&format!("Bearer {}x", web.token)),
            "this gateway does not know the token",
        ),
        (bearer(&format!("Bearer {ended}")), "the token was revoked"),
        (bearer(&format!("Bearer {short}")), "the token has expired"),
    ] {
        for target in [
            "POST /v1/status",
            "POST /v1/no_such_request",
            "GET /v1/signals/stream",
            "GET /v1/wakes",
        ] {
            let request = format!(
                "{target} HTTP/1.1\r\nHost: {}\r\n{header}Connection: close\r\n\r\n",
                web.address
            );
            let answer = web.exchange(request.as_bytes()).await;
            let (status, error_type, message, hint) = answer.refusal();
            assert_eq!(
                (status, error_type.as_str()),
                (401, "not_permitted"),
                "{target}"
            );
            assert_eq!(message, said, "{target} {header}");
            assert!(hint.contains("tidings token create"), "{hint}");
            assert!(
                answer.head.contains("www-authenticate: bearer"),
                "{answer:?}"
            );
        }
    }
    let tokens = body!(ask(&mut operator, Request::TokenList {}).await, TokenList).tokens;
    let used: Vec<_> = tokens
        .iter()
        .filter(|row| row.last_used_at.is_some())
        .map(|row| row.name.as_str())
        .collect();
    assert!(used.contains(&"admin"), "{tokens:?}");
    assert!(!used.contains(&"ended"), "{tokens:?}");
}

#[tokio::test]
async fn what_is_too_large_of_the_wrong_kind_or_nowhere_is_refused_by_name() {
    let served = Served::start();
    let door = door(&served).await;
    let web = &door.web;
    let headers = web.headers();
    let json = "Content-Type: application/json\r\nConnection: close\r\n";
    let chunk = format!("20000\r\n{}\r\n", "x".repeat(0x20000));
    for (request, status, message) in [
        (
            format!("POST /v1/status HTTP/1.1\r\n{headers}{json}Content-Length: 1048577\r\n\r\n"),
            413,
            "a body has at most 1048576 bytes",
        ),
        (
            format!(
                "POST /v1/status HTTP/1.1\r\n{headers}{json}Transfer-Encoding: chunked\r\n\r\n{}",
                chunk.repeat(9)
            ),
            413,
            "a body has at most 1048576 bytes",
        ),
        (
            format!(
                "POST /v1/status HTTP/1.1\r\n{headers}Content-Type: text/plain\r\n\
                 Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            ),
            415,
            "the body is not application/json",
        ),
        (
            format!(
                "POST /v1/status HTTP/1.1\r\n{headers}Content-Length: 2\r\n\
                 Connection: close\r\n\r\n{{}}"
            ),
            415,
            "the body has no Content-Type",
        ),
        (
            format!("GET /v1/status HTTP/1.1\r\n{headers}{json}\r\n"),
            405,
            "this path does not take GET",
        ),
        (
            format!("POST /healthz HTTP/1.1\r\n{headers}{json}\r\n"),
            405,
            "this path does not take POST",
        ),
        (
            format!("GET /metricks HTTP/1.1\r\n{headers}{json}\r\n"),
            404,
            "there is nothing at this path",
        ),
        (
            format!("POST /v1/session_statsu HTTP/1.1\r\n{headers}{json}\r\n"),
            404,
            "there is no such request",
        ),
        (
            format!("POST /v1/signals_follow HTTP/1.1\r\n{headers}{json}\r\n"),
            501,
            "signals_follow is not answered by a POST",
        ),
        (
            format!("GET /v1/signals/stream?afer=1 HTTP/1.1\r\n{headers}{json}\r\n"),
            400,
            "the query of this stream is session=KEY and after=SEQUENCE, both optional",
        ),
        (
            format!("GET /v1/wakes?session=agent: HTTP/1.1\r\n{headers}{json}\r\n"),
            400,
            "session: an agent-qualified key is agent:<agentId>:<rest>, both parts non-empty",
        ),
        (
            format!("GET /v1/signals/stream HTTP/1.1\r\n{headers}{json}Last-Event-ID: x\r\n\r\n"),
            400,
            "the Last-Event-ID header is not a sequence of this log",
        ),
    ] {
        let answer = web.exchange(request.as_bytes()).await;
        let refusal = answer.refusal();
        assert_eq!((refusal.0, refusal.2.as_str()), (status, message));
    }
    let unknown = web.post("session_statsu", "").await.refusal();
    assert!(
        unknown.3.contains("did you mean session_status?"),
        "{unknown:?}"
    );
    let long = "x".repeat(140_000);
    let request = format!("GET /healthz HTTP/1.1\r\n{headers}X: {long}\r\n\r\n");
    assert_eq!(web.exchange(request.as_bytes()).await.status, 431);
}

#[tokio::test]
async fn errors_of_the_gateway_have_their_status_and_say_no_text() {
    let served = Served::start();
    let door = door(&served).await;
    let web = &door.web;
    let long = "SECRET ".repeat(20_000);
    for (name, body, status, error_type) in [
        (
            "session_show",
            json!({"sessionKey": "agent:main:nobody"}),
            404,
            "not_found",
        ),
        (
            "session_status",
            json!({"sessionKey": "agent:main:a", "changesSince": -1}),
            400,
            "invalid_request",
        ),
        (
            "sessions_send",
            json!({"sessionKey": "agent:main:nobody", "message": "SECRET"}),
            404,
            "not_found",
        ),
        (
            "sessions_spawn",
            json!({"parent": "agent:main:main", "runtime": "subagent", "task": long}),
            400,
            "invalid_request",
        ),
        (
            "goal_set",
            json!({"sessionKey": "agent:main:main", "goal": ["SECRET"]}),
            400,
            "invalid_request",
        ),
        (
            "token_create",
            json!({"name": "admin", "scope": "read"}),
            409,
            "conflict",
        ),
        (
            "adopt",
            json!({"catalog": "claude", "host": "local", "threadId": "t"}),
            404,
            "not_found",
        ),
    ] {
        let answer = web.post(name, &body.to_string()).await;
        let refusal = answer.refusal();
        assert_eq!(
            (refusal.0, refusal.1.as_str()),
            (status, error_type),
            "{name}: {answer:?}"
        );
        assert!(!answer.body.contains("SECRET"), "{answer:?}");
    }
}

#[tokio::test]
async fn whoever_does_not_finish_a_head_or_a_body_loses_the_connection() {
    let served = Served::start();
    let limits = HttpLimits {
        arrival: Duration::from_millis(200),
        connections: 2,
        ..HttpLimits::default()
    };
    let door = open(&served, limits).await;
    let web = &door.web;
    let mut idle = Vec::new();
    for begin in ["", "GET /healthz HTTP/1.1\r\nHost: local"] {
        let mut stream = TcpStream::connect(web.address).await.expect("connected");
        stream.write_all(begin.as_bytes()).await.expect("written");
        idle.push(stream);
    }
    // They hold all the places there are: this one is answered once they have lost theirs.
    assert_eq!(web.get("/healthz").await.status, 200);
    for stream in &mut idle {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "it is closed");
    }
    let headers = web.headers();
    let request = format!(
        "POST /v1/status HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: 10\r\nConnection: close\r\n\r\n{{"
    );
    let mut stream = TcpStream::connect(web.address).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("written");
    let answer = read_answer(&mut stream).await;
    assert_eq!(answer.refusal().2, "the body did not arrive in time");
    assert_eq!(answer.status, 408);
}

#[tokio::test]
async fn a_stop_finishes_what_is_under_way_and_takes_nothing_new() {
    let served = Served::start();
    let door = door(&served).await;
    let web = &door.web;
    let headers = web.headers();
    let head = format!(
        "POST /v1/agents_list HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    );
    let mut idle = TcpStream::connect(web.address).await.expect("connected");
    let mut stream = TcpStream::connect(web.address).await.expect("connected");
    stream.write_all(head.as_bytes()).await.expect("written");
    // It has come as far as its body.
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    let read = timeout(PATIENCE * 3, stream.read_exact(&mut go_on)).await;
    read.expect("in time").expect("a word");
    door.stop.send_replace(true);
    let ended = timeout(PATIENCE * 3, idle.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "a connection without a request is closed");
    stream.write_all(b"{}").await.expect("written");
    let answer = read_answer(&mut stream).await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, serde_json::json!({"agents": []}))
    );
    let serving = timeout(PATIENCE * 3, door.serving).await;
    serving.expect("it ends").expect("no panic");
    assert!(
        TcpStream::connect(web.address).await.is_err(),
        "the port is closed"
    );
}
