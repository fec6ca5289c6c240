//! Where agent programs plug in: their hooks, and what they know of themselves.

pub mod binding;
pub mod hook;
pub mod integrate;
pub mod mcp;
mod process;

use tidings_protocol::Catalog;

/// An agent program whose hooks and configuration are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Its name after `hook`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// The program of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|program| program.as_str() == name)
    }

    /// The family of its transcripts.
    pub fn catalog(self) -> Catalog {
        match self {
            Self::ClaudeCode => Catalog::Claude,
            Self::Codex => Catalog::Codex,
        }
    }
}
