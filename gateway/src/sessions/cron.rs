//! What a run of a cron job takes over from the one before. Pure.

use serde_json::Map;
use tidings_protocol::EpochMs;

use crate::state::Entry;

/// The entry of a new conversation of a job: what somebody chose stays, what belonged to the
/// conversation before does not. Routing, send and queue policy, elevation, origin and the
/// binding to a running program would give the new run rights that it was never given.
#[must_use]
pub fn sanitised(previous: &Entry, session_id: String, now: EpochMs) -> Entry {
    let chose = |field: &Option<String>| field.clone().filter(|_| was_chosen(previous));
    Entry {
        session_id,
        session_started_at: Some(now),
        updated_at: now,
        thinking_level: previous.thinking_level.clone(),
        verbose_level: previous.verbose_level.clone(),
        fast_mode: previous.fast_mode,
        label: previous.label.clone(),
        provider_override: chose(&previous.provider_override),
        model_override: chose(&previous.model_override),
        auth_profile_override: chose(&previous.auth_profile_override),
        ..fresh()
    }
}

/// False where the model was taken by itself, as a fallback.
fn was_chosen(entry: &Entry) -> bool {
    let source = entry.extra.get("modelOverrideSource");
    source.and_then(|source| source.as_str()) != Some("auto")
}

fn fresh() -> Entry {
    Entry {
        session_id: String::new(),
        session_started_at: None,
        last_interaction_at: None,
        updated_at: 0,
        archived_at: None,
        pinned_at: None,
        session_file: None,
        chat_type: None,
        provider: None,
        subject: None,
        room: None,
        space: None,
        display_name: None,
        thinking_level: None,
        verbose_level: None,
        reasoning_level: None,
        elevated_level: None,
        fast_mode: None,
        send_policy: None,
        provider_override: None,
        model_override: None,
        auth_profile_override: None,
        input_tokens: None,
        output_tokens: None,
        total_tokens: None,
        context_tokens: None,
        context_tokens_estimated: None,
        compaction_count: None,
        memory_flush_at: None,
        memory_flush_compaction_count: None,
        spawned_by: None,
        parent_session_key: None,
        label: None,
        goal: None,
        extra: Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: serde_json::Value) -> Entry {
        serde_json::from_value(value).expect("entry")
    }

    #[test]
    fn a_new_run_takes_over_what_was_chosen_and_nothing_of_the_conversation_before() {
        let previous = json!({
            "sessionId": "old", "updatedAt": 1, "sessionStartedAt": 1, "lastInteractionAt": 1,
            "thinkingLevel": "high", "verboseLevel": "on", "fastMode": true, "label": "nightly",
            "providerOverride": "p", "modelOverride": "m", "authProfileOverride": "a",
            "reasoningLevel": "on", "elevatedLevel": "full", "sendPolicy": "allow",
            "chatType": "group", "provider": "telegram", "subject": "s", "room": "r",
            "space": "s", "displayName": "d", "sessionFile": "old.jsonl", "pinnedAt": 1,
            "spawnedBy": "x", "parentSessionKey": "y", "goal": "g", "totalTokens": 5,
            "compactionCount": 2, "deliveryContext": {"to": "x"}, "queueMode": "steer",
            "acp": {"backend": "b"}, "origin": {}
        });
        let kept = json!({
            "sessionId": "new", "updatedAt": 9, "sessionStartedAt": 9, "thinkingLevel": "high",
            "verboseLevel": "on", "fastMode": true, "label": "nightly", "providerOverride": "p",
            "modelOverride": "m", "authProfileOverride": "a"
        });
        let new = sanitised(&entry(previous.clone()), "new".to_owned(), 9);
        assert_eq!(new, entry(kept));
        let mut fallback = previous;
        fallback["modelOverrideSource"] = json!("auto");
        let new = sanitised(&entry(fallback), "new".to_owned(), 9);
        assert_eq!(
            (new.model_override, new.label.as_deref()),
            (None, Some("nightly"))
        );
    }
}
