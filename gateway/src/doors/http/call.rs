//! One request of the session interface: `POST /v1/<name>`.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::error::Category;
use tidings_node::cli::nearest;
use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request};
use tokio::time::timeout;

use super::super::origin::Origin;
use super::answer::{Refusal, json};
use super::routes::Door;
use super::shapes::Shapes;
use super::table::{self, Row};
use super::unique::Unique;
use super::{MAX_BODY_BYTES, bearer};

/// Answers it, within the scope of its token.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    request: HttpRequest,
) -> Result<Response, Refusal> {
    let (head, body) = request.into_parts();
    let token = bearer::token(&door, &head.headers).await?;
    let row = row_of(head.uri.path())?;
    check_type(&head.headers, &body)?;
    let bytes = timeout(door.limits.arrival, read(body))
        .await
        .map_err(|_| too_slow())??;
    let asked = parse(row, &bytes)?;
    let origin = Origin::Token(token.row.scope);
    let reply = door.service.reply(&origin, asked).await?;
    Ok(json(StatusCode::OK, bare(&reply)?))
}

/// The request that a path names.
fn row_of(path: &str) -> Result<&'static Row, Refusal> {
    let name = path.strip_prefix("/v1/").unwrap_or_default();
    if let Some(row) = table::row_named(name) {
        return Ok(row);
    }
    if let Some(place) = table::elsewhere(name) {
        return Err(ApiError::new(
            ErrorType::Unsupported,
            format!("{name} is not answered by a POST"),
        )
        .with_hint(place)
        .into());
    }
    let hint = match nearest::nearest(name, &table::names()) {
        Some(known) => format!("did you mean {known}? GET /v1/openapi.json shows all requests"),
        None => "GET /v1/openapi.json shows all requests".to_owned(),
    };
    Err(
        ApiError::new(ErrorType::NotFound, "there is no such request")
            .with_hint(hint)
            .into(),
    )
}

/// A page of a browser cannot send this type to another place without asking first.
fn check_type(headers: &HeaderMap, body: &Body) -> Result<(), Refusal> {
    let given = headers.get(header::CONTENT_TYPE);
    let Some(given) = given else {
        return if body.is_end_stream() {
            Ok(())
        } else {
            Err(not_json("the body has no Content-Type"))
        };
    };
    let essence = given.to_str().unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(not_json("the body is not application/json"))
    }
}

fn not_json(message: &str) -> Refusal {
    Refusal::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        .hint("send one JSON object with Content-Type: application/json")
}

async fn read(body: Body) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if announced > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    // It fails where there is more than that, and where the line breaks; then nobody reads
    // the answer.
    axum::body::to_bytes(body, MAX_BODY_BYTES)
        .await
        .map_err(|_| too_large())
}

fn too_large() -> Refusal {
    Refusal::invalid(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("a body has at most {MAX_BODY_BYTES} bytes"),
    )
}

fn too_slow() -> Refusal {
    Refusal::invalid(
        StatusCode::REQUEST_TIMEOUT,
        "the body did not arrive in time",
    )
}

/// The request that a body asks for. What is wrong is said by the member's name; what stood
/// there is never repeated.
fn parse(row: &'static Row, body: &[u8]) -> Result<Request, Refusal> {
    let invalid =
        |what: String| Refusal::invalid(StatusCode::BAD_REQUEST, format!("{}: {what}", row.name));
    let body = if body.iter().all(u8::is_ascii_whitespace) {
        b"{}"
    } else {
        body
    };
    let Unique(parameters) = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = match error.classify() {
            Category::Data => "the body has a member twice",
            Category::Syntax | Category::Eof | Category::Io => "the body is no JSON",
        };
        invalid(format!("{what} (line {line}, column {column})"))
    })?;
    if let Some(fault) = Shapes::get().fault(row.name, &parameters) {
        let refusal = invalid(fault.what);
        return Err(match fault.hint {
            Some(hint) => refusal.hint(hint),
            None => refusal,
        });
    }
    let mut tagged = serde_json::Map::new();
    tagged.insert(row.name.to_owned(), parameters);
    // Every member has the right type by now: what is left to say is what a key or an id is.
    serde_json::from_value(tagged.into()).map_err(|error| invalid(error.to_string()))
}

