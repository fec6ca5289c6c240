//! Requests about certificates.

use tidings_protocol::session_api::{
    ApiError, CertificateIssued, CertificateKind, CertificateRef, Certificates,
    CertificatesRevoked, ErrorType, IssueCertificate, RenewCertificate,
};
use tidings_protocol::{Host, NodeId};

use super::Service;
use super::nodes::{given_name, join_address};
use crate::nodes::authority::{AuthorityError, Issued};
use crate::nodes::expiry;
use crate::state::{AuditAction, CertificateRecord, NameWish, NewNode, NodeRecord, NodeStanding};

impl Service {
    /// Makes a node of a signing request. The same request under the same name is answered
    /// with one more certificate.
    pub(super) async fn cert_issue(
        &self,
        issue: IssueCertificate,
    ) -> Result<CertificateIssued, ApiError> {
        let gateway = join_address(issue.address.as_deref(), self.info.listen)?;
        let name = given_name(&issue.name)?;
        let issued = self
            .nodes
            .authority
            .sign_node(&issue.signing_request, self.nodes.clock.now())
            .map_err(|error| authority_error(&error))?;
        let known = self.nodes.state.node(issued.node_id.clone()).await?;
        if let Some(known) = known.filter(|known| known.host_name != name) {
            let message = format!("the key of this request is that of {}", known.host_name);
            return Err(ApiError::new(ErrorType::Conflict, message)
                .with_hint("a host name is fixed; for another node make another key"));
        }
        let answer = issued.clone();
        let enrolled = self.nodes.state.issue_node(NewNode {
            node: issued.node_id,
            name: NameWish::Given(name),
            version: String::new(),
            certificate: issued.certificate,
        });
        let record = match enrolled.await? {
            Ok(record) => record,
            Err(why) => {
                let (action, target) = (AuditAction::IssueCertificate, answer.node_id.to_string());
                return Err(self.not_enrolled(action, target, why).await);
            }
        };
        tracing::info!(node = %record.host_name, "a certificate was issued");
        Ok(self.issued(record, answer, gateway))
    }

    /// Makes a new certificate for the key of a node, which need not be connected.
    pub(super) async fn cert_renew(
        &self,
        renew: RenewCertificate,
    ) -> Result<CertificateIssued, ApiError> {
        let gateway = join_address(renew.address.as_deref(), self.info.listen)?;
        let record = self.listed_node(&renew.node).await?;
        if record.standing == NodeStanding::Revoked {
            let message = format!("{} is revoked", record.host_name);
            return Err(ApiError::new(ErrorType::Conflict, message)
                .with_hint("its machine can join with a new key: tidings-node leave, then join"));
        }
        not_local(&record.host)?;
        let records = self.nodes.state.certificates().await?;
        let newest = records.iter().find(|kept| kept.node == record.node);
        let newest = newest.ok_or_else(|| no_certificate(record.host_name.as_str()))?;
        let issued = self
            .nodes
            .authority
            .sign_again(&newest.der, self.nodes.clock.now())
            .map_err(|error| authority_error(&error))?;
        let stored = self
            .nodes
            .state
            .store_issued_certificate(record.node.clone(), issued.certificate.clone());
        stored.await?;
        tracing::info!(node = %record.host_name, "a certificate was renewed by an operator");
        Ok(self.issued(record, issued, gateway))
    }

    /// Turns certificates away: one by its serial number, or all that a node has. The node
    /// itself stays, and can be given another.
    pub(super) async fn cert_revoke(
        &self,
        named: CertificateRef,
    ) -> Result<CertificatesRevoked, ApiError> {
        let name = named.certificate.unwrap_or_default();
        let records = self.meant(&name).await?;
        let first = records.first().ok_or_else(|| no_certificate(&name))?;
        let (node, host_name) = (first.node.clone(), first.host_name.clone());
        let record = self.nodes.state.node(node.clone()).await?;
        if let Some(record) = record {
            not_local(&record.host)?;
        }
        let serials = records.into_iter().map(|record| record.serial).collect();
        let revoked = self.nodes.state.revoke_certificates(node, serials).await?;
        tracing::info!(node = %host_name, count = revoked.len(), "certificates were revoked");
        Ok(CertificatesRevoked { host_name, revoked })
    }

    /// The certificates of the gateway and of its nodes, or those that are named.
    pub(super) async fn cert_inspect(
        &self,
        named: CertificateRef,
    ) -> Result<Certificates, ApiError> {
        let mut certificates = expiry::all(&self.nodes).await?;
        if let Some(name) = named.certificate {
            let meant = self.meant(&name).await?;
            certificates
                .retain(|row| row.kind == CertificateKind::Node && is_among(&meant, &row.serial));
            if certificates.is_empty() {
                return Err(no_certificate(&name));
            }
        }
        Ok(Certificates { certificates })
    }

    /// The certificate with this serial number, else all of the node of this name.
    async fn meant(&self, name: &str) -> Result<Vec<CertificateRecord>, ApiError> {
        let mut records = self.nodes.state.certificates().await?;
        if is_among(&records, name) {
            records.retain(|record| record.serial == name);
            return Ok(records);
        }
        let node: NodeId = self.listed_node(name).await?.node;
        records.retain(|record| record.node == node);
        Ok(records)
    }

    fn issued(&self, record: NodeRecord, issued: Issued, gateway: String) -> CertificateIssued {
        CertificateIssued {
            node_id: record.node,
            host_name: record.host_name,
            gateway,
            serial: issued.certificate.serial,
            not_after: issued.certificate.not_after,
            certificate: issued.certificate.der,
            authority: self.nodes.authority.certificate().to_vec(),
        }
    }
}

fn is_among(records: &[CertificateRecord], serial: &str) -> bool {
    records.iter().any(|record| record.serial == serial)
}

fn not_local(host: &Host) -> Result<(), ApiError> {
    if *host == Host::GatewayLocal {
        let message = "the gateway's own node gets its certificate at each start";
        return Err(ApiError::new(ErrorType::InvalidRequest, message)
            .with_hint("tidings cert inspect local shows it"));
    }
    Ok(())
}

fn no_certificate(name: &str) -> ApiError {
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    ApiError::new(ErrorType::NotFound, format!("no certificate of {name}"))
        .with_hint("tidings cert inspect lists all")
}

fn authority_error(error: &AuthorityError) -> ApiError {
    let error_type = match error {
        AuthorityError::SigningRequest(_) => ErrorType::InvalidData,
        _ => ErrorType::Internal,
    };
    ApiError::new(error_type, error.to_string())
        .with_hint("on that machine: tidings-node request --out FILE")
}
