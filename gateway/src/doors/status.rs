//! The gateway at a glance.

use tidings_protocol::session_api::{
    ApiError, CertificateKind, GatewayStatus, LinkStatus, Status, UpstreamState,
};

use super::Service;
use crate::nodes::expiry;
use crate::state::{Health, LinkRow};

impl Service {
    pub(super) async fn status(&self) -> Result<Status, ApiError> {
        let state = &self.nodes.state;
        let health = state.health().borrow().clone();
        let (database, warnings) = match health {
            Health::Serving => ("ok", Vec::new()),
            Health::ReadOnly(error) => ("read_only", vec![error.to_string()]),
            Health::Failed(error) => ("failed", vec![error.to_string()]),
        };
        let certificates = expiry::own(&self.nodes);
        let until = |kind| {
            let row = certificates.iter().find(|row| row.kind == kind);
            row.map(|row| row.not_after).unwrap_or_default()
        };
        Ok(Status {
            gateway: GatewayStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                state_dir: self.info.state_dir.display().to_string(),
                listen: self.info.listen.to_string(),
                http: self.info.http.clone(),
                started_at: self.info.started_at,
                database: database.to_owned(),
                warnings,
                model: self.model_name(),
                server_certificate_not_after: until(CertificateKind::Server),
                authority_not_after: until(CertificateKind::Authority),
            },
            nodes: self.nodes_list().await?.nodes,
            links: self.links().await?,
            counts: state.counts().await?,
        })
    }

    /// Every link, together with what the presence of its node says.
    pub(super) async fn links(&self) -> Result<Vec<LinkStatus>, ApiError> {
        let rows = self.nodes.state.link_rows().await?;
        Ok(rows.into_iter().map(|row| self.link_status(row)).collect())
    }

    fn link_status(&self, row: LinkRow) -> LinkStatus {
        let live = self
            .nodes
            .presences
            .seen(&row.host)
            .is_some_and(|seen| !seen.stalled);
        let state = match (&row.blocked, live) {
            (Some(_), _) => UpstreamState::Blocked,
            (None, true) => UpstreamState::Live,
            (None, false) => UpstreamState::Offline,
        };
        LinkStatus {
            session_key: row.session,
            catalog: row.catalog,
            host: row.host,
            thread_id: row.thread_id,
            state,
            last_outcome: row.last_outcome,
            last_report_at: row.last_report_at,
            lag_bytes: row.lag_bytes,
            unclassified: row.unclassified,
            blocked: row.blocked,
        }
    }
}
