//! The members of a record that decide. The oldest files have no envelope: there the record
//! is its own payload.

use std::borrow::Cow;

use tidings_protocol::EpochMs;

use super::super::json::members;
use super::super::{Value, time};

/// The deciding members of one record; of a member given twice the last one.
#[derive(Default)]
pub(super) struct Fields<'a> {
    kind: Option<Value<'a>>,
    timestamp: Option<Value<'a>>,
    payload: Payload<'a>,
}

/// The deciding members of a payload.
#[derive(Default)]
pub(super) struct Payload<'a> {
    kind: Option<Value<'a>>,
    pub(super) id: Option<Value<'a>>,
    pub(super) timestamp: Option<Value<'a>>,
    role: Option<Value<'a>>,
    content: Option<Value<'a>>,
    pub(super) message: Option<Value<'a>>,
    message_kind: Option<Value<'a>>,
    images: Option<Value<'a>>,
    local_images: Option<Value<'a>>,
    item: Option<Value<'a>>,
    turn_id: Option<Value<'a>>,
    passthrough: Option<Value<'a>>,
    pub(super) source: Option<Value<'a>>,
    pub(super) originator: Option<Value<'a>>,
    pub(super) thread_source: Option<Value<'a>>,
    pub(super) forked_from_id: Option<Value<'a>>,
    pub(super) cli_version: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads a JSON object; `None` where it does not close.
    pub(super) fn of(record: &'a [u8]) -> Option<Self> {
        let mut fields = Self::default();
        let mut payload = None;
        members(record, |key, value| match key {
            b"type" => fields.kind = Some(value),
            b"timestamp" => fields.timestamp = Some(value),
            b"payload" => payload = Some(value),
            _ => {}
        })?;
        let own = || Value::of_record(record);
        fields.payload = Payload::of(payload.unwrap_or_else(own));
        Some(fields)
    }

    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        self.kind?.text()
    }

    pub(super) fn payload(&self) -> &Payload<'a> {
        &self.payload
    }

    pub(super) fn payload_kind(&self) -> Option<Cow<'a, str>> {
        self.payload.kind?.text()
    }

    pub(super) fn at(&self) -> Option<EpochMs> {
        time::of(self.timestamp?)
    }

    /// The id of the payload, or of the item it is about. The header's is the thread's: it
    /// survives every rewrite.
    pub(super) fn id(&self) -> Option<String> {
        if self.kind.is_some_and(|kind| kind.is("session_meta")) {
            return None;
        }
        let own = self.payload.id.and_then(Value::text);
        let id = own.or_else(|| self.payload.item?.get("id")?.text())?;
        (!id.is_empty()).then(|| id.into_owned())
    }

    pub(super) fn turn_id(&self) -> Option<Cow<'a, str>> {
        let passed_through = || self.payload.passthrough?.get("turn_id");
        self.payload.turn_id.or_else(passed_through)?.text()
    }

    /// True for an item of the model's input with the role of a user.
    pub(super) fn is_user_item(&self) -> bool {
        let is_message = match self.payload_kind().as_deref() {
            None | Some("message") => true,
            Some(_) => false,
        };
        is_message && self.payload.role.is_some_and(|role| role.is("user"))
    }

    pub(super) fn content(&self) -> Option<Value<'a>> {
        self.payload.content
    }

    /// Whether the item says that a part of its content is a user's; `None` where it does
    /// not say what it is made of.
    pub(super) fn kinds_say_user(&self) -> Option<bool> {
        let kinds = self.payload.passthrough?.get("content_item_kinds")?;
        if !kinds.is_array() {
            return None;
        }
        let mut says_user = false;
        kinds.items(|kind| {
            says_user |= kind.text().is_some_and(|kind| kind.starts_with("user."));
        });
        Some(says_user)
    }

    /// Some versions wrote their own preambles as user messages of another kind.
    pub(super) fn is_injected_event(&self) -> bool {
        let kind = self.payload.message_kind.and_then(Value::text);
        matches!(
            kind.as_deref(),
            Some("user_instructions" | "environment_context")
        )
    }

    pub(super) fn has_images(&self) -> bool {
        [self.payload.images, self.payload.local_images]
            .into_iter()
            .flatten()
            .any(|images| {
                let mut count = 0;
                images.items(|_| count += 1);
                count > 0
            })
    }

    /// True for an `item_completed` about a user's message.
    pub(super) fn completes_user_message(&self) -> bool {
        let kind = self.payload.item.and_then(|item| item.get("type"));
        kind.is_some_and(|kind| kind.is("UserMessage"))
    }

    pub(super) fn item_content(&self) -> Option<Value<'a>> {
        self.payload.item?.get("content")
    }
}

impl<'a> Payload<'a> {
    fn of(object: Value<'a>) -> Self {
        let mut payload = Self::default();
        object.members(|key, value| {
            let slot = match key {
                b"type" => &mut payload.kind,
                b"id" => &mut payload.id,
                b"timestamp" => &mut payload.timestamp,
                b"role" => &mut payload.role,
                b"content" => &mut payload.content,
                b"message" => &mut payload.message,
                b"kind" => &mut payload.message_kind,
                b"images" => &mut payload.images,
                b"local_images" => &mut payload.local_images,
                b"item" => &mut payload.item,
                b"turn_id" => &mut payload.turn_id,
                b"internal_chat_message_metadata_passthrough" => &mut payload.passthrough,
                b"source" => &mut payload.source,
                b"originator" => &mut payload.originator,
                b"thread_source" => &mut payload.thread_source,
                b"forked_from_id" => &mut payload.forked_from_id,
                b"cli_version" => &mut payload.cli_version,
                _ => return,
            };
            *slot = Some(value);
        });
        payload
    }
}
