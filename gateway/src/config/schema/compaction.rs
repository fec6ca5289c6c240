//! When older conversation is summarised, how, and what happens before.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::models::{Flaw, is_address};
use crate::config::values::{Age, Size, Switch};

/// What the turn before a compaction is told, where nobody says otherwise.
const FLUSH_PROMPT: &str = "This conversation is about to be compacted. Write what must outlast \
    it into your durable notes now (memory/YYYY-MM-DD.md in your workspace): decisions, open \
    tasks, names and identifiers. If there is nothing to write, or once it is written, reply \
    with exactly NO_REPLY.";
const FLUSH_SYSTEM_PROMPT: &str = "This is a silent turn for housekeeping before a compaction. \
    Nobody reads its output. Use memory_append to write notes, then reply with exactly NO_REPLY.";
/// More names of sections are a mistake.
const MAX_SECTIONS: usize = 32;

/// `[agents.defaults.compaction]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Compaction {
    /// Whether it happens by itself; somebody may always ask for it.
    pub enabled: bool,
    /// What is kept beside a summary.
    pub mode: CompactionMode,
    /// Tokens of the window that are left free for prompts and the next output.
    pub reserve_tokens: u64,
    /// Tokens of the newest conversation that are kept as they are.
    pub keep_recent_tokens: KeepRecent,
    /// A reserve below this is raised to it; 0: none is.
    pub reserve_tokens_floor: u64,
    /// Whether a compacted conversation goes on in a transcript of its own.
    pub truncate_after_compaction: bool,
    /// From what size on a transcript is compacted before a turn; only with
    /// `truncateAfterCompaction`.
    pub max_active_transcript_bytes: Switch<Size>,
    /// The check after the results of tools, within a turn.
    pub mid_turn_precheck: MidTurnPrecheck,
    /// The sections of AGENTS.md that stand in the prompt again after a compaction.
    pub post_compaction_sections: Vec<String>,
    /// Who summarises: one of `providers`; absent: the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Others than the model that can summarise, by id.
    pub providers: BTreeMap<String, ProviderSection>,
    /// Whether summaries are looked at before they are taken.
    pub quality_guard: QualityGuard,
    /// A command that is run before each compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_command: Option<String>,
    /// The silent turn in which an agent writes durable notes first.
    pub memory_flush: MemoryFlush,
}

/// What is kept beside a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionMode {
    /// The newest conversation.
    #[default]
    Default,
    /// That, and behind the summary the last turns before it in their own words; summaries
    /// are looked at before they are taken.
    Safeguard,
}

/// How many tokens of the newest conversation are kept. Somebody who asks for a compaction
/// keeps none of it, unless the number was configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepRecent {
    /// 20 000, because nobody said otherwise.
    #[default]
    Usual,
    /// This many, because somebody said so.
    Explicit(u64),
}

/// The check after the results of tools, within a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MidTurnPrecheck {
    /// Whether it is made.
    pub enabled: bool,
}

/// Whether summaries are looked at before they are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct QualityGuard {
    /// Whether they are, in safeguard mode.
    pub enabled: bool,
}

/// Somebody else than the model who can summarise: a command, or an HTTP endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ProviderSection {
    /// A command that gets the conversation as JSON and prints the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An endpoint that gets the same and answers with the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long it may take; absent: five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Age>,
}

/// Who a provider is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKind {
    /// A command, for the shell.
    Command(String),
    /// An HTTP endpoint.
    Http(String),
}

/// `[agents.defaults.compaction.memoryFlush]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MemoryFlush {
    /// Whether it happens.
    pub enabled: bool,
    /// How many tokens before the threshold of a compaction.
    pub soft_threshold_tokens: u64,
    /// The name of the model for it, and of no other; absent: the session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent is asked; a built-in text, too long to list, where nobody says otherwise.
    #[serde(skip_serializing_if = "is_built_in")]
    pub prompt: String,
    /// What is said beside its usual instructions; built in too.
    #[serde(skip_serializing_if = "is_built_in")]
    pub system_prompt: String,
}

impl KeepRecent {
    /// What is kept where nobody says otherwise.
    pub const USUAL_TOKENS: u64 = 20_000;

    /// The number.
    #[must_use]
    pub fn tokens(self) -> u64 {
        match self {
            Self::Usual => Self::USUAL_TOKENS,
            Self::Explicit(tokens) => tokens,
        }
    }

