//! The OpenAPI document: made of the table of requests and of their types.

use std::sync::OnceLock;

use axum::response::Response;
use serde_json::{Map, Value, json};
use tidings_protocol::session_api::Request;

use super::routes;
use super::shapes::Shapes;
use super::table::{Row, TABLE};

/// The document. Anybody may read what there is to ask.
pub(super) async fn document() -> Response {
    static DOCUMENT: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = DOCUMENT.get_or_init(|| serde_json::to_vec(&made()).unwrap_or_default());
    routes::document(bytes)
}

fn made() -> Value {
    let shapes = Shapes::get();
    let mut schemas = shapes.definitions().clone();
    schemas.insert("Error".to_owned(), error_envelope());
    let requests = TABLE.iter().map(|row| {
        let path = format!("/v1/{}", row.name);
        (path, json!({ "post": operation(shapes, row) }))
    });
    let paths: Map<String, Value> = requests.chain(own_paths()).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidings",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The session interface of a Tidings gateway. Times are whole \
                milliseconds since 1970, sizes are bytes.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    })
}

fn operation(shapes: &Shapes, row: &Row) -> Value {
    let (summary, body) = shapes.request(row.name).unwrap_or(("", &Value::Null));
    let example: Value = serde_json::from_str(row.example).unwrap_or_default();
    let scope = scope(row, &example);
    json!({
        "operationId": row.name,
        "summary": summary,
        "description": format!("Takes a token of scope `{scope}` or wider."),
        "x-scope": scope,
        "requestBody": {
            "required": shapes.has_required(body),
            "content": { "application/json": { "schema": body, "example": example } },
        },
        "responses": {
            "200": {
                "description": "Done.",
                "content": { "application/json": { "schema": shapes.reply(row.reply) } },
            },
            "default": refused(),
        },
    })
}

/// What a token has to permit for the request, as its example asks it.
fn scope(row: &Row, example: &Value) -> &'static str {
    let request: Result<Request, _> = serde_json::from_value(json!({ row.name: example }));
    request.map_or("admin", |request| request.scope().as_str())
}

fn refused() -> Value {
    json!({
        "description": "Not done, and why.",
        "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/Error" },
        } },
    })
}

fn error_envelope() -> Value {
    json!({
        "type": "object",
        "description": "Why something was not done.",
        "required": ["ok", "error"],
        "properties": {
            "ok": { "const": false },
            "error": { "$ref": "#/components/schemas/ApiError" },
        },
    })
}

/// The routes that are no requests.
fn own_paths() -> Vec<(String, Value)> {
    let session = json!({
        "name": "session", "in": "query", "required": false,
        "description": "Only of this session.",
        "schema": { "$ref": "#/components/schemas/SessionKey" },
    });
    let sequence = json!({ "type": "integer", "minimum": 0 });
    let after = json!({
        "name": "after", "in": "query", "required": false,
        "description": "Only after this sequence; without it, from now on.",
        "schema": sequence,
    });
    let last = json!({
        "name": "Last-Event-ID", "in": "header", "required": false,
        "description": "The last sequence that was read: goes before `after`.",
        "schema": sequence,
    });
    vec![
        own(
            "/v1/signals/stream",
            &json!({
                "operationId": "signals_stream",
                "summary": "The log as it grows: one event per signal, whose id is its sequence.",
                "x-scope": "read",
                "parameters": [session, after, last],
                "responses": events("SignalRow"),
            }),
        ),
        own(
            "/v1/wakes",
            &json!({
                "operationId": "wakes_stream",
                "summary": "Each notice as it becomes available to a watcher.",
                "x-scope": "read",
                "parameters": [session],
                "responses": events("Wake"),
            }),
        ),
        open(
            "/v1/openapi.json",
            "openapi",
            "This document.",
            "application/json",
        ),
        open(
            "/healthz",
            "health",
            "Whether the process answers.",
            "application/json",
        ),
        open(
            "/readyz",
            "ready",
            "Whether everything is as it should be; 503 where it is not.",
            "application/json",
        ),
        open(
            "/metrics",
            "metrics",
            "Figures for Prometheus.",
            "text/plain",
        ),
    ]
}

fn own(path: &str, operation: &Value) -> (String, Value) {
    (path.to_owned(), json!({ "get": operation }))
}

fn events(of: &str) -> Value {
    json!({
        "200": {
            "description": "Server-sent events until either side ends them.",
            "content": { "text/event-stream": {
                "schema": { "$ref": format!("#/components/schemas/{of}") },
            } },
        },
        "default": refused(),
    })
}

/// A route that takes no token.
fn open(path: &str, id: &str, summary: &str, content: &str) -> (String, Value) {
    own(
        path,
        &json!({
            "operationId": id,
            "summary": summary,
            "security": [],
            "responses": { "200": { "description": summary, "content": { content: {} } } },
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::faults::fault;
    use super::*;

    #[test]
    fn every_request_of_the_table_stands_in_it_with_an_example_that_its_schema_takes() {
        let document = made();
        let schemas = document["components"]["schemas"]
            .as_object()
            .expect("schemas");
        for row in TABLE {
            let operation = &document["paths"][format!("/v1/{}", row.name)]["post"];
            assert_eq!(operation["operationId"], row.name);
            assert_ne!(operation["summary"], "", "{}", row.name);
            let body = &operation["requestBody"]["content"]["application/json"];
            assert_eq!(
                fault(schemas, &body["schema"], &body["example"]),
                None,
                "{}",
                row.name
            );
            let wrong = json!({ "noSuchMember": 1 });
            assert!(
                fault(schemas, &body["schema"], &wrong).is_some(),
                "{}",
                row.name
            );
            let reply = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            assert!(reply.is_object(), "{}: {reply}", row.name);
            let is_required = &operation["requestBody"]["required"];
            let empty = fault(schemas, &body["schema"], &json!({}));
            assert_eq!(*is_required, json!(empty.is_some()), "{}", row.name);
        }
    }

    #[test]
    fn every_reference_in_it_leads_somewhere_and_every_operation_has_a_name_of_its_own() {
        fn walk(value: &Value, see: &mut impl FnMut(&str, &Value)) {
            match value {
                Value::Object(members) => members.iter().for_each(|(name, value)| {
                    see(name, value);
                    walk(value, see);
                }),
                Value::Array(items) => items.iter().for_each(|item| walk(item, see)),
                _ => {}
            }
        }
        let document = made();
        let (mut references, mut operations) = (0, Vec::new());
        walk(&document, &mut |name, value| match (name, value.as_str()) {
            ("$ref", Some(reference)) => {
                let at = reference.strip_prefix('#').expect("inside the document");
                assert!(document.pointer(at).is_some(), "{reference}");
                references += 1;
            }
            ("operationId", Some(id)) => operations.push(id.to_owned()),
            _ => {}
        });
        assert!(references > TABLE.len(), "{references}");
        let distinct: BTreeSet<_> = operations.iter().collect();
        assert_eq!(distinct.len(), operations.len());
        assert_eq!(operations.len(), TABLE.len() + own_paths().len());
    }
}
