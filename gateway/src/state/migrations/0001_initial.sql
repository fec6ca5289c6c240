-- The state database. What operators may query are the views and tables named in the
-- documentation: session_state_events, session_state_heads, session_watch_cursors,
-- session_upstream_links, session_entries, session_messages, evidence, nodes,
-- node_certificates, join_codes, api_tokens, cron_runs, audit_log. The other tables are
-- what stands underneath and may change.
--
-- Times are whole milliseconds since 1970. Session keys are interned: a session is a
-- number wherever it is named.

CREATE TABLE session_keys (
    id INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL UNIQUE
) STRICT;

-- A session and its head. Heads are monotonic and outlive their events.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL REFERENCES session_keys (id),
    agent_id TEXT NOT NULL,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    pruned_sequence INTEGER NOT NULL DEFAULT 0,
    UNIQUE (key, agent_id),
    CHECK (0 <= pruned_sequence AND pruned_sequence <= last_sequence)
) STRICT;

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id),
    kind TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    actor INTEGER REFERENCES session_keys (id),
    session_id TEXT,
    run_id TEXT,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    summary TEXT NOT NULL,
    payload TEXT,
    dedupe_key TEXT,
    CHECK ((actor_type = 'agent') = (actor IS NOT NULL))
) STRICT;

-- The row id is the index's second column by itself.
CREATE INDEX events_by_session ON events (session);
CREATE UNIQUE INDEX events_by_dedupe_key ON events (session, dedupe_key)
    WHERE dedupe_key IS NOT NULL;

CREATE TABLE evidence (
    sequence INTEGER NOT NULL REFERENCES events (sequence) ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    node TEXT NOT NULL,
    catalog TEXT NOT NULL,
    file TEXT NOT NULL,
    byte_start INTEGER NOT NULL,
    byte_end INTEGER NOT NULL,
    record_id TEXT,
    rule TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    PRIMARY KEY (sequence, turn)
) STRICT, WITHOUT ROWID;

-- What a turn holds: notices and messages, until it confirms or releases them. A lease
-- that ended stays as long as something still names it: a late confirmation counts until
-- the thing is handed out again.
CREATE TABLE leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    token BLOB NOT NULL UNIQUE CHECK (length(token) = 16),
    session INTEGER NOT NULL REFERENCES sessions (id),
    leased_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT;

CREATE INDEX leases_by_session ON leases (session);
CREATE INDEX leases_open ON leases (expires_at) WHERE closed_at IS NULL;

