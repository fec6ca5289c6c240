//! Which members of a record decide.

/// Every member that some classifier looks at.
const MEMBERS: &[&str] = &[
    "type",
    "uuid",
    "timestamp",
    "version",
    "entrypoint",
    "message",
    "forkedFrom",
    "isSidechain",
    "agentId",
    "teamName",
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "turnCompanion",
    "planContent",
    "verifiedSlackHumanTurn",
    "origin",
    "turnOrigin",
    "promptSource",
    "toolUseResult",
    "sourceToolUseID",
    "operation",
    "reason",
    "content",
    "attachment",
    "prompt",
    "commandMode",
    "payload",
    "id",
    "role",
    "kind",
    "images",
    "local_images",
    "item",
    "turn_id",
    "internal_chat_message_metadata_passthrough",
    "source",
    "originator",
    "thread_source",
    "forked_from_id",
    "cli_version",
    "parentSession",
    "branchedFrom",
    "provenance",
    "instructions",
    "sessionId",
    "parentUuid",
];

/// Members whose text is a prompt.
const TEXTS: &[&str] = &["content", "prompt", "message", "text"];

/// How deep a small container is kept.
const MAX_SMALL_DEPTH: usize = 8;

/// Whose room a kept value takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Text,
    Name,
}

/// Where a kept container stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The record, its message, attachment, payload or item.
    Record,
    /// The blocks of a prompt.
    Blocks,
    /// One of them.
    Block,
    /// Something small that is kept whole.
    Small,
}

impl Place {
    /// Whose room its brackets and keys take. Blocks have none of the room that the
    /// members behind them need.
    pub(super) fn class(self) -> Class {
        match self {
            Self::Blocks | Self::Block => Class::Text,
            Self::Record | Self::Small => Class::Name,
        }
    }
}

/// What to keep of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Nothing, not even that it is there.
    Nothing,
    /// That it is there.
    Presence,
    /// The container, and of its members what its place says.
    Inside(Place),
    /// The text, number or literal.
    Scalar(Class),
}

impl Keep {
    pub(super) fn class(self) -> Option<Class> {
        match self {
            Self::Scalar(class) => Some(class),
            _ => None,
        }
    }
}

/// What to keep of the value that begins with `first` under `key`.
pub(super) fn decide(place: Place, key: &str, first: u8, depth: usize) -> Keep {
    let is_container = matches!(first, b'{' | b'[');
    match place {
        Place::Record if !MEMBERS.contains(&key) => Keep::Nothing,
        Place::Record if is_container => record_member(key, first),
        Place::Record if TEXTS.contains(&key) => Keep::Scalar(Class::Text),
        Place::Record => Keep::Scalar(Class::Name),
        Place::Blocks if first == b'{' => Keep::Inside(Place::Block),
        Place::Blocks if is_container => Keep::Presence,
        Place::Blocks => Keep::Scalar(Class::Text),
        Place::Block if !is_container && matches!(key, "type" | "text") => {
            Keep::Scalar(Class::Text)
        }
        Place::Block => Keep::Nothing,
        Place::Small if !is_container => Keep::Scalar(Class::Name),
        Place::Small if depth < MAX_SMALL_DEPTH => Keep::Inside(Place::Small),
        Place::Small => Keep::Presence,
    }
}

fn record_member(key: &str, first: u8) -> Keep {
    match (key, first) {
        ("message" | "attachment" | "payload" | "item", b'{') => Keep::Inside(Place::Record),
        ("content" | "prompt", b'[') => Keep::Inside(Place::Blocks),
        (
            "origin" | "provenance" | "source" | "internal_chat_message_metadata_passthrough",
            b'{',
        ) => Keep::Inside(Place::Small),
        _ => Keep::Presence,
    }
}
