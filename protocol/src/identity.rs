//! Who and where: catalogs, hosts, nodes, threads.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{hex, sha256, unhex};
use crate::key::{KeyError, SessionKey};

/// The one logical name in every gateway's server certificate. Nodes verify this name and
/// not the address they dialled, so a gateway may change its address.
pub const GATEWAY_SERVER_NAME: &str = "gateway.tidings.internal";

/// The longest thread id, in bytes.
pub const MAX_THREAD_ID_BYTES: usize = 256;

/// The longest host name, in bytes.
pub const MAX_HOST_NAME_BYTES: usize = 32;

/// The family of a transcript.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Catalog {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenClaw and Pi.
    Openclaw,
}

impl Catalog {
    /// Every catalog.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Openclaw];

    /// The name on the wire, in keys and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Openclaw => "openclaw",
        }
    }

    /// The catalog of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|catalog| catalog.as_str() == name)
    }
}

impl fmt::Display for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is not an identity of the kind asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Not 32 lower-case hex digits.
    #[error("a node id is 32 lower-case hex digits")]
    NodeId,
    /// Neither `gateway:local` nor `node:<node id>`.
    #[error("a host is gateway:local or node:<node id>")]
    Host,
    /// Not `[a-z0-9-]{1,32}`.
    #[error("a host name is 1 to 32 of a-z, 0-9 and -")]
    HostName,
    /// Empty, too long, or with control characters.
    #[error("a thread id is 1 to {MAX_THREAD_ID_BYTES} bytes without control characters")]
    ThreadId,
}

/// A node's id: the first 16 bytes of the SHA-256 of its public key
/// (SubjectPublicKeyInfo, DER). It survives renewal, rename and reconnect.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId(String);

impl NodeId {
    /// The id of the node that holds the key with this SubjectPublicKeyInfo.
    #[must_use]
    pub fn of_public_key(spki_der: &[u8]) -> Self {
        Self(hex(&sha256(spki_der)[..16]))
    }

    /// Reads 32 lower-case hex digits.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        match unhex(text) {
            Some(bytes) if bytes.len() == 16 => Ok(Self(text.to_owned())),
            _ => Err(IdentityError::NodeId),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a transcript file is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Host {
    /// The gateway's own machine.
    GatewayLocal,
    /// A paired machine.
    Node(NodeId),
}

impl Host {
    /// Reads `gateway:local` or `node:<node id>`.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        if text == "gateway:local" {
            return Ok(Self::GatewayLocal);
        }
        let id = text.strip_prefix("node:").ok_or(IdentityError::Host)?;
        NodeId::parse(id).map(Self::Node)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GatewayLocal => f.write_str("gateway:local"),
            Self::Node(id) => write!(f, "node:{}", id.as_str()),
        }
    }
}

/// A node's name in keys: a slug, fixed at pairing, unique for ever. `local` is the
/// gateway's own machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

impl HostName {
    /// The name of the gateway's own machine, which no other node can take.
    pub const LOCAL: &'static str = "local";

    /// The gateway's own machine.
    #[must_use]
    pub fn local() -> Self {
        Self(Self::LOCAL.to_owned())
    }

    /// Reads `[a-z0-9-]{1,32}`.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let valid = (1..=MAX_HOST_NAME_BYTES).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentityError::HostName)
        }
    }

    /// Makes a slug of a machine's name: lower case, everything else one `-`, cut to
    /// length. `node` where nothing is left.
    #[must_use]
    pub fn slug(name: &str) -> Self {
        let mut slug = String::new();
        for c in name.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                slug.push(c);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(MAX_HOST_NAME_BYTES);
        let slug = slug.trim_end_matches('-');
        Self(if slug.is_empty() { "node" } else { slug }.to_owned())
    }

    /// This name with `-<number>` behind it, cut so that it stays a slug.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        let suffix = format!("-{number}");
        let room = MAX_HOST_NAME_BYTES - suffix.len();
        let head = &self.0[..self.0.len().min(room)];
        Self(format!("{}{suffix}", head.trim_end_matches('-')))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The agent program's own id of a conversation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadId(String);

impl ThreadId {
    /// Takes any non-empty text of bounded length without control characters.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let valid =
            (1..=MAX_THREAD_ID_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentityError::ThreadId)
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How the id stands in a session key: itself where it fits `[a-z0-9._-]{1,200}`,
    /// else `x-` and 32 hex digits of its SHA-256.
    #[must_use]
    pub fn key_part(&self) -> String {
        let plain = self.0.len() <= 200
            && self.0.bytes().all(|b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
            });
        if plain {
            self.0.clone()
        } else {
            format!("x-{}", hex(&sha256(self.0.as_bytes())[..16]))
        }
    }
}

