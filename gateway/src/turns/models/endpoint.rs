//! Where a model is asked.

use std::path::PathBuf;

use hyper::Uri;
use hyper::http::uri::Scheme;

/// How a model is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions, which most servers speak.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
}

/// Where a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// The model's name at its provider.
    pub model: String,
    /// The variable of the environment that holds the key, where one is needed. It is read at
    /// each request and kept nowhere.
    pub api_key_env: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) address: Address,
}

/// A host, and a path there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The host, an IPv6 address without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// The path, and the query where there is one.
    pub(super) path: String,
    /// Host and port as a request names them.
    pub(super) authority: String,
}

/// Why an address is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address is http:// or https:// with a host, and without user or fragment")]
pub struct EndpointError;

impl Address {
    /// Reads an address.
    pub(super) fn parse(url: &str) -> Result<Self, EndpointError> {
        let uri: Uri = url.trim().parse().map_err(|_| EndpointError)?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(EndpointError),
        };
        let authority = uri.authority().ok_or(EndpointError)?;
        if authority.as_str().contains('@') || url.contains('#') {
            return Err(EndpointError);
        }
        let host = authority.host();
        let path = uri.path_and_query();
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if is_tls { 443 } else { 80 }),
            is_tls,
            path: path.map_or("/", |path| path.as_str()).to_owned(),
            authority: authority.as_str().to_owned(),
        })
    }
}

impl Endpoint {
    /// The endpoint below a base address, which has its `/v1`, and no query.
    pub fn new(
        protocol: Protocol,
        base_url: &str,
        model: String,
        api_key_env: Option<String>,
    ) -> Result<Self, EndpointError> {
        let call = match protocol {
            Protocol::OpenAi => "chat/completions",
            Protocol::Anthropic => "messages",
        };
        let base = Address::parse(base_url)?;
        if base.path.contains('?') {
            return Err(EndpointError);
        }
        Ok(Self {
            protocol,
            model,
            api_key_env,
            ca_file: None,
            address: Address {
                path: format!("{}/{call}", base.path.trim_end_matches('/')),
                ..base
            },
        })
    }

    /// The same, where the authorities of this file are trusted in the place of the machine's.
    #[must_use]
    pub fn trusting(mut self, ca_file: Option<PathBuf>) -> Self {
        self.ca_file = ca_file;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_below_the_base_address() {
        for (protocol, base, host, port, is_tls, path) in [
            (
                Protocol::OpenAi,
                "https://api.example/v1",
                "api.example",
                443,
                true,
                "/v1/chat/completions",
            ),
            (
                Protocol::OpenAi,
                " http://127.0.0.1:11434/v1/ ",
                "127.0.0.1",
                11434,
                false,
                "/v1/chat/completions",
            ),
            (
                Protocol::Anthropic,
                "https://[::1]:8443/a/v1",
                "::1",
                8443,
                true,
                "/a/v1/messages",
            ),
            (
                Protocol::Anthropic,
                "http://host",
                "host",
                80,
                false,
                "/messages",
            ),
        ] {
            let endpoint = Endpoint::new(protocol, base, "m".to_owned(), None).expect(base);
            let address = endpoint.address;
            assert_eq!(address.host, host, "{base}");
            assert_eq!(
                (address.port, address.is_tls, address.path.as_str()),
                (port, is_tls, path),
                "{base}"
            );
        }
        for base in [
            "",
            "/v1",
            "ftp://host/v1",
            "https://",
            "host/v1",
            "https://user:key@host/v1",
            "https://host/v1?key=1",
            "https://host/v1#x",
        ] {
            let endpoint = Endpoint::new(Protocol::OpenAi, base, "m".to_owned(), None);
            assert_eq!(endpoint, Err(EndpointError), "{base}");
        }
    }
}
