-- The prompt whose hook took a lease, '' where the program names none; NULL for a lease that
-- no hook took. The hooks that follow confirm it or give it back; nobody else's token does.
ALTER TABLE leases ADD COLUMN hook_prompt TEXT;
-- 1 once that hook has handed its program what the lease is over: before, nothing confirms it.
ALTER TABLE leases ADD COLUMN hook_shown INTEGER NOT NULL DEFAULT 0;
