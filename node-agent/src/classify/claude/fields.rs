//! The members of a record that decide, found in one pass.

use std::borrow::Cow;

use tidings_protocol::EpochMs;
use tidings_protocol::marker::ThreadFacts;

use super::super::json::members;
use super::super::{Traces, Value, short_version, time};

/// The deciding members of one record; of a member given twice the last one.
#[derive(Default)]
pub(super) struct Fields<'a> {
    kind: Option<Value<'a>>,
    uuid: Option<Value<'a>>,
    timestamp: Option<Value<'a>>,
    version: Option<Value<'a>>,
    entrypoint: Option<Value<'a>>,
    message: Option<Value<'a>>,
    pub(super) forked_from: Option<Value<'a>>,
    pub(super) is_sidechain: Option<Value<'a>>,
    pub(super) agent_id: Option<Value<'a>>,
    pub(super) team_name: Option<Value<'a>>,
    pub(super) is_meta: Option<Value<'a>>,
    pub(super) is_compact_summary: Option<Value<'a>>,
    pub(super) is_transcript_only: Option<Value<'a>>,
    pub(super) turn_companion: Option<Value<'a>>,
    pub(super) plan_content: Option<Value<'a>>,
    pub(super) slack_human_turn: Option<Value<'a>>,
    pub(super) origin: Option<Value<'a>>,
    pub(super) turn_origin: Option<Value<'a>>,
    pub(super) prompt_source: Option<Value<'a>>,
    pub(super) tool_use_result: Option<Value<'a>>,
    pub(super) source_tool_use_id: Option<Value<'a>>,
    pub(super) operation: Option<Value<'a>>,
    pub(super) reason: Option<Value<'a>>,
    pub(super) queued: Option<Value<'a>>,
    pub(super) attachment: Attachment<'a>,
}

/// The deciding members of an attachment.
#[derive(Default)]
pub(super) struct Attachment<'a> {
    kind: Option<Value<'a>>,
    pub(super) prompt: Option<Value<'a>>,
    pub(super) command_mode: Option<Value<'a>>,
    pub(super) origin: Option<Value<'a>>,
    pub(super) is_meta: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads a JSON object; `None` where it does not close.
    pub(super) fn of(record: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        members(record, |key, value| fields.set(key, value))?;
        Some(fields)
    }

    fn set(&mut self, key: &[u8], value: Value<'a>) {
        let slot = match key {
            b"type" => &mut self.kind,
            b"uuid" => &mut self.uuid,
            b"timestamp" => &mut self.timestamp,
            b"version" => &mut self.version,
            b"entrypoint" => &mut self.entrypoint,
            b"message" => &mut self.message,
            b"forkedFrom" => &mut self.forked_from,
            b"isSidechain" => &mut self.is_sidechain,
            b"agentId" => &mut self.agent_id,
            b"teamName" => &mut self.team_name,
            b"isMeta" => &mut self.is_meta,
            b"isCompactSummary" => &mut self.is_compact_summary,
            b"isVisibleInTranscriptOnly" => &mut self.is_transcript_only,
            b"turnCompanion" => &mut self.turn_companion,
            b"planContent" => &mut self.plan_content,
            b"verifiedSlackHumanTurn" => &mut self.slack_human_turn,
            b"origin" => &mut self.origin,
            b"turnOrigin" => &mut self.turn_origin,
            b"promptSource" => &mut self.prompt_source,
            b"toolUseResult" => &mut self.tool_use_result,
            b"sourceToolUseID" => &mut self.source_tool_use_id,
            b"operation" => &mut self.operation,
            b"reason" => &mut self.reason,
            b"content" => &mut self.queued,
            b"attachment" => {
                self.attachment = Attachment::of(value);
                return;
            }
            _ => return,
        };
        *slot = Some(value);
    }

    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        self.kind?.text()
    }

    pub(super) fn is_queued_command(&self) -> bool {
        is(self.attachment.kind, "queued_command")
    }

    /// The content of the message.
    pub(super) fn content(&self) -> Option<Value<'a>> {
        self.message?.get("content")
    }

    pub(super) fn id(&self) -> Option<String> {
        let id = self.uuid?.text()?;
        (!id.is_empty()).then(|| id.into_owned())
    }

    pub(super) fn at(&self) -> Option<EpochMs> {
        time::of(self.timestamp?)
    }

    pub(super) fn entrypoint(&self) -> Option<Cow<'a, str>> {
        self.entrypoint?.text()
    }

    /// Keeps what the record says about its thread: the version, and the entry point that
    /// stands beside it.
    pub(super) fn note(&self, facts: &mut ThreadFacts) {
        let Some(version) = self.version.and_then(Value::text) else {
            return;
        };
        if facts.version.as_deref() != Some(&*version) {
            facts.version = Some(short_version(&version));
        }
        facts.kind = super::thread_kind(self.entrypoint().as_deref());
    }

    pub(super) fn names_version(&self) -> bool {
        self.version.is_some_and(Value::is_string)
    }

    pub(super) fn traces(&self) -> Traces {
        Traces {
            id: self.id(),
            at: self.at(),
            version: self.version.and_then(Value::text).map(Cow::into_owned),
            entrypoint: self.entrypoint().map(Cow::into_owned),
        }
    }
}

impl<'a> Attachment<'a> {
    fn of(value: Value<'a>) -> Self {
        let mut attachment = Self::default();
        value.members(|key, value| {
            let slot = match key {
                b"type" => &mut attachment.kind,
                b"prompt" => &mut attachment.prompt,
                b"commandMode" => &mut attachment.command_mode,
                b"origin" => &mut attachment.origin,
                b"isMeta" => &mut attachment.is_meta,
                _ => return,
            };
            *slot = Some(value);
        });
        attachment
    }
}

/// True for a member that says exactly `text`.
pub(super) fn is(member: Option<Value<'_>>, text: &str) -> bool {
    member.is_some_and(|value| value.is(text))
}

/// True for a flag that is set.
pub(super) fn is_set(flag: Option<Value<'_>>) -> bool {
    flag.is_some_and(Value::is_true)
}

/// True for a member that is there and not `null`.
pub(super) fn is_present(member: Option<Value<'_>>) -> bool {
    member.is_some_and(|value| !value.is_null())
}
