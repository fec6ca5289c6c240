//! TLS at the HTTP door, and the port itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidings_gateway::config::{Config, Switch};
use tidings_gateway::doors::http::{HttpLimits, HttpOptions, Listening};
use tidings_node::connection::crypto_provider;
use tidings_protocol::session_api::{ApiError, ErrorType, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::served::{self, PATIENCE, Served, body};
use crate::web::{Answer, address_in, read_answer};

/// A certificate of nobody else's, written where the configuration names it.
struct Shown {
    certificate: CertificateDer<'static>,
    config: Config,
}

fn write(dir: &Path) -> Shown {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let (cert, key) = (dir.join("http.crt"), dir.join("http.key"));
    std::fs::write(&cert, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let mut config = Config::default();
    config.http.tls_cert = Switch::On(cert);
    config.http.tls_key = Switch::On(key);
    Shown {
        certificate: made.cert.der().clone(),
        config,
    }
}

fn options(listen: &str) -> HttpOptions {
    HttpOptions {
        listen: listen.parse().expect("address"),
        limits: HttpLimits::default(),
    }
}

fn fixed(config: Config) -> watch::Receiver<Arc<Config>> {
    watch::channel(Arc::new(config)).1
}

/// Asks whether the gateway lives, trusting this certificate alone.
async fn ask(url: &str, trusted: &CertificateDer<'static>) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut address = address_in(url);
    if address.ip().is_unspecified() {
        address.set_ip("127.0.0.1".parse().expect("an address"));
    }
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = timeout(PATIENCE * 3, connector.connect(name, stream)).await??;
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await?;
    Ok(read_answer(&mut stream).await)
}

#[tokio::test]
async fn an_address_that_other_machines_reach_needs_tls() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let refused = Listening::open(options(listen), fixed(Config::default())).await;
        let error = ApiError::from(&refused.expect_err("no TLS"));
        assert_eq!(error.error_type, ErrorType::Configuration);
        assert_eq!(error.error_type.exit_code(), 78);
        let expected = format!(
            "HTTP on {listen}, which other machines reach, needs TLS, and none is configured"
        );
        assert_eq!(error.message, expected);
        assert!(error.hint.expect("a hint").contains("http.tlsCert"));
    }
}

#[tokio::test]
async fn with_tls_it_is_reached_from_everywhere_and_shows_a_renewed_certificate_at_once() {
    let served = Served::start();
    let scratch = tempfile::tempdir().expect("scratch");
    let first = write(scratch.path());
    let (config, configured) = watch::channel(Arc::new(first.config));
    let listening = Listening::open(options("0.0.0.0:0"), configured)
        .await
        .expect("a port");
    let url = listening.url();
    assert!(url.starts_with("https://0.0.0.0:"), "{url}");
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(listening.serve(served.service.clone(), stopped));
    assert_eq!(
        ask(&url, &first.certificate)
            .await
            .expect("an answer")
            .status,
        200
    );

    let plain = address_in(&url).port();
    let mut stream = TcpStream::connect(("127.0.0.1", plain))
        .await
        .expect("connected");
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .expect("written");
    assert_ne!(read_answer(&mut stream).await.status, 200, "without TLS");

    let second = write(scratch.path());
    assert!(
        ask(&url, &second.certificate).await.is_err(),
        "it is not shown yet"
    );
    config.send_replace(Arc::new(second.config.clone()));
    let shown = async { while ask(&url, &second.certificate).await.is_err() {} };
    timeout(PATIENCE * 3, shown).await.expect("it is shown");

    // A certificate that cannot be read changes nothing.
    std::fs::write(scratch.path().join("http.crt"), "not a certificate").expect("written");
    config.send_replace(Arc::new(second.config));
    assert_eq!(
        ask(&url, &second.certificate)
            .await
            .expect("an answer")
            .status,
        200
    );
    stop.send_replace(true);
    serving.await.expect("it ends");
}

#[tokio::test]
async fn files_that_are_no_certificate_and_key_are_named() {
    let scratch = tempfile::tempdir().expect("scratch");
    let good = write(scratch.path()).config;
    let file = |name: &str, content: &str| -> PathBuf {
        let path = scratch.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    };
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let with = |cert: Option<PathBuf>, key: Option<PathBuf>| {
        let mut config = good.clone();
        if let Some(cert) = cert {
            config.http.tls_cert = Switch::On(cert);
        }
        if let Some(key) = key {
            config.http.tls_key = Switch::On(key);
        }
        config
    };
    for (config, named) in [
        (
            with(Some(scratch.path().join("none.crt")), None),
            "none.crt",
        ),
        (
            with(Some(file("empty.crt", "")), None),
            "empty.crt: there is no certificate in it",
        ),
        (
            with(None, Some(file("empty.key", ""))),
            "empty.key: there is no private key in it",
        ),
        (with(None, Some(file("other.key", &other))), "other.key: "),
    ] {
        let refused = Listening::open(options("127.0.0.1:0"), fixed(config)).await;
        let error = ApiError::from(&refused.expect_err(named));
        assert_eq!(error.error_type, ErrorType::Configuration);
        assert!(error.message.contains(named), "{error:?}");
    }
}

#[tokio::test]
async fn a_check_says_where_http_is_answered_and_what_is_wrong_with_its_certificate() {
    let scratch = tempfile::tempdir().expect("scratch");
    let mut made = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("params");
    made.not_after = rcgen::date_time_ymd(2020, 1, 2);
    made.not_before = rcgen::date_time_ymd(2020, 1, 1);
    let mut config = write(scratch.path()).config;
    let key = rcgen::KeyPair::generate().expect("a key");
    let old = made.self_signed(&key).expect("signed");
    let (cert_file, key_file) = (
        scratch.path().join("old.crt"),
        scratch.path().join("old.key"),
    );
    std::fs::write(&cert_file, old.pem()).expect("written");
    std::fs::write(&key_file, key.serialize_pem()).expect("written");
    config.http.tls_cert = Switch::On(cert_file);
    config.http.tls_key = Switch::On(key_file);
    let served = Served::start_with(config);
    let mut operator = served.connect().await;
    let found = body!(served::ask(&mut operator, Request::Check {}).await, Check).findings;
    let about_http: Vec<_> = found
        .iter()
        .filter(|found| found.what.contains("HTTP"))
        .collect();
    assert_eq!(about_http.len(), 1, "{found:?}");
    let what = "the certificate of the HTTP door has expired on 2020-01-02 00:00:00 UTC";
    assert_eq!(about_http[0].what, what);

    let dir = scratch.path().join("state");
    let gateway = crate::web::gateway(&dir, Config::default()).await;
    let mut operator = served::connect(gateway.state_dir()).await;
    let checked = body!(served::ask(&mut operator, Request::Check {}).await, Check);
    assert_eq!(checked.http.as_deref(), gateway.http());
    let status = body!(served::ask(&mut operator, Request::Status {}).await, Status);
    assert_eq!(status.gateway.http.as_deref(), gateway.http());
    gateway.stop().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let first = Listening::open(options("127.0.0.1:0"), fixed(Config::default())).await;
    let first = first.expect("a port");
    let taken = address_in(&first.url()).to_string();
    let refused = Listening::open(options(&taken), fixed(Config::default())).await;
    let error = ApiError::from(&refused.expect_err("it is taken"));
    assert_eq!(error.error_type, ErrorType::Unavailable);
    assert_eq!(error.error_type.exit_code(), 69);
    let expected = format!("cannot listen on TCP {taken} for HTTP: ");
    assert!(error.message.starts_with(&expected), "{error:?}");
    assert!(error.hint.expect("a hint").contains("--http off"));
}
