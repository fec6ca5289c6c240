//! Whether the gateway lives, and whether everything is as it should be.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use tidings_protocol::EpochMs;

use super::answer::json;
use super::routes::Door;
use crate::nodes::expiry;
use crate::state::Health;

/// How the gateway stands. Anybody may ask, so it names no machine and no session: `tidings
/// doctor` says more.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Readiness {
    ready: bool,
    /// Why not: words of a fixed set.
    reasons: Vec<&'static str>,
}

/// `GET /healthz`
pub(super) async fn health(State(door): State<Arc<Door>>) -> Response {
    let health = door.service.nodes.state.health();
    let failed = matches!(*health.borrow(), Health::Failed(_));
    let (status, body) = if failed {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"ok":false}"#)
    } else {
        (StatusCode::OK, r#"{"ok":true}"#)
    };
    json(status, body)
}

/// `GET /readyz`
pub(super) async fn ready(State(door): State<Arc<Door>>) -> Response {
    let context = &door.service.nodes;
    let health = context.state.health().borrow().clone();
    let certificates = match expiry::in_use(context).await {
        Ok(rows) if rows.iter().any(expiry::is_due) => Certificates::Due,
        Ok(_) => Certificates::Good,
        Err(_) => Certificates::Unknown,
    };
    let readiness = readiness(
        &health,
        certificates,
        is_over(door.certificate.get(), context.clock.now()),
    );
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json(status, serde_json::to_vec(&readiness).unwrap_or_default())
}

/// How the certificates of the gateway and of its nodes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certificates {
    Good,
    /// One should have been renewed.
    Due,
    /// They cannot be read.
    Unknown,
}

fn is_over(not_after: Option<EpochMs>, now: EpochMs) -> bool {
    not_after.is_some_and(|end| now >= end)
}

fn readiness(health: &Health, certificates: Certificates, http_expired: bool) -> Readiness {
    let reasons: Vec<_> = [
        (
            matches!(health, Health::ReadOnly(_)),
            "the database is read-only",
        ),
        (
            matches!(health, Health::Failed(_)),
            "the database has failed",
        ),
        (
            certificates == Certificates::Due,
            "a certificate is overdue for renewal",
        ),
        (
            certificates == Certificates::Unknown,
            "the database cannot be read",
        ),
        (http_expired, "the certificate of the HTTP door has expired"),
    ]
    .into_iter()
    .filter_map(|(holds, reason)| holds.then_some(reason))
    .collect();
    Readiness {
        ready: reasons.is_empty(),
        reasons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateError;

    #[test]
    fn it_is_ready_only_when_nothing_is_wrong_and_says_all_that_is() {
        let full = || {
            let path = "/s/state.sqlite".into();
            Health::ReadOnly(Arc::new(StateError::DiskFull { path }))
        };
        let failed = Health::Failed(Arc::new(StateError::Closed));
        for (health, certificates, http_expired, reasons) in [
            (Health::Serving, Certificates::Good, false, vec![]),
            (
                full(),
                Certificates::Due,
                true,
                vec![
                    "the database is read-only",
                    "a certificate is overdue for renewal",
                    "the certificate of the HTTP door has expired",
                ],
            ),
            (
                failed,
                Certificates::Unknown,
                false,
                vec!["the database has failed", "the database cannot be read"],
            ),
        ] {
            let readiness = readiness(&health, certificates, http_expired);
            assert_eq!(readiness.ready, reasons.is_empty());
            assert_eq!(readiness.reasons, reasons);
        }
        for (not_after, over) in [(None, false), (Some(11), false), (Some(10), true)] {
            assert_eq!(is_over(not_after, 10), over);
        }
    }
}
