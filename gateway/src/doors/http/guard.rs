//! Whether a request is meant for this gateway, and comes from no foreign page: a name that a
//! stranger lets point to this machine (DNS rebinding) stands in `Host`, and the page that
//! asks in `Origin`.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, Uri, header};
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::answer::Refusal;

/// Under which names the gateway is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names<'a> {
    /// The names of the configuration.
    pub(super) configured: &'a [String],
    /// The address that the gateway listens on.
    pub(super) listen: IpAddr,
    /// `http` or `https`.
    pub(super) scheme: &'static str,
}

/// Refuses a request for another name than this gateway's, or from another page than its own.
pub(super) fn check(names: Names<'_>, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let host = only(headers, header::HOST, "Host")?.ok_or_else(|| {
        Refusal::invalid(StatusCode::BAD_REQUEST, "the request has no Host header")
    })?;
    let asked = uri.authority().map(axum::http::uri::Authority::as_str);
    for name in [Some(host), asked].into_iter().flatten() {
        if !is_ours(names, name) {
            return Err(
                foreign(format!("this gateway is not asked as {}", shown(name)))
                    .hint("ask it as localhost or by its address, or name it in http.hosts"),
            );
        }
    }
    match only(headers, header::ORIGIN, "Origin")? {
        Some(origin) if origin != format!("{}://{host}", names.scheme) => Err(foreign(format!(
            "pages of {} do not ask this gateway",
            shown(origin)
        ))
        .hint("programs ask without an Origin header")),
        _ => Ok(()),
    }
}

/// The one value of a header, where it is there. Two of them could be read in two ways.
fn only<'a>(
    headers: &'a HeaderMap,
    name: header::HeaderName,
    written: &str,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| {
            Refusal::invalid(
                StatusCode::BAD_REQUEST,
                format!("the {written} header is not text"),
            )
        }),
        (Some(_), Some(_)) => Err(Refusal::invalid(
            StatusCode::BAD_REQUEST,
            format!("the request has more than one {written} header"),
        )),
    }
}

/// True for a name that nobody else can let point here, and for one that is configured. Any
/// port: what a forwarded connection was opened on is not ours to know.
fn is_ours(names: Names<'_>, authority: &str) -> bool {
    let Some(name) = without_port(authority) else {
        return false;
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        let address = address.to_canonical();
        return if names.listen.is_loopback() {
            address.is_loopback()
        } else {
            names.listen.is_unspecified() || address == names.listen || address.is_loopback()
        };
    }
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    is("localhost") || names.configured.iter().any(|configured| is(configured))
}

/// The name of `name:port`; `None` where the port is none.
fn without_port(authority: &str) -> Option<&str> {
    let (name, port) = match authority.rfind([':', ']']) {
        Some(at) if authority.as_bytes()[at] == b':' => {
            (&authority[..at], Some(&authority[at + 1..]))
        }
        _ => (authority, None),
    };
    let is_number = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    (!name.is_empty() && port.is_none_or(is_number)).then_some(name)
}

fn foreign(message: String) -> Refusal {
    Refusal::with(
        StatusCode::FORBIDDEN,
        ApiError::new(ErrorType::NotPermitted, message),
    )
}

/// The beginning of what somebody else wrote, for an error.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn names<'a>(listen: &str, configured: &'a [String]) -> Names<'a> {
        Names {
            configured,
            listen: listen.parse().expect("address"),
            scheme: "http",
        }
    }

    #[test]
    fn a_name_is_ours_when_nobody_else_can_point_it_here() {
        let configured = ["tidings.example".to_owned()];
        for (listen, host, ours) in [
            ("127.0.0.1", "127.0.0.1:7431", true),
            ("127.0.0.1", "localhost:7431", true),
            ("127.0.0.1", "LOCALHOST", true),
            ("127.0.0.1", "localhost:", true),
            ("127.0.0.1", "[::1]:9", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]:9", true),
            ("127.0.0.1", "tidings.example:7431", true),
            ("127.0.0.1", "Tidings.Example", true),
            ("127.0.0.1", "192.0.2.1:7431", false),
            ("127.0.0.1", "evil.example", false),
            ("127.0.0.1", "localhost.evil.example", false),
            ("127.0.0.1", "127.0.0.1.evil.example", false),
            ("127.0.0.1", "evil.example@127.0.0.1", false),
            ("127.0.0.1", "localhost:x", false),
            ("127.0.0.1", ":7431", false),
            ("127.0.0.1", "", false),
            ("192.0.2.1", "192.0.2.1:7431", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0", "192.0.2.2", true),
            ("::", "[2001:db8::1]:7431", true),
            ("::", "evil.example", false),
        ] {
            assert_eq!(is_ours(names(listen, &configured), host), ours, "{host}");
        }
    }

    #[test]
    fn only_the_gateways_own_pages_ask_and_a_header_stands_once() {
        for (host, origin, expected) in [
            (&["localhost:1"][..], &[][..], None),
            (&["localhost:1"], &["http://localhost:1"], None),
            (&["localhost:1"], &["https://localhost:1"], Some(403)),
            (&["localhost:1"], &["http://localhost:2"], Some(403)),
            (&["localhost:1"], &["null"], Some(403)),
            (&["localhost:1"], &["http://localhost:1", "null"], Some(400)),
            (&["localhost:1", "localhost:1"], &[], Some(400)),
            (&["evil.example"], &["http://evil.example"], Some(403)),
            (&[], &[], Some(400)),
        ] {
            let mut headers = HeaderMap::new();
            for host in host {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            for origin in origin {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let checked = check(names("127.0.0.1", &[]), &Uri::from_static("/"), &headers);
            let status = checked.err().map(|refusal| refusal.status().as_u16());
            assert_eq!(status, expected, "{host:?} {origin:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        let uri = Uri::from_static("http://evil.example/healthz");
        assert!(check(names("127.0.0.1", &[]), &uri, &headers).is_err());
    }
}
