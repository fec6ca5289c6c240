//! Session keys: where a conversation lives for routing.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest session key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// A session key in its canonical spelling.
///
/// Agent-qualified keys are `agent:<agentId>:<rest>`; `global`, `cron:<job>` and
/// `hook:<uuid>` are bare. Keys are trimmed and lower-cased, except for what follows
/// the chat kind of a Signal or Matrix key: those peer ids are case-sensitive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct SessionKey(String);

/// Why a text is not a session key. The text itself is not repeated: it may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Nothing but white space.
    #[error("a session key must not be empty")]
    Empty,
    /// Longer than [`MAX_KEY_BYTES`].
    #[error("a session key has at most {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// White space, a control character or a quote: a key stands inside a prompt line.
    #[error("a session key has no white space, control characters or quotes")]
    Character,
    /// `agent:` with a missing agent id or rest.
    #[error("an agent-qualified key is agent:<agentId>:<rest>, both parts non-empty")]
    AgentForm,
}

impl SessionKey {
    /// Reads a key in any spelling and brings it into the canonical one.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(KeyError::Empty);
        }
        // Checked before lower-casing too: that can lengthen a text, never shorten it much.
        if trimmed.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        let forbidden = |c: char| {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '"' | '\'' | '`' | '\u{2018}'..='\u{201f}')
        };
        if trimmed.chars().any(forbidden) {
            return Err(KeyError::Character);
        }
        let key = canonical_case(trimmed);
        if key.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        if let Some(rest) = key.strip_prefix("agent:") {
            match rest.split_once(':') {
                Some((agent, rest)) if !agent.is_empty() && !rest.is_empty() => {}
                _ => return Err(KeyError::AgentForm),
            }
        }
        Ok(Self(key))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The agent of an agent-qualified key; `None` for a bare one.
    pub fn agent_id(&self) -> Option<&str> {
        self.parts().map(|(agent, _)| agent)
    }

    /// True for `agent:<agentId>:<rest>`.
    pub fn is_agent_qualified(&self) -> bool {
        self.parts().is_some()
    }

    /// True for the session of a sub-agent: such a watcher waits for its next turn and
    /// is never woken.
    pub fn is_nested(&self) -> bool {
        self.parts()
            .is_some_and(|(_, rest)| rest.starts_with("subagent:") || rest.contains(":subagent:"))
    }

    fn parts(&self) -> Option<(&str, &str)> {
        self.0.strip_prefix("agent:")?.split_once(':')
    }
}

/// Lower case, but for the peer of a Signal or Matrix conversation.
fn canonical_case(text: &str) -> String {
    const CHAT_KINDS: [&str; 4] = ["direct", "group", "channel", "room"];
    let segments: Vec<&str> = text.split(':').collect();
    let is = |at: usize, word: &str| {
        segments
            .get(at)
            .is_some_and(|segment| segment.eq_ignore_ascii_case(word))
    };
    let keeps_case = is(0, "agent") && (is(2, "signal") || is(2, "matrix"));
    // `<channel>:<kind>:<peer>` or `<channel>:<account>:<kind>:<peer>`.
    let kind_at = (3..=4).find(|&at| CHAT_KINDS.iter().any(|kind| is(at, kind)));
    match kind_at {
        Some(at) if keeps_case => {
            let head: usize = segments[..=at].iter().map(|s| s.len() + 1).sum();
            let (head, peer) = text.split_at(head.min(text.len()));
            format!("{}{peer}", head.to_lowercase())
        }
        _ => text.to_lowercase(),
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for SessionKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl From<SessionKey> for String {
    fn from(key: SessionKey) -> Self {
        key.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_brought_into_one_spelling() {
        for (given, canonical) in [
            (" agent:Main:Main ", "agent:main:main"),
            ("GLOBAL", "global"),
            ("cron:Nightly", "cron:nightly"),
            (
                "agent:a:telegram:direct:PeerX",
                "agent:a:telegram:direct:peerx",
            ),
            ("Agent:A:Signal:Direct:PeerX", "agent:a:signal:direct:PeerX"),
            (
                "agent:a:matrix:Work:room:!AbC:Server.org",
                "agent:a:matrix:work:room:!AbC:Server.org",
            ),
            (
                "agent:a:signal:Group:XyZ:thread:9",
                "agent:a:signal:group:XyZ:thread:9",
            ),
            ("agent:a:signal", "agent:a:signal"),
        ] {
            let key = SessionKey::parse(given).expect(given);
            assert_eq!(key.as_str(), canonical);
            assert_eq!(SessionKey::parse(canonical), Ok(key), "stable");
        }
    }

    #[test]
    fn what_cannot_stand_in_a_prompt_line_is_no_key() {
        for (given, error) in [
            ("", KeyError::Empty),
            (" \t", KeyError::Empty),
            ("agent:", KeyError::AgentForm),
            ("agent:a", KeyError::AgentForm),
            ("agent::x", KeyError::AgentForm),
            ("agent:a:", KeyError::AgentForm),
            ("agent:a:b c", KeyError::Character),
            ("agent:a:b\nc", KeyError::Character),
            ("agent:a:\"b", KeyError::Character),
            ("agent:a:\u{201c}b", KeyError::Character),
            ("agent:a:\u{7}", KeyError::Character),
        ] {
            assert_eq!(SessionKey::parse(given), Err(error), "{given:?}");
        }
        assert_eq!(SessionKey::parse(&"k".repeat(513)), Err(KeyError::TooLong));
        assert!(SessionKey::parse(&"k".repeat(512)).is_ok());
    }

    #[test]
    fn agent_and_nesting_are_read_from_the_key() {
        let key = |text| SessionKey::parse(text).expect("key");
        assert_eq!(key("agent:ops:main").agent_id(), Some("ops"));
        assert_eq!(key("global").agent_id(), None);
        assert!(key("agent:ops:subagent:1").is_nested());
        assert!(key("agent:ops:x:subagent:1").is_nested());
        assert!(!key("agent:subagent:main").is_nested());
        assert!(!key("hook:subagent:1").is_nested());
    }
}
