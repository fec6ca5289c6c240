-- Whether a session's context_tokens are an estimate (1), or what its provider counted (0).
ALTER TABLE entries ADD COLUMN context_tokens_estimated INTEGER;
