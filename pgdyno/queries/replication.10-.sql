-- Returns a row for each standby that streams from this server, with its lag in bytes and seconds.
-- Since 10 (the lags in seconds came with it). Cost: one row a replication connection. A role
-- without pg_monitor sees them without state and lag; on a standby the bytes are NULL.
SELECT application_name AS standby,
       state,
       sync_state,
       pg_wal_lsn_diff(here.position, sent_lsn)::bigint AS unsent_bytes,
       pg_wal_lsn_diff(here.position, write_lsn)::bigint AS write_lag_bytes,
       pg_wal_lsn_diff(here.position, flush_lsn)::bigint AS flush_lag_bytes,
       pg_wal_lsn_diff(here.position, replay_lsn)::bigint AS replay_lag_bytes,
       extract(epoch FROM write_lag)::float8 AS write_lag_s,
       extract(epoch FROM flush_lag)::float8 AS flush_lag_s,
       extract(epoch FROM replay_lag)::float8 AS replay_lag_s
  FROM pg_catalog.pg_stat_replication,
       (SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END AS position) here
 WHERE application_name <> 'pg_basebackup'
 ORDER BY 1
