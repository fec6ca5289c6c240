//! `tidings cert`

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    CertificateIssued, CertificateKind, CertificateRow, CertificateState, Certificates,
    CertificatesRevoked, Reply,
};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{DAY, TIME, laptop, laptop_id};

const SERIAL: &str = "00112233445566778899aabbccddeeff";

fn issuing() -> Fake {
    Fake::answering(Reply::CertIssued(Box::new(CertificateIssued {
        node_id: laptop_id(),
        host_name: laptop().host_name,
        gateway: "gw.example.org:7430".to_owned(),
        serial: SERIAL.to_owned(),
        not_after: TIME + 30 * DAY,
        certificate: vec![0x30, 0x01],
        authority: vec![0x30, 0x02],
    })))
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("there");
    metadata.permissions().mode() & 0o777
}

#[test]
fn issue_takes_a_request_and_leaves_what_its_machine_needs() {
    let fake = issuing();
    let dir = fake.state_dir();
    fs::write(dir.join("laptop.csr"), [0x30, 0x00]).expect("request");
    let (request, out) = (dir.join("laptop.csr"), dir.join("out"));
    let line = format!(
        "cert issue laptop --request {} --out {} --address gw.example.org",
        request.display(),
        out.display()
    );
    assert_snapshot!(with(&fake, &line), @r#"
    exit 0
    --- stdout
    [STATE]/out/node.json
    --- stderr
    a certificate for laptop, good until 2026-12-30 21:05:03 UTC; the node finds the gateway at gw.example.org:7430
    hint: carry the folder there, then: tidings-node join --certificate FOLDER
    --- asked
    CertIssue(IssueCertificate { name: "laptop", signing_request: [48, 0], address: Some("gw.example.org") })
    "#);
    assert_eq!(mode(&out), 0o700);
    assert_eq!(mode(&out.join("node.json")), 0o600);
    assert!(!out.join("node.key").exists());
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"nodeId":"0123456789abcdef0123456789abcdef","hostName":"laptop","gateway":"gw.example.org:7430","serial":"00112233445566778899aabbccddeeff","notAfter":1798664703123,"out":"[STATE]/out","files":["[STATE]/out/node.json"]}
    --- stderr
    --- asked
    CertIssue(IssueCertificate { name: "laptop", signing_request: [48, 0], address: Some("gw.example.org") })
    "#);
}

#[test]
fn issue_with_key_makes_the_key_here_and_sends_only_a_request_for_it() {
    let fake = issuing();
    let out = fake.state_dir().join("out");
    let line = format!("cert issue laptop --with-key --out {}", out.display());
    let output = with(&fake, &line);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert_eq!((mode(&out), mode(&out.join("node.key"))), (0o700, 0o600));
    let key = fs::read_to_string(out.join("node.key")).expect("key");
    assert!(key.contains("PRIVATE KEY"));
    let again = with(&fake, &line);
    assert!(again.starts_with("exit 1\n"), "{again}");
    assert!(again.contains("holds a node's key already"), "{again}");
    assert_eq!(
        fs::read_to_string(out.join("node.key")).expect("key"),
        key,
        "a key is not overwritten"
    );
}

#[test]
fn nothing_is_issued_where_the_key_could_not_be_kept() {
    let fake = issuing();
    let file = fake.state_dir().join("file");
    fs::write(&file, "").expect("file");
    let line = format!(
        "cert issue laptop --with-key --out {}",
        file.join("out").display()
    );
    let output = with(&fake, &line);
    assert!(output.starts_with("exit 73\n"), "{output}");
    assert!(output.contains("nothing was issued"), "{output}");
    assert!(!output.contains("CertIssue("), "{output}");
}

