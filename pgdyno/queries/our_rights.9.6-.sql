-- Returns one row: version, shared buffers, extensions that could be created, whether our role may
-- see other sessions and make tables, and how many tables the database has.
-- Since 9.6. Cost: reads the folder of extensions and some catalogue rows.
SELECT current_setting('server_version') AS version,
       (SELECT setting::bigint FROM pg_settings WHERE name = 'shared_buffers')
           * current_setting('block_size')::int AS shared_buffers_bytes,
       (SELECT coalesce(array_agg(name::text), '{}') FROM pg_available_extensions) AS extensions,
       coalesce((SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = 'pg_monitor'),
                (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)) AS monitors,
       has_database_privilege(current_database(), 'CREATE') AS creates,
       (SELECT count(*) FROM pg_stat_user_tables) AS tables
