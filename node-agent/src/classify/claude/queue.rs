//! Prompts typed while the agent works. The records of one queued prompt are one group, of
//! which exactly one is human, whichever of them a version writes.

use tidings_protocol::digest::{ShortDigest, short};
use tidings_protocol::marker::{Carried, MAX_COUNTED_KEYS, MAX_QUEUE_ITEMS, QueueItem};

use super::super::{Left, Ruling, Value, Words};
use super::content::Content;
use super::fields::{Fields, is};
use super::rules::Standing;
use super::{Outcome, is_program};

/// From this version on a prompt that the running turn absorbed is stored as an attachment.
const FIRST_WITH_ATTACHMENTS: [u32; 3] = [2, 1, 97];

/// A `queue-operation` record.
pub(super) fn operation(
    fields: &Fields<'_>,
    standing: Result<Standing, Ruling>,
    carried: &mut Carried,
) -> Outcome {
    match fields.operation.and_then(Value::text).as_deref() {
        Some("enqueue") => enqueue(fields, standing, carried),
        Some("dequeue") => {
            take(carried, fields.queued.map(text_of));
            Ruling::not("queue-dequeued").into()
        }
        Some("popAll") => {
            take(carried, fields.queued.map(text_of));
            Ruling::not("queue-withdrawn").into()
        }
        Some("remove") => remove(fields, carried),
        _ => Ruling::unclassified("unknown-queue-operation").into(),
    }
}

/// Holds the prompt until its end comes.
fn enqueue(
    fields: &Fields<'_>,
    standing: Result<Standing, Ruling>,
    carried: &mut Carried,
) -> Outcome {
    let standing = match standing {
        Ok(_) if is_program(carried.facts.kind) => Err(Ruling::not("programmatic")),
        other => other,
    };
    let (ruling, words) = match standing {
        Ok(standing) => weigh(fields.queued, standing),
        Err(ruling) => (ruling, Words::default()),
    };
    let items = &mut carried.queue.0;
    if items.len() >= MAX_QUEUE_ITEMS {
        items.remove(0);
    }
    items.push(QueueItem {
        text: fields.queued.map_or_else(no_text, text_of),
        queued_at: fields.at().unwrap_or_default(),
        human: ruling.is_human(),
        counts: true,
    });
    if !ruling.is_human() {
        return ruling.into();
    }
    Outcome {
        left: Left::QueueItem,
        ..Outcome::new(Ruling::not("queue-held"), words)
    }
}

/// The prompt left the queue without a turn of its own: absorbed by the running turn,
/// withdrawn, or not a prompt at all.
fn remove(fields: &Fields<'_>, carried: &mut Carried) -> Outcome {
    let content = fields.queued.filter(|content| !content.is_null());
    let is_absorbed = is(fields.reason, "absorbed_mid_turn");
    let is_bare = fields.reason.is_none_or(Value::is_null);
    let predates_attachments = is_bare && predates_attachments(carried.facts.version.as_deref());
    if !is_absorbed && !predates_attachments {
        drop_removed(carried, content.map(text_of));
        return Ruling::not("queue-removed").into();
    }
    let (ruling, words) = match content {
        Some(content) => weigh(Some(content), Standing::Open),
        None => (Ruling::human("queue-absorbed"), Words::default()),
    };
    let matching = content.and_then(|content| take_absorbed(carried, text_of(content)));
    if !ruling.is_human() {
        return ruling.into();
    }
    match matching.or_else(|| take_oldest_human(carried)) {
        Some(item) if item.human => {
            let ruling = count(carried, key(item.queued_at, item.text), ruling.rule);
            Outcome {
                counts: item.counts,
                ..Outcome::new(ruling, words)
            }
        }
        Some(_) => Ruling::not("queue-removed").into(),
        None => match content {
            Some(content) => Outcome::new(remove_unseen(carried, text_of(content), ruling), words),
            None => Ruling::not("queue-removed").into(),
        },
    }
}

/// An absorbed prompt whose `enqueue` is not known: its attachment, before or after it, can
/// be told by the text alone.
fn remove_unseen(carried: &mut Carried, text: ShortDigest, ruling: Ruling) -> Ruling {
    if forget(carried, unseen_key(Unseen::Attachment, text)) {
        return Ruling::not("queue-twin");
    }
    count(carried, unseen_key(Unseen::Remove, text), ruling.rule)
}

/// A `queued_command`: an absorbed prompt, or something else that was queued.
pub(super) fn attachment(
    fields: &Fields<'_>,
    standing: Standing,
    carried: &mut Carried,
) -> Outcome {
    let attachment = &fields.attachment;
    match attachment.command_mode.and_then(Value::text).as_deref() {
        None | Some("prompt" | "bash") => {}
        Some("task-notification") => return Ruling::not("task-notification").into(),
        Some(_) if standing == Standing::OriginHuman => {}
        Some(_) => return Ruling::unclassified("unknown-command-mode").into(),
    }
    let (ruling, words) = weigh(attachment.prompt, standing);
    if !ruling.is_human() {
        return ruling.into();
    }
    let text = attachment.prompt.map_or_else(no_text, text_of);
    let at = fields.at().unwrap_or_default();
    let held = carried
        .queue
        .0
        .iter()
        .find(|item| item.text == text && item.queued_at == at)
        .copied();
    let own_key = key(at, text);
    let is_twin = held.is_none()
        && !carried.counted.contains(own_key)
        && forget(carried, unseen_key(Unseen::Remove, text));
    if is_twin {
        return Ruling::not("queue-twin").into();
    }
    let ruling = count(carried, own_key, ruling.rule);
    if held.is_none() && ruling.is_human() {
        remember(carried, unseen_key(Unseen::Attachment, text));
    }
    Outcome {
        counts: held.is_none_or(|item| item.counts),
        ..Outcome::new(ruling, words)
    }
}