-- A watcher's key is agent-qualified, so the key alone names it. A lease stands only on
-- the notice that it handed out.
CREATE TABLE cursors (
    target INTEGER NOT NULL REFERENCES sessions (id),
    watcher INTEGER NOT NULL REFERENCES session_keys (id),
    last_seen INTEGER NOT NULL,
    notified INTEGER NOT NULL,
    material INTEGER NOT NULL,
    provenance TEXT NOT NULL CHECK (provenance IN ('spawn', 'explicit')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    lease INTEGER REFERENCES leases (id) ON DELETE SET NULL,
    PRIMARY KEY (target, watcher),
    CHECK (0 <= last_seen AND last_seen <= notified AND notified <= material),
    CHECK (lease IS NULL OR last_seen < notified)
) STRICT, WITHOUT ROWID;

CREATE INDEX cursors_by_watcher ON cursors (watcher);
CREATE INDEX cursors_by_lease ON cursors (lease) WHERE lease IS NOT NULL;

-- When a watcher last had a turn.
CREATE TABLE watchers (
    watcher INTEGER PRIMARY KEY REFERENCES session_keys (id),
    active_at INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    target INTEGER NOT NULL REFERENCES sessions (id),
    sender INTEGER REFERENCES session_keys (id),
    body TEXT,
    sent_at INTEGER NOT NULL,
    delivered_at INTEGER,
    lease INTEGER REFERENCES leases (id) ON DELETE SET NULL,
    CHECK ((body IS NULL) = (delivered_at IS NOT NULL)),
    CHECK (lease IS NULL OR delivered_at IS NULL)
) STRICT;

CREATE INDEX messages_by_target ON messages (target, delivered_at);
CREATE INDEX messages_by_lease ON messages (lease) WHERE lease IS NOT NULL;

CREATE TABLE running_turns (
    session INTEGER PRIMARY KEY REFERENCES sessions (id),
    began_at INTEGER NOT NULL
) STRICT;

CREATE TABLE entries (
    session INTEGER PRIMARY KEY REFERENCES sessions (id),
    session_id TEXT NOT NULL,
    session_started_at INTEGER,
    last_interaction_at INTEGER,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER,
    pinned_at INTEGER,
    session_file TEXT,
    chat_type TEXT,
    provider TEXT,
    subject TEXT,
    room TEXT,
    space TEXT,
    display_name TEXT,
    thinking_level TEXT,
    verbose_level TEXT,
    reasoning_level TEXT,
    elevated_level TEXT,
    fast_mode INTEGER CHECK (fast_mode IN (0, 1)),
    send_policy TEXT,
    provider_override TEXT,
    model_override TEXT,
    auth_profile_override TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    total_tokens INTEGER,
    context_tokens INTEGER,
    compaction_count INTEGER,
    memory_flush_at INTEGER,
    memory_flush_compaction_count INTEGER,
    spawned_by TEXT,
    parent_session_key TEXT,
    label TEXT,
    goal TEXT,
    extra TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- What the readable projection of an agent's entries was last: its digest, and the digest
-- before it until the rename is through. Either is ours.
CREATE TABLE projections (
    agent_id TEXT PRIMARY KEY,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    previous_digest BLOB CHECK (length(previous_digest) = 32),
    written_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Its entries, to merge against: what the newest projection shows of each (nothing: NULL),
-- and what the one before did while the newest may not be in place yet.
CREATE TABLE projected_entries (
    agent_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    digest BLOB CHECK (length(digest) = 16),
    pending INTEGER NOT NULL CHECK (pending IN (0, 1)),
    previous_digest BLOB CHECK (length(previous_digest) = 16),
    PRIMARY KEY (agent_id, session_key),
    CHECK (pending OR (digest IS NOT NULL AND previous_digest IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX projected_entries_pending ON projected_entries (agent_id) WHERE pending;

CREATE TABLE links (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL UNIQUE REFERENCES sessions (id),
    catalog TEXT NOT NULL,
    host TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    path TEXT NOT NULL,
    revision INTEGER NOT NULL,
    marker_offset INTEGER NOT NULL,
    size INTEGER NOT NULL,
    unclassified INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    last_miss_at INTEGER,
    last_outcome TEXT,
    last_reason TEXT,
    last_report_at INTEGER,
    blocked TEXT,
    created_at INTEGER NOT NULL,
    echo_key BLOB NOT NULL CHECK (length(echo_key) = 32),
    marker BLOB NOT NULL
) STRICT;

CREATE INDEX links_by_source ON links (host, catalog, thread_id);

-- The digests of texts that the gateway delivered to a link's thread. A text that is handed
-- out again is another delivery: each suppresses one turn.
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    link INTEGER NOT NULL REFERENCES links (id) ON DELETE CASCADE,
    message INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 16),
    delivered_at INTEGER NOT NULL,
    echoed_at INTEGER
) STRICT;

CREATE INDEX deliveries_by_link ON deliveries (link);

-- A node's row stays for ever: its host name stands in keys and is never given again.
CREATE TABLE nodes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    host_name TEXT NOT NULL UNIQUE,
    host TEXT NOT NULL UNIQUE,
    standing TEXT NOT NULL CHECK (standing IN ('active', 'revoked', 'removed')),
    paired_at INTEGER NOT NULL,
    last_seen_at INTEGER,
    version TEXT
) STRICT;

CREATE TABLE node_certificates (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    serial TEXT NOT NULL UNIQUE,
    node INTEGER NOT NULL REFERENCES nodes (number),
    der BLOB NOT NULL,
    not_before INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    issued_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE INDEX node_certificates_by_node ON node_certificates (node);

CREATE TABLE join_codes (
    digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
    host_name TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    redeemed_at INTEGER,
    node INTEGER REFERENCES nodes (number),
    certificate BLOB,
    CHECK ((redeemed_at IS NULL) = (node IS NULL)),
    CHECK ((redeemed_at IS NULL) = (certificate IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE api_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    scope TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;

CREATE TABLE cron_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT
) STRICT;

CREATE INDEX cron_runs_by_job ON cron_runs (job_id);

CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT,
    outcome TEXT NOT NULL
) STRICT;

-- Written by the writer to find out whether a full disk has room again.
CREATE TABLE write_probe (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;

INSERT INTO write_probe (id, at) VALUES (1, 0);

CREATE VIEW session_state_events AS
SELECT
    event.sequence,
    session_key.session_key,
    session.agent_id,
    event.session_id,
    event.kind,
    event.actor_type,
    actor.session_key AS actor_id,
    event.run_id,
    event.occurred_at,
    event.recorded_at,
    event.summary,
    event.payload,
    event.dedupe_key
FROM events AS event
JOIN sessions AS session ON session.id = event.session
JOIN session_keys AS session_key ON session_key.id = session.key
LEFT JOIN session_keys AS actor ON actor.id = event.actor;

CREATE VIEW session_state_heads AS
SELECT
    session_key.session_key,
    session.agent_id,
    session.last_sequence,
    session.pruned_sequence
FROM sessions AS session
JOIN session_keys AS session_key ON session_key.id = session.key
WHERE session.last_sequence > 0;

CREATE VIEW session_watch_cursors AS
SELECT
    watcher.session_key AS watcher_session_key,
    target_key.session_key AS target_session_key,
    target.agent_id AS target_agent_id,
    cursor.last_seen AS last_seen_sequence,
    cursor.notified AS notified_sequence,
    cursor.material AS material_sequence,
    cursor.provenance,
    cursor.created_at,
    cursor.updated_at
FROM cursors AS cursor
JOIN session_keys AS watcher ON watcher.id = cursor.watcher
JOIN sessions AS target ON target.id = cursor.target
JOIN session_keys AS target_key ON target_key.id = target.key;

CREATE VIEW session_upstream_links AS
SELECT
    link.id AS link_id,
    session_key.session_key,
    session.agent_id,
    link.catalog,
    link.host,
    link.thread_id,
    link.path,
    link.revision,
    link.marker,
    link.marker_offset,
    link.size,
    link.unclassified,
    link.misses,
    link.last_miss_at,
    link.last_outcome,
    link.last_reason,
    link.last_report_at,
    link.blocked,
    link.created_at
FROM links AS link
JOIN sessions AS session ON session.id = link.session
JOIN session_keys AS session_key ON session_key.id = session.key;

CREATE VIEW session_entries AS
SELECT
    session_key.session_key,
    session.agent_id,
    entry.session_id,
    entry.session_started_at,
    entry.last_interaction_at,
    entry.updated_at,
    entry.archived_at,
    entry.pinned_at,
    entry.session_file,
    entry.chat_type,
    entry.provider,
    entry.subject,
    entry.room,
    entry.space,
    entry.display_name,
    entry.thinking_level,
    entry.verbose_level,
    entry.reasoning_level,
    entry.elevated_level,
    entry.fast_mode,
    entry.send_policy,
    entry.provider_override,
    entry.model_override,
    entry.auth_profile_override,
    entry.input_tokens,
    entry.output_tokens,
    entry.total_tokens,
    entry.context_tokens,
    entry.compaction_count,
    entry.memory_flush_at,
    entry.memory_flush_compaction_count,
    entry.spawned_by,
    entry.parent_session_key,
    entry.label,
    entry.goal,
    entry.extra
FROM entries AS entry
JOIN sessions AS session ON session.id = entry.session
JOIN session_keys AS session_key ON session_key.id = session.key;

CREATE VIEW session_messages AS
SELECT
    message.id,
    session_key.session_key,
    session.agent_id,
    sender.session_key AS sender_session_key,
    message.body,
    message.sent_at,
    message.delivered_at
FROM messages AS message
JOIN sessions AS session ON session.id = message.target
JOIN session_keys AS session_key ON session_key.id = session.key
LEFT JOIN session_keys AS sender ON sender.id = message.sender;