/// A reply without its name: the path has said it.
fn bare(reply: &Reply) -> Result<Vec<u8>, Refusal> {
    let failed = || ApiError::new(ErrorType::Internal, "the answer cannot be written as JSON");
    let mut document = serde_json::to_vec(reply).map_err(|_| failed())?;
    // `{"<name>":…}`, and a name has no colon.
    let at = document.iter().position(|byte| *byte == b':');
    document.drain(..=at.ok_or_else(failed)?);
    document.pop();
    Ok(document)
}

#[cfg(test)]
mod tests {
    use tidings_protocol::session_api::{Agents, TokenRef};

    use super::*;

    fn refused(name: &str, body: &str) -> String {
        let row = table::row_named(name).expect("a row");
        let refusal = parse(row, body.as_bytes()).expect_err(body);
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        refusal.message().to_owned()
    }

    #[test]
    fn an_empty_body_asks_with_no_members_and_a_reply_stands_without_its_name() {
        let row = table::row_named("agents_list").expect("a row");
        for body in ["", " \n", "{}"] {
            assert_eq!(parse(row, body.as_bytes()), Ok(Request::AgentsList {}));
        }
        let row = table::row_named("token_revoke").expect("a row");
        let named = TokenRef {
            name: "a:b".to_owned(),
        };
        assert_eq!(
            parse(row, br#"{"name":"a:b"}"#),
            Ok(Request::TokenRevoke(named))
        );
        let reply = bare(&Reply::AgentsList(Agents { agents: vec![] }));
        assert_eq!(reply, Ok(br#"{"agents":[]}"#.to_vec()));
    }

    #[test]
    fn whatever_stands_in_the_place_of_a_member_is_never_repeated() {
        let others = [
            "null",
            "7",
            "-1.5",
            "true",
            r#""SECRET""#,
            r#"["SECRET"]"#,
            r#"{"x":"SECRET"}"#,
        ];
        let mut refused = 0;
        for row in table::TABLE {
            let example: serde_json::Value = serde_json::from_str(row.example).expect(row.name);
            for member in example.as_object().expect("an object").keys() {
                for other in others {
                    let mut body = example.clone();
                    body[member] = serde_json::from_str(other).expect("JSON");
                    if let Err(refusal) = parse(row, body.to_string().as_bytes()) {
                        let said = format!("{refusal:?}");
                        assert!(!said.contains("SECRET"), "{}: {said}", row.name);
                        refused += 1;
                    }
                }
            }
            for end in 0..row.example.len() {
                // Half a document is none, and no example begins with another.
                let cut = &row.example.as_bytes()[..end];
                assert!(end == 0 || parse(row, cut).is_err(), "{}: {end}", row.name);
            }
        }
        assert!(refused > 300, "{refused}");
    }

    #[test]
    fn what_is_wrong_is_said_by_its_member_and_never_repeated() {
        for (name, body, said) in [
            (
                "session_status",
                "{",
                "session_status: the body is no JSON (line 1, column 1)",
            ),
            (
                "session_status",
                r#"{"sessionKey":"agent:a:b","sessionKey":"SECRET"}"#,
                "session_status: the body has a member twice (line 1, column 48)",
            ),
            (
                "session_status",
                "[]",
                "session_status: the body is to be an object",
            ),
            (
                "session_status",
                "{}",
                "session_status: sessionKey is missing",
            ),
            (
                "session_status",
                r#"{"sessionKey":"SECRET TEXT"}"#,
                "session_status: a session key has no white space, control characters or quotes",
            ),
            (
                "session_status",
                r#"{"sessionKey":"agent:a:b","changeSince":1}"#,
                "session_status: there is no member changeSince",
            ),
            (
                "signals_list",
                r#"{"after":"SECRET"}"#,
                "signals_list: after is to be a whole number or null",
            ),
            (
                "goal_set",
                r#"{"sessionKey":"agent:a:b","goal":{"SECRET":"SECRET"}}"#,
                "goal_set: goal is to be a text",
            ),
            (
                "adopt",
                r#"{"catalog":"SECRET","host":"local","threadId":"t"}"#,
                "adopt: catalog is to be one of claude, codex, openclaw",
            ),
            (
                "signals_list",
                r#"{"limit":-1}"#,
                "signals_list: limit is to be at least 0",
            ),
        ] {
            let message = refused(name, body);
            assert!(message.starts_with(said), "{body}: {message}");
            assert!(!message.contains("SECRET"), "{message}");
        }
        let deep = format!("{{\"sessionKey\":{}", "[".repeat(100_000));
        assert!(refused("session_status", &deep).contains("no JSON"));
    }
}
