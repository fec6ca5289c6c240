//! Keys that older versions knew.

use std::collections::BTreeMap;

use toml::Value;

use super::layers::Origin;

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
