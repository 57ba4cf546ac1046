-- Returns one row: when this life of the server began, as text that changes with it.
-- Since 9.6. Cost: none to speak of.
-- 9.6 does not show its background processes, so a recovery from a crash cannot be seen.
select pg_postmaster_start_time()::text as postmaster, null::text as checkpointer
