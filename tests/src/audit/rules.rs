//! What must hold in a state database at every moment, as queries over the tables and views
//! that the specification promises to operators. Each finds what breaks its rule.

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What is wrong where the query finds something.
    pub wrong: &'static str,
    /// Finds one text per offence.
    pub(super) query: &'static str,
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        wrong: "a signal without its head raised",
        query: "SELECT event.sequence FROM session_state_events AS event
                LEFT JOIN session_state_heads AS head USING (session_key, agent_id)
                WHERE head.last_sequence IS NULL OR head.last_sequence < event.sequence",
    },
    Rule {
        wrong: "a head without its signal",
        query: "SELECT head.session_key FROM session_state_heads AS head
                LEFT JOIN session_state_events AS event ON event.sequence = head.last_sequence
                WHERE head.last_sequence > head.pruned_sequence
                  AND (event.sequence IS NULL OR event.session_key <> head.session_key
                       OR event.agent_id <> head.agent_id)",
    },
    Rule {
        wrong: "a signal that was pruned and is there",
        query: "SELECT event.sequence FROM session_state_events AS event
                JOIN session_state_heads AS head USING (session_key, agent_id)
                WHERE event.sequence <= head.pruned_sequence",
    },
    Rule {
        wrong: "a dedupe key twice in one session",
        query: "SELECT dedupe_key FROM session_state_events WHERE dedupe_key IS NOT NULL
                GROUP BY session_key, agent_id, dedupe_key HAVING count(*) > 1",
    },
    Rule {
        wrong: "an actor where there is none, or none where there is one",
        query: "SELECT sequence FROM session_state_events
                WHERE (actor_type = 'agent') <> (actor_id IS NOT NULL)
                   OR actor_type NOT IN ('human', 'agent', 'system')",
    },
    Rule {
        wrong: "a signal that happened after it was recorded, or more than a day before",
        query: "SELECT sequence FROM session_state_events
                WHERE occurred_at > recorded_at OR occurred_at < recorded_at - 86400000",
    },
    Rule {
        wrong: "a cursor out of order, or beyond its target's head",
        query: "SELECT watcher_session_key FROM session_watch_cursors AS cursor
                LEFT JOIN session_state_heads AS head
                  ON head.session_key = cursor.target_session_key
                 AND head.agent_id = cursor.target_agent_id
                WHERE NOT (0 <= last_seen_sequence AND last_seen_sequence <= notified_sequence
                           AND notified_sequence <= material_sequence
                           AND material_sequence <= coalesce(head.last_sequence, 0))",
    },
    Rule {
        wrong: "something material that no notice speaks of",
        query: "SELECT watcher_session_key FROM session_watch_cursors
                WHERE notified_sequence = last_seen_sequence
                  AND material_sequence > last_seen_sequence",
    },
    Rule {
        wrong: "a material signal that moved no cursor",
        query: "SELECT watcher_session_key || ' ' || sequence FROM session_watch_cursors AS cursor
                JOIN session_state_events AS event
                  ON event.session_key = cursor.target_session_key
                 AND event.agent_id = cursor.target_agent_id
                WHERE event.kind IN ('human_direct_message', 'upstream_missing', 'goal_changed')
                  AND event.actor_id IS NOT cursor.watcher_session_key
                  AND event.sequence > cursor.material_sequence",
    },
    Rule {
        wrong: "a cursor that was moved by no material signal",
        query: "WITH mark (watcher, target, agent, sequence) AS (
                    SELECT watcher_session_key, target_session_key, target_agent_id,
                           notified_sequence
                    FROM session_watch_cursors WHERE notified_sequence > last_seen_sequence
                    UNION ALL
                    SELECT watcher_session_key, target_session_key, target_agent_id,
                           material_sequence
                    FROM session_watch_cursors WHERE material_sequence > notified_sequence)
                SELECT mark.watcher || ' ' || mark.sequence FROM mark
                LEFT JOIN session_state_heads AS head
                  ON head.session_key = mark.target AND head.agent_id = mark.agent
                LEFT JOIN session_state_events AS event ON event.sequence = mark.sequence
                WHERE mark.sequence > coalesce(head.pruned_sequence, 0)
                  AND (event.sequence IS NULL
                       OR event.session_key <> mark.target OR event.agent_id <> mark.agent
                       OR event.actor_id IS mark.watcher
                       OR event.kind NOT IN
                          ('human_direct_message', 'upstream_missing', 'goal_changed'))",
    },
    Rule {
        wrong: "a watch by hand whose watcher has no entry",
        query: "SELECT watcher_session_key FROM session_watch_cursors
                WHERE provenance = 'explicit' AND watcher_session_key NOT IN
                      (SELECT session_key FROM session_entries)",
    },
    Rule {
        wrong: "evidence without its signal",
        query: "SELECT sequence FROM evidence
                WHERE sequence NOT IN (SELECT sequence FROM session_state_events
                                       WHERE kind = 'human_direct_message')",
    },
    Rule {
        wrong: "an upstream message with more or less evidence than it has turns",
        query: "SELECT sequence FROM session_state_events AS event
                WHERE kind = 'human_direct_message'
                  AND json_extract(payload, '$.catalog') IS NOT NULL
                  AND coalesce(json_extract(payload, '$.turns'), 1) <>
                      (SELECT count(*) FROM evidence
                       WHERE evidence.sequence = event.sequence)",
    },
    Rule {
        wrong: "a turn that was counted twice",
        query: "SELECT file || ' ' || byte_start FROM evidence
                JOIN session_state_events AS event USING (sequence)
                GROUP BY event.session_key, event.agent_id, file, byte_start
                HAVING count(*) > 1",
    },
    Rule {
        wrong: "a turn that was counted before its link had passed it",
        query: "SELECT sequence FROM evidence
                JOIN session_state_events AS event USING (sequence)
                JOIN session_upstream_links AS link USING (session_key, agent_id)
                WHERE link.path LIKE '%/' || evidence.file
                  AND evidence.byte_end > link.marker_offset",
    },
    Rule {
        wrong: "a link without its entry, or without the signal that it was adopted",
        query: "SELECT link.session_key FROM session_upstream_links AS link
                LEFT JOIN session_entries AS entry USING (session_key, agent_id)
                WHERE entry.session_id IS NOT link.thread_id
                   OR NOT EXISTS (
                       SELECT 1 FROM session_state_events AS event
                       WHERE event.session_key = link.session_key
                         AND event.agent_id = link.agent_id AND event.kind = 'adopted'
                         AND json_extract(event.payload, '$.catalog') = link.catalog)
                  AND NOT EXISTS (
                       SELECT 1 FROM session_state_heads AS head
                       WHERE head.session_key = link.session_key
                         AND head.agent_id = link.agent_id AND head.pruned_sequence > 0)",
    },
    Rule {
        wrong: "an adopted session that has neither a link nor lost its upstream",
        query: "SELECT event.session_key FROM session_state_events AS event
                WHERE event.kind = 'adopted'
                  AND json_extract(event.payload, '$.catalog') IS NOT NULL
                  AND NOT EXISTS (
                      SELECT 1 FROM session_upstream_links AS link
                      WHERE link.session_key = event.session_key
                        AND link.agent_id = event.agent_id)
                  AND NOT EXISTS (
                      SELECT 1 FROM session_state_events AS lost
                      WHERE lost.session_key = event.session_key
                        AND lost.agent_id = event.agent_id
                        AND lost.kind = 'upstream_missing' AND lost.sequence > event.sequence)",
    },
    Rule {
        wrong: "a message that was delivered and kept, or neither delivered nor kept",
        query: "SELECT id FROM session_messages
                WHERE (body IS NULL) <> (delivered_at IS NOT NULL)",
    },
];
