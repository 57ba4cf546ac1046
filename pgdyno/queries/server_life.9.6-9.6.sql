-- When this life of the server began, as text that changes with it. Cheap.
-- 9.6 does not show its background processes, so a recovery from a crash cannot be seen.
select pg_postmaster_start_time()::text as postmaster, null::text as checkpointer
