-- Returns one row: counters of the current database since its statistics were last reset.
-- Since 14 (session times and counts are new there). Cost: one row of shared statistics, no table is read.
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
       session_time AS session_time_ms,
       active_time AS active_time_ms,
       idle_in_transaction_time AS idle_in_transaction_time_ms,
       sessions,
       sessions_abandoned,
       sessions_fatal,
       sessions_killed
  FROM pg_catalog.pg_stat_database
 WHERE datname = current_database()
