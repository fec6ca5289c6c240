//! Join links: everything a new machine needs to pair, in one line.
//!
//! `tidings://join/<code>@<host:port>?ca=<SHA-256 of the gateway's CA key, hex>`

use std::fmt;

use crate::digest::{hex, sha256, unhex};

/// The longest join link, in bytes.
pub const MAX_JOIN_LINK_BYTES: usize = 512;

/// A single-use join code: 128 random bits. It is a secret, so it has no `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinCode([u8; 16]);

impl JoinCode {
    /// A code of these random bits.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bits.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for JoinCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinCode(…)")
    }
}

/// A join link in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinLink {
    /// The single-use code.
    pub code: JoinCode,
    /// Where the gateway listens: `host:port`, IPv6 in brackets.
    pub address: String,
    /// SHA-256 of the SubjectPublicKeyInfo of the gateway's certificate authority.
    pub ca_pin: [u8; 32],
}

/// Why a text is not a join link. The text is not repeated: it holds a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinLinkError {
    /// Longer than [`MAX_JOIN_LINK_BYTES`].
    #[error("a join link has at most {MAX_JOIN_LINK_BYTES} bytes")]
    TooLong,
    /// Does not begin with `tidings://join/`.
    #[error("a join link begins with tidings://join/")]
    Scheme,
    /// The code is not 32 lower-case hex digits.
    #[error("the code of a join link is 32 lower-case hex digits before the @")]
    Code,
    /// The address is not `host:port`.
    #[error("the address of a join link is host:port, IPv6 in brackets")]
    Address,
    /// No `?ca=` with 64 lower-case hex digits at the end.
    #[error("a join link ends in ?ca= and 64 lower-case hex digits")]
    CaPin,
}

impl JoinLink {
    /// Reads a link.
    pub fn parse(text: &str) -> Result<Self, JoinLinkError> {
        let text = text.trim();
        if text.len() > MAX_JOIN_LINK_BYTES {
            return Err(JoinLinkError::TooLong);
        }
        let rest = text
            .strip_prefix("tidings://join/")
            .ok_or(JoinLinkError::Scheme)?;
        let (code, rest) = rest.split_once('@').ok_or(JoinLinkError::Code)?;
        let (address, pin) = rest.split_once("?ca=").ok_or(JoinLinkError::CaPin)?;
        let fixed = |text, error| unhex(text).ok_or(error);
        Ok(Self {
            code: JoinCode(
                fixed(code, JoinLinkError::Code)?
                    .try_into()
                    .map_err(|_| JoinLinkError::Code)?,
            ),
            address: check_address(address)?.to_owned(),
            ca_pin: fixed(pin, JoinLinkError::CaPin)?
                .try_into()
                .map_err(|_| JoinLinkError::CaPin)?,
        })
    }
}

/// Accepts `host:port` with a host of letters, digits, `.`, `-`, `_`, or an IPv6 address
/// in brackets.
pub fn check_address(address: &str) -> Result<&str, JoinLinkError> {
    let (host, port) = address.rsplit_once(':').ok_or(JoinLinkError::Address)?;
    let port_ok =
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port != 0);
    let host_ok = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.len() <= 253
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        }
    };
    if port_ok && host_ok {
        Ok(address)
    } else {
        Err(JoinLinkError::Address)
    }
}

impl JoinLink {
    /// Tells this link from others, and tells nothing of its code: of 128 random bits a digest
    /// gives none away.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut bytes = self.code.0.to_vec();
        bytes.extend(self.ca_pin);
        sha256(&bytes)
    }
}

impl fmt::Display for JoinLink {
    /// Writes the whole link, the secret code included: only for the person who asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tidings://join/{}@{}?ca={}",
            hex(&self.code.0),
            self.address,
            hex(&self.ca_pin)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(address: &str) -> JoinLink {
        JoinLink {
            code: JoinCode([7; 16]),
            address: address.to_owned(),
            ca_pin: [9; 32],
        }
    }

    #[test]
    fn a_link_reads_back_as_written() {
        for address in ["127.0.0.1:7430", "[::1]:7430", "gw.example.org:1"] {
            let link = link(address);
            assert_eq!(JoinLink::parse(&format!(" {link}\n")), Ok(link));
        }
        assert_eq!(
            link("h:1").to_string(),
            format!(
                "tidings://join/{}@h:1?ca={}",
                "07".repeat(16),
                "09".repeat(32)
            )
        );
    }

    #[test]
    fn what_is_no_link_says_which_part_is_wrong() {
        let code = "07".repeat(16);
        let pin = "09".repeat(32);
        for (text, error) in [
            ("http://x".to_owned(), JoinLinkError::Scheme),
            ("tidings://join/".to_owned(), JoinLinkError::Code),
            (
                format!("tidings://join/{code}0@h:1?ca={pin}"),
                JoinLinkError::Code,
            ),
            (
                format!("tidings://join/{code}@h?ca={pin}"),
                JoinLinkError::Address,
            ),
            (
                format!("tidings://join/{code}@h:0?ca={pin}"),
                JoinLinkError::Address,
            ),
            (
                format!("tidings://join/{code}@h:+1?ca={pin}"),
                JoinLinkError::Address,
            ),
            (
                format!("tidings://join/{code}@[zz]:1?ca={pin}"),
                JoinLinkError::Address,
            ),
            (format!("tidings://join/{code}@h:1"), JoinLinkError::CaPin),
            (
                format!("tidings://join/{code}@h:1?ca={pin}&x"),
                JoinLinkError::CaPin,
            ),
            ("x".repeat(513), JoinLinkError::TooLong),
        ] {
            assert_eq!(JoinLink::parse(&text), Err(error), "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_code() {
        assert!(!format!("{:?}", link("h:1")).contains("07"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in ".{0,600}") {
            let _ = JoinLink::parse(&text);
        }
    }
}
