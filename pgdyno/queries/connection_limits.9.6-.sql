-- Returns one row: what limits the number of connections, and how many are in use now.
-- Since 9.6. Cost: a few catalogue rows and shared counters.
-- `in_use` counts sessions of all databases but this one; a limit of -1 means none.
SELECT current_setting('max_connections')::int AS max_connections,
       current_setting('superuser_reserved_connections')::int AS superuser_reserved_connections,
       coalesce(current_setting('reserved_connections', true), '0')::int AS reserved_connections,
       (SELECT greatest(sum(numbackends) - 1, 0) FROM pg_stat_database)::int AS in_use,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS role_limit,
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS database_limit
