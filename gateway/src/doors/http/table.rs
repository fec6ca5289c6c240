//! The one table of requests that this door answers: which reply each gets, and how it is
//! asked, by an example. What the members are stands at their types.

use tidings_protocol::session_api::Request;
use tidings_protocol::wire::frame::FrameMessage;

/// One request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its name, and the last part of its path.
    pub(super) name: &'static str,
    /// The name of its reply.
    pub(super) reply: &'static str,
    /// A body that asks it.
    pub(super) example: &'static str,
}

const fn row(name: &'static str, reply: &'static str, example: &'static str) -> Row {
    Row {
        name,
        reply,
        example,
    }
}

/// A body that names one session.
const SESSION: &str = r#"{"sessionKey":"agent:main:main"}"#;
/// A body that names one node.
const NODE: &str = r#"{"node":"laptop"}"#;

/// Every request, in the order of the documents.
pub(super) const TABLE: &[Row] = &[
    row("status", "status", "{}"),
    row("nodes_invite", "nodes_invite", r#"{"name":"laptop"}"#),
    row("nodes_list", "nodes_list", "{}"),
    row("nodes_show", "node", NODE),
    row(
        "nodes_rename",
        "node",
        r#"{"node":"laptop","name":"Ada's laptop"}"#,
    ),
    row("nodes_revoke", "node", NODE),
    row("nodes_remove", "nodes_remove", NODE),
    row(
        "nodes_approve",
        "node",
        r#"{"request":"0123456789abcdef0123456789abcdef","name":"laptop"}"#,
    ),
    row(
        "nodes_reject",
        "nodes_reject",
        r#"{"request":"0123456789abcdef0123456789abcdef"}"#,
    ),
    row(
        "cert_issue",
        "cert_issued",
        r#"{"name":"laptop","signingRequest":[48,130,1,2]}"#,
    ),
    row("cert_renew", "cert_issued", NODE),
    row("cert_revoke", "cert_revoked", r#"{"certificate":"laptop"}"#),
    row("cert_inspect", "cert_inspect", "{}"),
    row(
        "token_create",
        "token_create",
        r#"{"name":"dashboard","scope":"read","expiresInMs":2592000000}"#,
    ),
    row("token_list", "token_list", "{}"),
    row("token_revoke", "token_revoke", r#"{"name":"dashboard"}"#),
    row(
        "catalog_list",
        "catalog_list",
        r#"{"host":"local","titles":false}"#,
    ),
    row(
        "adopt",
        "adopt",
        r#"{"catalog":"claude","host":"local","threadId":"7c9e6679-7425-40de-944b-e07fc1f90ae7","watchBy":"agent:main:main"}"#,
    ),
    row(
        "sessions_list",
        "sessions_list",
        r#"{"agent":"main","limit":50}"#,
    ),
    row("session_show", "session_show", SESSION),
    row("session_archive", "session_show", SESSION),
    row("session_unarchive", "session_show", SESSION),
    row("session_pin", "session_show", SESSION),
    row("session_unpin", "session_show", SESSION),
    row(
        "session_status",
        "session_status",
        r#"{"sessionKey":"agent:main:main","changesSince":0}"#,
    ),
    row(
        "sessions_history",
        "sessions_history",
        r#"{"sessionKey":"agent:main:main"}"#,
    ),
    row(
        "sessions_send",
        "sessions_send",
        r#"{"sessionKey":"agent:main:main","message":"The build is green."}"#,
    ),
    row(
        "sessions_spawn",
        "sessions_spawn",
        r#"{"parent":"agent:main:main","runtime":"subagent","label":"tests","task":"Run the tests."}"#,
    ),
    row(
        "run_finished",
        "run_finished",
        r#"{"sessionKey":"agent:main:subagent:1","outcome":"completed","result":"All passed."}"#,
    ),
    row(
        "goal_set",
        "goal",
        r#"{"sessionKey":"agent:main:main","goal":"Ship the release."}"#,
    ),
    row("goal_clear", "goal", SESSION),
    row(
        "message_recorded",
        "recorded",
        r#"{"sessionKey":"agent:main:main","channel":"telegram"}"#,
    ),
    row("compaction_recorded", "recorded", SESSION),
    row("session_reset", "session_reset", SESSION),
    row("session_delete", "session_delete", SESSION),
    row("agents_list", "agents_list", "{}"),
    row("agents_delete", "agents_delete", r#"{"agent":"old"}"#),
    row(
        "sessions_cleanup",
        "sessions_cleanup",
        r#"{"agents":{"all":{}},"doing":"dry_run"}"#,
    ),
    row(
        "cron_run_begin",
        "cron_run_begin",
        r#"{"jobId":"nightly","force":true}"#,
    ),
    row("cron_runs_list", "cron_runs_list", r#"{"jobId":"nightly"}"#),
    row(
        "watch_add",
        "watch_add",
        r#"{"watcher":"agent:main:main","target":"agent:ops:main"}"#,
    ),
    row(
        "watch_remove",
        "watch_remove",
        r#"{"watcher":"agent:main:main","target":"agent:ops:main"}"#,
    ),
    row(
        "watch_list",
        "watch_list",
        r#"{"watcher":"agent:main:main"}"#,
    ),
    row("notices_list", "notices", SESSION),
    row("notices_drain", "notices", SESSION),
    row("turn_begin", "turn_begin", SESSION),
    row(
        "turn_confirm",
        "turn_settled",
        r#"{"token":"0123456789abcdef0123456789abcdef"}"#,
    ),
    row(
        "turn_release",
        "turn_settled",
        r#"{"token":"0123456789abcdef0123456789abcdef"}"#,
    ),
    row("turn_end", "turn_end", SESSION),
    row(
        "signals_list",
        "signals",
        r#"{"session":"agent:main:main","after":0,"limit":100}"#,
    ),
    row("signals_why", "signals_why", r#"{"sequence":1}"#),
    row(
        "signals_record",
        "signals_record",
        r#"{"session":"agent:main:main","kind":"human_direct_message","actor":"human","channel":"phone"}"#,
    ),
    row(
        "backup",
        "backup",
        r#"{"file":"/var/backups/tidings.sqlite"}"#,
    ),
    row("check", "check", "{}"),
];

/// Requests that are answered elsewhere, and where.
const ELSEWHERE: &[(&str, &str)] = &[
    ("signals_follow", "GET /v1/signals/stream"),
    ("wakes_follow", "GET /v1/wakes"),
    (
        "hook_event",
        "at the socket of its program's machine: tidings hook",
    ),
    (
        "nodes_listen",
        "at the gateway's own socket: tidings nodes listen",
    ),
    ("chat", "at the gateway's own socket: tidings chat"),
    (
        "session_compact",
        "at the gateway's own socket: tidings sessions compact",
    ),
    (
        "node_status",
        "at the socket of that machine's own agent: tidings-node status",
    ),
];

/// The request of this name.
pub(super) fn row_named(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

/// Where a request is answered that is not answered here.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    let found = ELSEWHERE.iter().find(|(request, _)| *request == name);
    found.map(|(_, place)| *place)
}

/// The names of all requests.
pub(super) fn names() -> Vec<&'static str> {
    Request::NAMES.to_vec()
}

#[cfg(test)]
mod tests {
    use tidings_protocol::session_api::Reply;

    use super::*;

    #[test]
    fn every_request_of_the_session_interface_is_answered_here_or_elsewhere() {
        let here = TABLE.iter().map(|row| row.name);
        let mut all: Vec<_> = here
            .chain(ELSEWHERE.iter().map(|(name, _)| *name))
            .collect();
        let mut known = names();
        all.sort_unstable();
        known.sort_unstable();
        assert_eq!(all, known, "left: this table; right: the requests");
        for row in TABLE {
            assert!(
                Reply::NAMES.contains(&row.reply),
                "{}: {}",
                row.name,
                row.reply
            );
        }
    }

    #[test]
    fn each_example_is_a_request_and_says_nothing_that_the_request_does_not_know() {
        for row in TABLE {
            let body: serde_json::Value = serde_json::from_str(row.example).expect(row.name);
            let tagged = serde_json::json!({ row.name: body });
            let request: Request = serde_json::from_value(tagged).expect(row.name);
            assert!(!request.is_stream(), "{}", row.name);
            let written = serde_json::to_value(request).expect(row.name);
            let written = written[row.name].as_object().expect("an object").clone();
            for (member, value) in body.as_object().expect("an object") {
                assert_eq!(written.get(member), Some(value), "{}: {member}", row.name);
            }
        }
    }
}
