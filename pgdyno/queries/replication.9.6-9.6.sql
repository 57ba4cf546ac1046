-- Returns a row for each standby that streams from this server, with its lag in bytes.
-- Since 9.6 (this form there only: lags in seconds and other names came in 10). Cost: one row a
-- replication connection. A role that is no superuser sees them without state and lag; on a standby
-- the bytes are NULL.
SELECT application_name AS standby,
       state,
       sync_state,
       pg_xlog_location_diff(here.position, sent_location)::bigint AS unsent_bytes,
       pg_xlog_location_diff(here.position, write_location)::bigint AS write_lag_bytes,
       pg_xlog_location_diff(here.position, flush_location)::bigint AS flush_lag_bytes,
       pg_xlog_location_diff(here.position, replay_location)::bigint AS replay_lag_bytes,
       NULL::float8 AS write_lag_s,
       NULL::float8 AS flush_lag_s,
       NULL::float8 AS replay_lag_s
  FROM pg_catalog.pg_stat_replication,
       (SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_xlog_location() END AS position) here
 WHERE application_name <> 'pg_basebackup'
 ORDER BY 1
