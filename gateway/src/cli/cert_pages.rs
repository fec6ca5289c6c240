//! How certificates look: the pages of `tidings cert`.

use tidings_node::cli::format::{utc, utc_or_nothing};
use tidings_node::cli::{Column, Note, Page, Table};
use tidings_protocol::session_api::{
    CertificateKind, CertificateState, Certificates, CertificatesRevoked,
};

use super::cert::Written;

pub(super) fn issued_page(written: &Written) -> Page {
    let files = written.files.iter();
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    Page::of(format_args!("{}\n", files.join("\n")))
        .with(Note::Info(format!(
            "a certificate for {}, good until {} UTC; the node finds the gateway at {}",
            written.host_name,
            utc(written.not_after),
            written.gateway
        )))
        .with(Note::Hint(
            "carry the folder there, then: tidings-node join --certificate FOLDER".to_owned(),
        ))
}

pub(super) fn revoked_page(revoked: &CertificatesRevoked) -> Page {
    let name = &revoked.host_name;
    if revoked.revoked.is_empty() {
        return Page::default().with(Note::Info(format!("{name} has none that is not revoked")));
    }
    Page::of(format_args!("{}\n", revoked.revoked.join("\n")))
        .with(Note::Info(format!(
            "{name} is turned away while it shows these"
        )))
        .with(Note::Hint(format!(
            "tidings cert renew {name} --out FOLDER gives it another; tidings nodes revoke \
             {name} turns its key away for good"
        )))
}

pub(super) fn certificates_page(certificates: &Certificates) -> Page {
    let table = Table::new([
        Column::left("OF"),
        Column::left("STATE"),
        Column::left("FROM (UTC)"),
        Column::left("UNTIL (UTC)"),
        Column::left("REVOKED (UTC)").where_filled(),
        Column::left("SERIAL"),
    ])
    .with_rows(&certificates.certificates, |row| {
        let of = match (row.kind, &row.host_name) {
            (CertificateKind::Authority, _) => "(authority)".to_owned(),
            (CertificateKind::Server, _) => "(gateway)".to_owned(),
            (CertificateKind::Node, Some(name)) => name.to_string(),
            (CertificateKind::Node, None) => String::new(),
        };
        [
            of,
            state_name(row.state).to_owned(),
            utc(row.not_before),
            utc(row.not_after),
            row.revoked_at
                .map(|at| utc_or_nothing(Some(at)))
                .unwrap_or_default(),
            row.serial.clone(),
        ]
    });
    Page::of(table)
}

fn state_name(state: CertificateState) -> &'static str {
    match state {
        CertificateState::NotYetValid => "not yet valid",
        state => state.as_str(),
    }
}
