//! Which session is meant: its key, and the agent it belongs to.

use std::fmt;

use tidings_protocol::SessionKey;

/// The longest agent id, in bytes: it names a directory.
pub const MAX_AGENT_ID_BYTES: usize = 128;

/// The id of an agent. It is one segment of a session key and names a directory, so it has
/// no colon, no slash and no leading dot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

/// A session: its key, and the agent it belongs to. The agent of an agent-qualified key is
/// the key's own; a bare key exists once per agent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionAddress {
    key: SessionKey,
    agent: AgentId,
}

/// Why a text is no agent id: the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an agent id has 1 to {MAX_AGENT_ID_BYTES} bytes without white space, control \
     characters, quotes, colons or slashes, and does not begin with a dot"
)]
pub struct AgentIdError;

impl AgentId {
    /// Reads an agent id in any case and brings it into lower case.
    pub fn parse(text: &str) -> Result<Self, AgentIdError> {
        let id = text.trim().to_lowercase();
        let forbidden = |c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, ':' | '/' | '\\' | '"' | '\'' | '`')
        };
        let valid = (1..=MAX_AGENT_ID_BYTES).contains(&id.len())
            && !id.starts_with('.')
            && !id.chars().any(forbidden);
        if valid {
            Ok(Self(id))
        } else {
            Err(AgentIdError)
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SessionAddress {
    /// The session of this key: of the key's own agent, else of `agent_of_bare`.
    pub fn resolve(key: SessionKey, agent_of_bare: &AgentId) -> Result<Self, AgentIdError> {
        let agent = match key.agent_id() {
            Some(own) => AgentId::parse(own)?,
            None => agent_of_bare.clone(),
        };
        Ok(Self { key, agent })
    }

    /// The session of an agent-qualified key; `None` for a bare key, or one whose agent is
    /// no agent id.
    pub fn qualified(key: SessionKey) -> Option<Self> {
        let agent = AgentId::parse(key.agent_id()?).ok()?;
        Some(Self { key, agent })
    }

    /// Its key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Its agent.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SessionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key.as_str())
    }
}

impl fmt::Debug for SessionAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.key, self.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_id_is_one_segment_and_a_safe_directory_name() {
        assert_eq!(
            AgentId::parse(" Main ").map(|id| id.0),
            Ok("main".to_owned())
        );
        for bad in [
            "", "  ", "a:b", "../x", "..", ".hidden", "a/b", "a\\b", "a b", "a\nb",
        ] {
            assert_eq!(AgentId::parse(bad), Err(AgentIdError), "{bad:?}");
        }
        assert!(AgentId::parse(&"a".repeat(128)).is_ok());
        assert!(AgentId::parse(&"a".repeat(129)).is_err());
    }

    #[test]
    fn a_qualified_key_keeps_its_agent_and_a_bare_one_takes_the_callers() {
        let caller = AgentId::parse("ops").expect("agent");
        let resolve = |text: &str| {
            SessionAddress::resolve(SessionKey::parse(text).expect("key"), &caller)
                .map(|address| address.agent.0)
        };
        assert_eq!(resolve("agent:main:x"), Ok("main".to_owned()));
        assert_eq!(resolve("global"), Ok("ops".to_owned()));
        assert_eq!(resolve("agent:../up:x"), Err(AgentIdError));
        let bare = SessionKey::parse("cron:nightly").expect("key");
        assert_eq!(SessionAddress::qualified(bare), None);
    }
}