#[test]
fn what_is_no_request_is_named() {
    let fake = issuing();
    let file = fake.state_dir().join("laptop.pem");
    let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    fs::write(&file, pem).expect("file");
    let line = format!("cert issue laptop --request {} --out out", file.display());
    assert_snapshot!(with(&fake, &line), @"
    exit 65
    --- stdout
    --- stderr
    error: [STATE]/laptop.pem is no signing request
    hint: on that machine: tidings-node request --out FILE
    --- asked
    ");
    let missing = "cert issue laptop --request /nonexistent/laptop.csr --out out";
    assert_snapshot!(with(&fake, missing), @"
    exit 66
    --- stdout
    --- stderr
    error: cannot read /nonexistent/laptop.csr: No such file or directory (os error 2)
    --- asked
    ");
    assert_snapshot!(with(&fake, "cert issue laptop --out out"), @"
    exit 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided: <--request <FILE>|--with-key>
    hint: see tidings cert issue --help
    usage: tidings cert issue --out <FOLDER> <--request <FILE>|--with-key> <NAME>
    --- asked
    ");
}

#[test]
fn renew_asks_for_the_nodes_own_key() {
    let fake = issuing();
    let out = fake.state_dir().join("out");
    let line = format!("cert renew laptop --out {}", out.display());
    let output = with(&fake, &line);
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(out.join("node.json").exists());
    assert!(output.contains("CertRenew("), "{output}");
}

#[test]
fn revoke_names_what_was_revoked() {
    let revoking = |serials: &[&str]| {
        Fake::answering(Reply::CertRevoked(CertificatesRevoked {
            host_name: laptop().host_name,
            revoked: serials.iter().map(ToString::to_string).collect(),
        }))
    };
    assert_snapshot!(with(&revoking(&[SERIAL]), "cert revoke laptop"), @r#"
    exit 0
    --- stdout
    00112233445566778899aabbccddeeff
    --- stderr
    laptop is turned away while it shows these
    hint: tidings cert renew laptop --out FOLDER gives it another; tidings nodes revoke laptop turns its key away for good
    --- asked
    CertRevoke(CertificateRef { certificate: Some("laptop") })
    "#);
    assert_snapshot!(with(&revoking(&[SERIAL]), "cert revoke laptop --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"hostName":"laptop","revoked":["00112233445566778899aabbccddeeff"]}
    --- stderr
    --- asked
    CertRevoke(CertificateRef { certificate: Some("laptop") })
    "#);
    assert_snapshot!(with(&revoking(&[]), "cert revoke laptop"), @r#"
    exit 0
    --- stdout
    --- stderr
    laptop has none that is not revoked
    --- asked
    CertRevoke(CertificateRef { certificate: Some("laptop") })
    "#);
}

#[test]
fn inspect_shows_the_gateways_own_and_those_of_nodes() {
    let row = |kind, state| CertificateRow {
        kind,
        state,
        host_name: None,
        node_id: None,
        serial: SERIAL.to_owned(),
        not_before: TIME - DAY,
        not_after: TIME + 30 * DAY,
        revoked_at: None,
    };
    let node = |state| CertificateRow {
        host_name: Some(laptop().host_name),
        node_id: Some(laptop_id()),
        ..row(CertificateKind::Node, state)
    };
    let fake = Fake::answering(Reply::CertInspect(Certificates {
        certificates: vec![
            row(CertificateKind::Authority, CertificateState::Valid),
            row(CertificateKind::Server, CertificateState::Expiring),
            node(CertificateState::NotYetValid),
            CertificateRow {
                revoked_at: Some(TIME),
                ..node(CertificateState::Revoked)
            },
        ],
    }));
    assert_snapshot!(with(&fake, "cert inspect"), @"
    exit 0
    --- stdout
    OF           STATE          FROM (UTC)           UNTIL (UTC)          REVOKED (UTC)        SERIAL
    (authority)  valid          2026-11-29 21:05:03  2026-12-30 21:05:03  -                    00112233445566778899aabbccddeeff
    (gateway)    expiring       2026-11-29 21:05:03  2026-12-30 21:05:03  -                    00112233445566778899aabbccddeeff
    laptop       not yet valid  2026-11-29 21:05:03  2026-12-30 21:05:03  -                    00112233445566778899aabbccddeeff
    laptop       revoked        2026-11-29 21:05:03  2026-12-30 21:05:03  2026-11-30 21:05:03  00112233445566778899aabbccddeeff
    --- stderr
    --- asked
    CertInspect(CertificateRef { certificate: None })
    ");
    assert_snapshot!(with(&fake, &format!("cert inspect {SERIAL} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"certificates":[{"kind":"authority","state":"valid","serial":"00112233445566778899aabbccddeeff","notBefore":1795986303123,"notAfter":1798664703123},{"kind":"server","state":"expiring","serial":"00112233445566778899aabbccddeeff","notBefore":1795986303123,"notAfter":1798664703123},{"kind":"node","state":"not_yet_valid","hostName":"laptop","nodeId":"0123456789abcdef0123456789abcdef","serial":"00112233445566778899aabbccddeeff","notBefore":1795986303123,"notAfter":1798664703123},{"kind":"node","state":"revoked","hostName":"laptop","nodeId":"0123456789abcdef0123456789abcdef","serial":"00112233445566778899aabbccddeeff","notBefore":1795986303123,"notAfter":1798664703123,"revokedAt":1796072703123}]}
    --- stderr
    --- asked
    CertInspect(CertificateRef { certificate: Some("00112233445566778899aabbccddeeff") })
    "#);
}

#[test]
fn a_request_as_people_carry_it_reaches_the_gateway_as_it_was_made() {
    let fake = issuing();
    let dir = fake.state_dir();
    let key = tidings_node::connection::NodeKey::generate().expect("key");
    let pem = tidings_node::connection::signing_request_pem(&key).expect("request");
    fs::write(dir.join("laptop.csr"), &pem).expect("file");
    let line = format!(
        "cert issue laptop --request {} --out {}",
        dir.join("laptop.csr").display(),
        dir.join("out").display()
    );
    let output = with(&fake, &line);
    assert!(output.starts_with("exit 0\n"), "{output}");
    let (_, carried) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).expect("PEM");
    let sent = format!("signing_request: {:?}", carried.contents);
    assert!(output.contains(&sent), "{output}");
}
