-- Transcripts of conversations that have ended, and are not among the archives yet: written
-- in the transaction that ends the conversation, removed once the file has its new name.
CREATE TABLE ended_transcripts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    session_file TEXT,
    fate TEXT NOT NULL CHECK (fate IN ('reset', 'deleted')),
    ended_at INTEGER NOT NULL
) STRICT;

-- Agents that are being deleted: removed once nothing of theirs is left, their files included.
CREATE TABLE leaving_agents (
    agent_id TEXT PRIMARY KEY,
    asked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Conversations that went on beyond their end, for one message of an operator who had come
-- back to them.
CREATE TABLE kept_conversations (
    session INTEGER PRIMARY KEY REFERENCES sessions (id),
    session_id TEXT NOT NULL,
    kept_at INTEGER NOT NULL
) STRICT;

-- As lists show them: active or archived, pinned first, then the newest.
CREATE INDEX entries_in_order ON entries (
    (archived_at IS NOT NULL), (pinned_at IS NULL), updated_at DESC, session
);

CREATE INDEX cron_runs_open ON cron_runs (session_key, agent_id) WHERE ended_at IS NULL;
