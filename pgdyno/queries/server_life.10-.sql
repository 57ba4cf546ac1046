-- Returns one row: when this life of the server began, as text that changes with it.
-- Since 10. Cost: one row a process of the server.
-- postmaster: at a start; checkpointer: also when the server recovers from a crash of one of its
-- processes. checkpointer is null for a role that may not see other sessions.
select
    pg_postmaster_start_time()::text as postmaster,
    (select backend_start::text from pg_stat_activity where backend_type = 'checkpointer') as checkpointer