/// The key of the session that adopts a thread:
/// `agent:<agentId>:adopted:<catalog>:<host name>:<thread>`.
pub fn adopted_key(
    agent_id: &str,
    catalog: Catalog,
    host_name: &HostName,
    thread: &ThreadId,
) -> Result<SessionKey, KeyError> {
    SessionKey::parse(&format!(
        "agent:{agent_id}:adopted:{catalog}:{}:{}",
        host_name.as_str(),
        thread.key_part()
    ))
}

/// The thread that an adopted session's key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedThread {
    /// The agent whose session it is.
    pub agent_id: String,
    /// The family of its transcript.
    pub catalog: Catalog,
    /// The machine.
    pub host_name: HostName,
    /// The thread.
    pub thread_id: ThreadId,
}

/// Reads the key of an adopted session. `None` for any other, and for one whose thread stands
/// in it as a digest.
pub fn read_adopted_key(key: &SessionKey) -> Option<AdoptedThread> {
    let mut parts = key.as_str().splitn(6, ':');
    if parts.next()? != "agent" {
        return None;
    }
    let agent_id = parts.next()?.to_owned();
    if parts.next()? != "adopted" {
        return None;
    }
    let catalog = Catalog::parse(parts.next()?)?;
    let host_name = HostName::parse(parts.next()?).ok()?;
    let thread_id = ThreadId::parse(parts.next()?).ok()?;
    let adopted = adopted_key(&agent_id, catalog, &host_name, &thread_id);
    (adopted.as_ref() == Ok(key) && !thread_id.as_str().starts_with("x-")).then_some(
        AdoptedThread {
            agent_id,
            catalog,
            host_name,
            thread_id,
        },
    )
}

macro_rules! text_identity {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdentityError;

            fn try_from(text: String) -> Result<Self, IdentityError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    )*};
}

text_identity!(NodeId, HostName, ThreadId);

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Host {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        Self::parse(&text)
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_name_becomes_a_slug() {
        for (name, slug) in [
            ("Ada's MacBook Pro", "ada-s-macbook-pro"),
            ("host.example.org", "host-example-org"),
            ("--", "node"),
            ("", "node"),
            ("Büro", "b-ro"),
        ] {
            assert_eq!(HostName::slug(name).as_str(), slug);
            assert!(HostName::parse(slug).is_ok());
        }
        let long = HostName::slug(&"a".repeat(40));
        assert_eq!(long.as_str().len(), 32);
        assert_eq!(long.numbered(12).as_str().len(), 32);
        assert_eq!(HostName::slug("laptop").numbered(2).as_str(), "laptop-2");
    }

    #[test]
    fn hosts_read_back_as_written() {
        let id = NodeId::of_public_key(b"key");
        for host in [Host::GatewayLocal, Host::Node(id)] {
            assert_eq!(Host::parse(&host.to_string()), Ok(host));
        }
        for bad in ["", "local", "node:", "node:xyz", "gateway:other"] {
            assert!(Host::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_key_of_an_adopted_session_names_its_thread() {
        let read = |key: &str| read_adopted_key(&SessionKey::parse(key).expect("key"));
        let found = read("agent:main:adopted:codex:laptop:019e-1.a_b").expect("a thread");
        assert_eq!(found.agent_id, "main");
        assert_eq!(found.catalog, Catalog::Codex);
        assert_eq!(found.host_name.as_str(), "laptop");
        assert_eq!(found.thread_id.as_str(), "019e-1.a_b");
        for other in [
            "agent:main:main",
            "agent:main:adopted:codex:laptop",
            "agent:main:adopted:word:laptop:t",
            "agent:main:adopted:claude:laptop:a:b",
            "agent:main:adopted:claude:laptop:x-0123456789abcdef0123456789abcdef",
            "agent:main:subagent:adopted:claude:laptop:t",
            "global",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn an_odd_thread_id_stands_in_the_key_as_its_digest() {
        let local = HostName::local();
        let key = |thread: &str| {
            let thread = ThreadId::parse(thread).expect("thread");
            adopted_key("main", Catalog::Claude, &local, &thread).expect("key")
        };
        assert_eq!(
            key("0a1b-2.c_d").as_str(),
            "agent:main:adopted:claude:local:0a1b-2.c_d"
        );
        let odd = key("With Space");
        assert!(
            odd.as_str()
                .starts_with("agent:main:adopted:claude:local:x-")
        );
        assert_eq!(
            odd.as_str().len(),
            "agent:main:adopted:claude:local:x-".len() + 32
        );
        assert_ne!(key("Upper"), key("upper"));
    }
}