/// What a queued text is by itself.
fn weigh(queued: Option<Value<'_>>, standing: Standing) -> (Ruling, Words) {
    let content = Content::of(queued, standing);
    let ruling = content.ruling(standing);
    if !ruling.is_human() {
        return (ruling, Words::default());
    }
    let words = content.words();
    if is_command(words.as_str()) {
        return (Ruling::not("builtin-command"), Words::default());
    }
    let is_bash = ruling.rule == "bash-mode" || words.as_str().starts_with('!');
    let rule = if is_bash {
        "bash-mode"
    } else {
        "queue-absorbed"
    };
    (Ruling::human(rule), words)
}

/// `^/[A-Za-z][\w:-]*(\s|$)`, of a normalised text.
fn is_command(text: &str) -> bool {
    let Some(name) = text.strip_prefix('/') else {
        return false;
    };
    let name = name.split(' ').next().unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'))
}

/// Counts a prompt once.
fn count(carried: &mut Carried, key: ShortDigest, rule: &'static str) -> Ruling {
    if carried.counted.contains(key) {
        return Ruling::not("queue-twin");
    }
    remember(carried, key);
    Ruling::human(rule)
}

fn remember(carried: &mut Carried, key: ShortDigest) {
    carried.counted.remember(key, MAX_COUNTED_KEYS);
}

/// Forgets a key; false when it was not there.
fn forget(carried: &mut Carried, key: ShortDigest) -> bool {
    let is_known = carried.counted.contains(key);
    if is_known {
        carried.counted = carried.counted.iter().filter(|own| *own != key).collect();
    }
    is_known
}

/// Takes the item of that text, else the oldest human one, else the oldest.
fn take(carried: &mut Carried, text: Option<ShortDigest>) -> Option<QueueItem> {
    text.and_then(|text| take_text(carried, text))
        .or_else(|| take_oldest_human(carried))
}

fn take_text(carried: &mut Carried, text: ShortDigest) -> Option<QueueItem> {
    let items = &mut carried.queue.0;
    let at = items.iter().position(|item| item.text == text)?;
    Some(items.remove(at))
}

/// Takes the item of that text whose attachment has not been counted, else one whose has.
fn take_absorbed(carried: &mut Carried, text: ShortDigest) -> Option<QueueItem> {
    let counted = &carried.counted;
    let items = &mut carried.queue.0;
    let is_open =
        |item: &QueueItem| item.text == text && !counted.contains(key(item.queued_at, item.text));
    match items.iter().position(is_open) {
        Some(at) => Some(items.remove(at)),
        None => take_text(carried, text),
    }
}

/// The oldest human item; where there is none, the oldest.
fn take_oldest_human(carried: &mut Carried) -> Option<QueueItem> {
    let items = &mut carried.queue.0;
    if items.is_empty() {
        return None;
    }
    let at = items.iter().position(|item| item.human).unwrap_or(0);
    Some(items.remove(at))
}

/// A removal that counts nothing takes what an attachment has counted already first.
fn drop_removed(carried: &mut Carried, text: Option<ShortDigest>) {
    if text.is_some_and(|text| take_text(carried, text).is_some()) {
        return;
    }
    let counted = &carried.counted;
    let items = &mut carried.queue.0;
    let is_counted = |item: &QueueItem| counted.contains(key(item.queued_at, item.text));
    if let Some(at) = items.iter().position(is_counted) {
        items.remove(at);
    } else {
        take_oldest_human(carried);
    }
}

/// The key of a queued prompt: when it was queued, and its text.
fn key(queued_at: i64, text: ShortDigest) -> ShortDigest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&queued_at.to_be_bytes());
    bytes[8..].copy_from_slice(&text);
    short(&bytes)
}

/// Which record of a prompt came without its `enqueue` being known.
#[derive(Clone, Copy)]
enum Unseen {
    Remove = 1,
    Attachment = 2,
}

fn unseen_key(which: Unseen, text: ShortDigest) -> ShortDigest {
    let mut bytes = [0; 9];
    bytes[0] = which as u8;
    bytes[1..].copy_from_slice(&text);
    short(&bytes)
}

/// The digest of everything that was queued, the program's own words included.
fn text_of(queued: Value<'_>) -> ShortDigest {
    let mut texts = Vec::new();
    texts.extend(queued.text());
    queued.items(|block| texts.extend(block.get("text").and_then(Value::text)));
    Words::of(&texts).short_digest()
}

fn no_text() -> ShortDigest {
    Words::default().short_digest()
}

fn predates_attachments(version: Option<&str>) -> bool {
    let Some(version) = version else {
        return false;
    };
    let mut parts = version.split(['.', '-', '+']).map(str::parse::<u32>);
    let mut next = || parts.next().and_then(Result::ok);
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) => [major, minor, patch] < FIRST_WITH_ATTACHMENTS,
        _ => false,
    }
}
