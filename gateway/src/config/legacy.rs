//! Keys that older versions knew.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::layers::{Origin, leaves};

/// The keys that are accepted and no longer written; `doctor --fix` removes them.
pub const LEGACY_KEYS: [&str; 4] = [
    "cron.runLog.maxBytes",
    IDLE_MINUTES,
    "session.maintenance.rotateBytes",
    "session.parentForkMaxTokens",
];

const IDLE_MINUTES: &str = "session.idleMinutes";

/// Gives `session.idleMinutes` its old effect, where nobody uses its newer name: alone it
/// means silence only, and beside `session.reset` it says the minutes.
pub(super) fn give_effect(values: &mut BTreeMap<String, (Value, Origin)>) {
    let Some((minutes, origin)) = values.get(IDLE_MINUTES).cloned() else {
        return;
    };
    let is_newer = |key: &str| {
        [
            "session.reset.",
            "session.resetByType.",
            "session.resetByChannel.",
        ]
        .iter()
        .any(|section| key.starts_with(section))
    };
    let is_alone = !values
        .iter()
        .any(|(key, (_, origin))| is_newer(key) && *origin != Origin::Default);
    if is_alone {
        let mode = Value::String("idle".to_owned());
        values.insert("session.reset.mode".to_owned(), (mode, origin.clone()));
    }
    let newer = values.get("session.reset.idleMinutes");
    if newer.is_none_or(|(_, origin)| *origin == Origin::Default) {
        values.insert("session.reset.idleMinutes".to_owned(), (minutes, origin));
    }
}

/// The legacy keys that a file sets; none where it is no TOML.
#[must_use]
pub fn legacy_keys(text: &str) -> Vec<&'static str> {
    let table = toml::from_str::<Table>(text).unwrap_or_default();
    let set = leaves("", table);
    let is_set = |key: &&str| set.iter().any(|(name, _)| name == key);
    LEGACY_KEYS.into_iter().filter(is_set).collect()
}

/// The file without its legacy keys, everything else as it was written. What
/// `session.idleMinutes` did is said in today's words. The caller checks that it still means
/// the same.
#[must_use]
pub fn without_legacy(text: &str) -> String {
    let is_alone = !text_sets_reset(text);
    let mut section = String::new();
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if let Some(header) = header(bare) {
            header.clone_into(&mut section);
        }
        let set = bare
            .split_once('=')
            .map(|(name, value)| (full_name(&section, name), value));
        match set {
            Some((key, value)) if key == IDLE_MINUTES => {
                kept.push_str(&in_words_of_today(bare, value.trim(), is_alone));
            }
            Some((key, _)) if LEGACY_KEYS.contains(&key.as_str()) => {}
            _ => kept.push_str(line),
        }
    }
    kept
}

/// The name of a table's header line.
fn header(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.split_once(']')?.0;
    (!name.starts_with('[')).then_some(name.trim())
}

fn full_name(section: &str, name: &str) -> String {
    let parts = section.split('.').chain(name.split('.'));
    let parts = parts
        .map(|part| part.trim().trim_matches('"'))
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(".")
}

fn text_sets_reset(text: &str) -> bool {
    let table = toml::from_str::<Table>(text).unwrap_or_default();
    let session = table.get("session").and_then(Value::as_table);
    let sections = ["reset", "resetByType", "resetByChannel"];
    session.is_some_and(|session| sections.iter().any(|name| session.contains_key(*name)))
}

/// The line that sets `session.idleMinutes`, said in today's words: beside it, in the same
/// table.
fn in_words_of_today(line: &str, minutes: &str, is_alone: bool) -> String {
    let before = line.split("idleMinutes").next().unwrap_or_default();
    let idle = format!("{before}reset.idleMinutes = {minutes}\n");
    if is_alone {
        format!("{before}reset.mode = \"idle\"\n{idle}")
    } else {
        idle
    }
}
