//! Requests and replies about API tokens: what opens the HTTP door.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrivateText;
use crate::EpochMs;

/// The longest name of a token, in characters.
pub const MAX_TOKEN_NAME_CHARS: usize = 64;

/// What a token permits. Each level permits what the one before it permits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Requests that change nothing.
    Read,
    /// What sessions do: turns, messages, watches, goals, signals.
    Write,
    /// What operators do: nodes, certificates, tokens, deleting, upkeep.
    Admin,
}

impl TokenScope {
    /// Every scope, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The scope's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// The scope of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Asks for a new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCreate {
    /// What it is called: at most 64 characters, and no other token in use has it.
    pub name: String,
    /// What it permits.
    pub scope: TokenScope,
    /// After how many milliseconds it ends; none for a token that ends when it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Names a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRef {
    /// What it is called.
    pub name: String,
}

/// A new token. It is shown here and never again: only a digest of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenCreated {
    /// What it is called.
    pub name: String,
    /// What it permits.
    pub scope: TokenScope,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<EpochMs>,
    /// The token itself, for `Authorization: Bearer`.
    pub token: PrivateText,
}

/// Tokens, those in use first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// One row each.
    pub tokens: Vec<TokenRow>,
}

/// A token, as it stands. The token itself is known to its bearer alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRow {
    /// What it is called.
    pub name: String,
    /// What it permits.
    pub scope: TokenScope,
    /// Whether it still does.
    pub state: TokenState,
    /// When it was made.
    pub created_at: EpochMs,
    /// When it ends by itself, or has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<EpochMs>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<EpochMs>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<EpochMs>,
}

/// How a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// It opens the door.
    Active,
    /// Its time is over.
    Expired,
    /// An operator ended it.
    Revoked,
}

impl TokenState {
    /// The state's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }

    /// How a token with these marks stands at `now`.
    pub fn at(expires_at: Option<EpochMs>, revoked_at: Option<EpochMs>, now: EpochMs) -> Self {
        if revoked_at.is_some() {
            Self::Revoked
        } else if expires_at.is_some_and(|end| now >= end) {
            Self::Expired
        } else {
            Self::Active
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_at_its_time_or_when_it_is_revoked() {
        for (expires_at, revoked_at, now, state) in [
            (None, None, 10, TokenState::Active),
            (Some(10), None, 9, TokenState::Active),
            (Some(10), None, 10, TokenState::Expired),
            (Some(10), Some(5), 20, TokenState::Revoked),
            (None, Some(5), 4, TokenState::Revoked),
        ] {
            assert_eq!(TokenState::at(expires_at, revoked_at, now), state);
        }
    }

    #[test]
    fn a_wider_scope_is_the_greater_and_each_has_a_name() {
        assert!(TokenScope::Read < TokenScope::Write && TokenScope::Write < TokenScope::Admin);
        for scope in TokenScope::ALL {
            assert_eq!(TokenScope::parse(scope.as_str()), Some(scope));
        }
        assert_eq!(TokenScope::parse("Admin"), None);
    }
}
