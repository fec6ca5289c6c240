-- The prompt whose hook took a lease, '' where the program names none; NULL for a lease that
-- no hook took. The hooks that follow confirm it or give it back; nobody else's token does.
ALTER TABLE leases ADD COLUMN hook_prompt TEXT;
