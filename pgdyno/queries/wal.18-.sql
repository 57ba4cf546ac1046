-- Returns one row: how much WAL there is, what was written to it, how often it was written and flushed.
-- Since 18: writes and flushes of WAL are in pg_stat_io. Times are 0 without track_wal_io_timing.
-- Cost: one row of shared statistics and one hundred or so of pg_stat_io.
SELECT pg_wal_lsn_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint AS wal_position_bytes,
       w.wal_records,
       w.wal_fpi AS wal_full_page_images,
       w.wal_bytes::bigint AS wal_bytes,
       w.wal_buffers_full,
       io.writes AS wal_writes,
       io.fsyncs AS wal_syncs,
       io.write_time AS wal_write_time_ms,
       io.fsync_time AS wal_sync_time_ms
  FROM pg_catalog.pg_stat_wal AS w
 CROSS JOIN (SELECT coalesce(sum(writes), 0)::bigint AS writes,
                    coalesce(sum(fsyncs), 0)::bigint AS fsyncs,
                    coalesce(sum(write_time), 0)::float8 AS write_time,
                    coalesce(sum(fsync_time), 0)::float8 AS fsync_time
               FROM pg_catalog.pg_stat_io
              WHERE object = 'wal') AS io
