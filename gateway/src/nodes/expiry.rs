//! Which certificates are in use, and how each stands: the one place that says so, for
//! `status`, `doctor`, the log, and whatever shows it next.

use std::collections::HashSet;

use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{CertificateKind, CertificateRow, CertificateState};

use super::context::NodeContext;
use crate::state::{CertificateRecord, NodeStanding, StateError};

/// The life of a certificate, and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) serial: String,
    pub(crate) not_before: EpochMs,
    pub(crate) not_after: EpochMs,
}

/// Every certificate: the gateway's own first, then those of nodes, newest first.
pub(crate) async fn all(context: &NodeContext) -> Result<Vec<CertificateRow>, StateError> {
    let now = context.clock.now();
    let records = context.state.certificates().await?;
    let of_nodes = records.into_iter().map(|record| of_node(record, now));
    Ok(own(context).into_iter().chain(of_nodes).collect())
}

/// The certificates that connections depend on: the gateway's own, and the newest of every
/// active node.
pub(crate) async fn in_use(context: &NodeContext) -> Result<Vec<CertificateRow>, StateError> {
    let now = context.clock.now();
    let records = newest(context.state.certificates().await?);
    let of_nodes = records.into_iter().map(|record| of_node(record, now));
    Ok(own(context).into_iter().chain(of_nodes).collect())
}

/// True for a certificate that should have been renewed, or is of no use.
pub(crate) fn is_due(row: &CertificateRow) -> bool {
    row.state != CertificateState::Valid
}

fn newest(mut records: Vec<CertificateRecord>) -> Vec<CertificateRecord> {
    let mut seen = HashSet::new();
    records.retain(|record| {
        record.standing == NodeStanding::Active
            && record.revoked_at.is_none()
            && seen.insert(record.node.clone())
    });
    records
}

/// The gateway's own: its authority's, and the one that it shows.
pub(crate) fn own(context: &NodeContext) -> Vec<CertificateRow> {
    let now = context.clock.now();
    let row = |kind, life: Life| CertificateRow {
        kind,
        state: CertificateState::at(life.not_before, life.not_after, now),
        host_name: None,
        node_id: None,
        serial: life.serial,
        not_before: life.not_before,
        not_after: life.not_after,
        revoked_at: None,
    };
    let authority = row(CertificateKind::Authority, context.authority.life());
    let server = context.server_leaf();
    let server = server.map(|life| row(CertificateKind::Server, life));
    std::iter::once(authority).chain(server).collect()
}

fn of_node(record: CertificateRecord, now: EpochMs) -> CertificateRow {
    let is_turned_away = record.revoked_at.is_some() || record.standing != NodeStanding::Active;
    let state = if is_turned_away {
        CertificateState::Revoked
    } else {
        CertificateState::at(record.not_before, record.not_after, now)
    };
    CertificateRow {
        kind: CertificateKind::Node,
        state,
        host_name: Some(record.host_name),
        node_id: Some(record.node),
        serial: record.serial,
        not_before: record.not_before,
        not_after: record.not_after,
        revoked_at: record.revoked_at,
    }
}

/// Says in the log, once for each certificate, that it is due.
#[derive(Debug, Default)]
pub(crate) struct Watchman {
    said: HashSet<String>,
}

impl Watchman {
    /// Looks at what is in use now.
    pub(crate) async fn round(&mut self, context: &NodeContext) {
        match in_use(context).await {
            Ok(rows) => {
                for row in self.news(rows) {
                    let of = row
                        .host_name
                        .as_ref()
                        .map_or("the gateway", |name| name.as_str());
                    tracing::warn!(
                        of,
                        kind = ?row.kind,
                        state = row.state.as_str(),
                        not_after = row.not_after,
                        "a certificate is not renewed: tidings doctor says what to do"
                    );
                }
            }
            Err(error) => tracing::warn!(%error, "the certificates could not be looked at"),
        }
    }

    fn news(&mut self, rows: Vec<CertificateRow>) -> Vec<CertificateRow> {
        let due: Vec<_> = rows.into_iter().filter(is_due).collect();
        let is_due = |serial: &String| due.iter().any(|row| row.serial == *serial);
        self.said.retain(is_due);
        let mut news = due;
        news.retain(|row| self.said.insert(row.serial.clone()));
        news
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::{HostName, NodeId};

    use super::*;

    fn record(name: &str, serial: &str) -> CertificateRecord {
        CertificateRecord {
            node: NodeId::of_public_key(name.as_bytes()),
            host_name: HostName::parse(name).expect("name"),
            standing: NodeStanding::Active,
            serial: serial.to_owned(),
            der: Vec::new(),
            not_before: 0,
            not_after: 300,
            revoked_at: None,
        }
    }

    fn rows(now: EpochMs) -> Vec<CertificateRow> {
        let records = vec![record("ada", "01"), record("bob", "02")];
        records
            .into_iter()
            .map(|record| of_node(record, now))
            .collect()
    }

    #[test]
    fn no_certificate_of_a_node_that_is_turned_away_is_called_valid() {
        for standing in [NodeStanding::Revoked, NodeStanding::Removed] {
            let record = CertificateRecord {
                standing,
                ..record("ada", "01")
            };
            assert_eq!(of_node(record, 100).state, CertificateState::Revoked);
        }
        assert_eq!(rows(100)[0].state, CertificateState::Valid);
    }

    fn serials(rows: &[CertificateRow]) -> Vec<&str> {
        rows.iter().map(|row| row.serial.as_str()).collect()
    }

    #[test]
    fn in_use_is_the_newest_certificate_of_each_active_node_that_nobody_revoked() {
        let revoked = CertificateRecord {
            revoked_at: Some(1),
            ..record("ada", "03")
        };
        let gone = CertificateRecord {
            standing: NodeStanding::Removed,
            ..record("eve", "04")
        };
        let all = vec![
            revoked,
            record("ada", "02"),
            record("ada", "01"),
            gone,
            record("bob", "05"),
        ];
        let in_use: Vec<_> = newest(all).into_iter().map(|r| r.serial).collect();
        assert_eq!(in_use, ["02", "05"]);
    }

    #[test]
    fn each_certificate_that_is_due_is_said_once_and_again_after_it_was_renewed() {
        let mut watchman = Watchman::default();
        assert_eq!(serials(&watchman.news(rows(199))), [""; 0]);
        assert_eq!(serials(&watchman.news(rows(200))), ["01", "02"]);
        assert_eq!(serials(&watchman.news(rows(250))), [""; 0]);
        assert_eq!(serials(&watchman.news(rows(0))), [""; 0]);
        assert_eq!(serials(&watchman.news(rows(299))), ["01", "02"]);
    }
}
