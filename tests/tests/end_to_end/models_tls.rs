//! Models behind TLS: whose certificate is trusted, and what is said of one that is not.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidings_gateway::turns::models::{Endpoint, ModelError, Protocol};
use tidings_tests::model::{ModelServer, Say};
use tidings_tests::{Gateway, Scratch, Setup, WATCHER};

use crate::models::{ask_at, patience};

/// An authority of nobody else's, and where its certificate stands.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(dir: &Path, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("an authority");
        let file = dir.join(name);
        fs::write(&file, certificate.pem()).expect("a file");
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// A certificate of this name, valid until the beginning of this year.
    fn certify(&self, name: &str, until: i32) -> (CertificateDer<'static>, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("params");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.der().clone(), key)
    }
}

/// TLS in front of a scripted model; answers its base address.
fn front(model: &ModelServer, (certificate, key): (CertificateDer<'static>, KeyPair)) -> String {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("a certificate and its key");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (config, behind) = (Arc::new(config), model.address());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            // Whoever does not trust it goes: that is what is looked at.
            thread::spawn(move || pass_on(config, stream, TcpStream::connect(behind)?));
        }
    });
    format!("https://localhost:{port}/v1")
}

/// Passes one request on, and its answer back.
fn pass_on(config: Arc<ServerConfig>, stream: TcpStream, mut model: TcpStream) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut person = BufReader::new(StreamOwned::new(connection, stream));
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begins = head.len();
        if person.read_line(&mut head)? == 0 {
            return Ok(());
        }
        let line = head[begins..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    person.read_exact(&mut body)?;
    model.write_all(head.as_bytes())?;
    model.write_all(&body)?;
    let mut tls = person.into_inner();
    io::copy(&mut model, &mut tls)?;
    tls.conn.send_close_notify();
    tls.flush()
}

/// What comes of asking there by the authorities of a file.
fn asked(url: &str, ca_file: &Path) -> Result<String, ModelError> {
    let endpoint = Endpoint::new(Protocol::OpenAi, url, "m".to_owned(), None);
    let endpoint = endpoint.expect("an endpoint");
    let (shown, answer) = ask_at(&endpoint.trusting(Some(ca_file.to_owned())), patience());
    answer.map(|_| shown)
}

#[test]
fn a_server_is_trusted_by_the_authority_that_is_configured_and_by_no_other() {
    let scratch = Scratch::new();
    let ours = Authority::new(scratch.path(), "ours.pem");
    let theirs = Authority::new(scratch.path(), "theirs.pem");
    let model = ModelServer::answering(|_| Say::text("Yes.").into());
    let good = front(&model, ours.certify("localhost", 2099));
    assert_eq!(asked(&good, &ours.file).expect("an answer"), "Yes.");

    for (certificate, ca_file, reason) in [
        (
            ours.certify("localhost", 2099),
            &theirs.file,
            "no authority that is trusted made it",
        ),
        (
            ours.certify("models.example", 2099),
            &ours.file,
            "it is for another name",
        ),
        (
            ours.certify("localhost", 2021),
            &ours.file,
            "it has expired",
        ),
    ] {
        let url = front(&model, certificate);
        let error = asked(&url, ca_file).expect_err(reason);
        assert!(matches!(error, ModelError::Untrusted { .. }), "{error}");
        assert!(!error.is_passing(), "nobody asks there again: {error}");
        let said = error.to_string();
        assert!(said.starts_with("the certificate of localhost:"), "{said}");
        assert!(said.ends_with(reason), "{said}");
    }
    assert_eq!(model.asked().len(), 1, "nothing was said to a stranger");
}

#[test]
fn authorities_that_cannot_be_read_are_named_and_nothing_is_asked() {
    let scratch = Scratch::new();
    let ours = Authority::new(scratch.path(), "ours.pem");
    let model = ModelServer::answering(|_| Say::text("Yes.").into());
    let url = front(&model, ours.certify("localhost", 2099));
    let file = |name: &str, content: &str| {
        let file = scratch.path().join(name);
        fs::write(&file, content).expect("a file");
        file
    };
    for (ca_file, reason) in [
        (scratch.path().join("nowhere.pem"), "there is no such file"),
        (file("empty.pem", ""), "it holds no certificate"),
        (scratch.path().to_owned(), "it is no regular file"),
    ] {
        let error = asked(&url, &ca_file).expect_err(reason);
        assert!(matches!(error, ModelError::NoAuthority { .. }), "{error}");
        let said = error.to_string();
        let path = ca_file.to_str().expect("a path");
        assert!(said.contains(path) && said.ends_with(reason), "{said}");
    }
    let torn = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let error = asked(&url, &file("torn.pem", torn)).expect_err("no certificate");
    assert!(matches!(error, ModelError::NoAuthority { .. }), "{error}");
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn a_gateway_talks_to_a_model_behind_tls_and_says_what_to_set_where_it_does_not_trust_it() {
    let scratch = Scratch::new();
    let ours = Authority::new(scratch.path(), "ours.pem");
    let model = ModelServer::answering(|_| Say::text("It is running.").into());
    let url = front(&model, ours.certify("localhost", 2099));
    let file = scratch.path().join("models.toml");
    let config = |more: &str| {
        let plain = model.config("openai", 200_000, "");
        let secret = plain.replace(&model.base_url(), &url);
        fs::write(
            &file,
            secret.replace("model = \"m\"\n", &format!("model = \"m\"\n{more}")),
        )
        .expect("a configuration");
        Setup::without_local_node().with_config(&file)
    };
    let say = |gateway: &Gateway| {
        gateway.run(&[
            "chat",
            "--session",
            WATCHER,
            "--message",
            "Is the mill running?",
        ])
    };

    let mut gateway = Gateway::start_as(&scratch, config(""));
    let answer = say(&gateway);
    assert_eq!(answer.code, 78, "{answer}");
    let error = answer.refused();
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|said| said.contains("is not trusted")),
        "{error}"
    );
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("caFile")),
        "{error}"
    );

    let ca_file = format!("caFile = {:?}\n", ours.file.to_str().expect("a path"));
    assert_eq!(gateway.stop(), 0);
    gateway.restart_as(config(&ca_file));
    assert_eq!(say(&gateway).done()["reply"], "It is running.");

    // The whole machine's authorities can be named too.
    assert_eq!(gateway.stop(), 0);
    gateway.restart_as(config("").with_variable("SSL_CERT_FILE", &ours.file));
    assert_eq!(say(&gateway).done()["reply"], "It is running.");
}