    /// The number, where somebody said it.
    #[must_use]
    pub fn explicit(self) -> Option<u64> {
        match self {
            Self::Usual => None,
            Self::Explicit(tokens) => Some(tokens),
        }
    }
}

impl ProviderSection {
    const TIMEOUT: Duration = Duration::from_mins(5);

    /// Who it is, or what is wrong.
    pub(in crate::config) fn resolve(&self) -> Result<ProviderKind, Flaw> {
        let command = self.command.as_deref().map(str::trim);
        let url = self.url.as_deref().map(str::trim);
        match (command, url) {
            (Some(command), None) if !command.is_empty() && !command.contains('\0') => {
                Ok(ProviderKind::Command(command.to_owned()))
            }
            (None, Some(url)) if is_address(url) => Ok(ProviderKind::Http(url.to_owned())),
            (Some(_), None) => Err(("command", "it is a command for the shell")),
            (None, Some(_)) => Err((
                "url",
                "it is http:// or https:// with a host, and without user",
            )),
            (Some(_), Some(_)) => Err(("url", "a provider has a command or a url, not both")),
            (None, None) => Err(("command", "a provider has a command or a url")),
        }
    }

    /// Who it is; `None` for a section that says nothing, which a loaded configuration has not.
    #[must_use]
    pub fn kind(&self) -> Option<ProviderKind> {
        self.resolve().ok()
    }

    /// How long it may take.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        let given = self.timeout.map(|age| age.0);
        given
            .filter(|limit| !limit.is_zero())
            .unwrap_or(Self::TIMEOUT)
    }
}

impl Compaction {
    /// The mode that holds: a named provider forces safeguard.
    #[must_use]
    pub fn effective_mode(&self) -> CompactionMode {
        match self.provider {
            Some(_) => CompactionMode::Safeguard,
            None => self.mode,
        }
    }

    /// The first key that cannot be meant, behind `agents.defaults.compaction.`.
    pub(in crate::config) fn flaw(&self) -> Option<(String, String)> {
        let flaws = self.providers.iter().filter_map(|(id, section)| {
            let (key, message) = section.resolve().err()?;
            Some((format!("providers.{id}.{key}"), message.to_owned()))
        });
        let unknown = self.provider.as_ref().and_then(|id| {
            let is_unknown = !self.providers.contains_key(id);
            is_unknown.then(|| {
                let message = format!("there is no [agents.defaults.compaction.providers.{id}]");
                ("provider".to_owned(), message)
            })
        });
        let sections = (self.post_compaction_sections.len() > MAX_SECTIONS).then(|| {
            let message = format!("at most {MAX_SECTIONS} sections");
            ("postCompactionSections".to_owned(), message)
        });
        let prompts = [
            ("memoryFlush.prompt", &self.memory_flush.prompt),
            ("memoryFlush.systemPrompt", &self.memory_flush.system_prompt),
        ];
        let blank = prompts.iter().find(|(_, text)| text.trim().is_empty());
        let blank = blank.map(|(key, _)| ((*key).to_owned(), "it says nothing".to_owned()));
        flaws.chain(unknown).chain(sections).chain(blank).next()
    }
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: CompactionMode::default(),
            reserve_tokens: 16_384,
            keep_recent_tokens: KeepRecent::default(),
            reserve_tokens_floor: 20_000,
            truncate_after_compaction: false,
            max_active_transcript_bytes: Switch::Off,
            mid_turn_precheck: MidTurnPrecheck::default(),
            post_compaction_sections: Vec::new(),
            provider: None,
            providers: BTreeMap::new(),
            quality_guard: QualityGuard::default(),
            before_command: None,
            memory_flush: MemoryFlush::default(),
        }
    }
}

impl Default for QualityGuard {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for MemoryFlush {
    fn default() -> Self {
        Self {
            enabled: true,
            soft_threshold_tokens: 4_000,
            model: None,
            prompt: FLUSH_PROMPT.to_owned(),
            system_prompt: FLUSH_SYSTEM_PROMPT.to_owned(),
        }
    }
}

/// True for a text that nobody configured.
fn is_built_in(text: &str) -> bool {
    text == FLUSH_PROMPT || text == FLUSH_SYSTEM_PROMPT
}

impl Serialize for KeepRecent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.tokens())
    }
}

impl<'de> Deserialize<'de> for KeepRecent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::Explicit)
    }
}
