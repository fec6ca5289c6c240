-- Sessions of which the gateway has run a turn: while a model is configured, it runs them.
CREATE TABLE run_sessions (
    session INTEGER PRIMARY KEY REFERENCES sessions (id),
    since INTEGER NOT NULL
) STRICT;
