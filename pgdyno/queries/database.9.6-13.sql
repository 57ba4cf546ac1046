-- Returns one row: counters of the current database since its statistics were last reset.
-- Since 9.6 (this form to 13). Cost: one row of shared statistics, no table is read.
SELECT numbackends::bigint AS backends,
       xact_commit AS commits,
       xact_rollback AS rollbacks,
       blks_read AS blocks_read,
       blks_hit AS blocks_hit,
       tup_returned AS rows_returned,
       tup_fetched AS rows_fetched,
       tup_inserted AS rows_inserted,
       tup_updated AS rows_updated,
       tup_deleted AS rows_deleted,
       conflicts,
       temp_files,
       temp_bytes,
       deadlocks,
       blk_read_time AS block_read_time_ms,
       blk_write_time AS block_write_time_ms,
       NULL::float8 AS session_time_ms,
       NULL::float8 AS active_time_ms,
       NULL::float8 AS idle_in_transaction_time_ms,
       NULL::bigint AS sessions,
       NULL::bigint AS sessions_abandoned,
       NULL::bigint AS sessions_fatal,
       NULL::bigint AS sessions_killed
  FROM pg_catalog.pg_stat_database
 WHERE datname = current_database()
