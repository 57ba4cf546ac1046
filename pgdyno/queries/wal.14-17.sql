-- Returns one row: how much WAL there is, what was written to it, how often it was written and flushed.
-- Since 14 (this form to 17). Cost: one row of shared statistics. Times are 0 without track_wal_io_timing.
SELECT pg_wal_lsn_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint AS wal_position_bytes,
       wal_records,
       wal_fpi AS wal_full_page_images,
       wal_bytes::bigint AS wal_bytes,
       wal_buffers_full,
       wal_write AS wal_writes,
       wal_sync AS wal_syncs,
       wal_write_time AS wal_write_time_ms,
       wal_sync_time AS wal_sync_time_ms
  FROM pg_catalog.pg_stat_wal
