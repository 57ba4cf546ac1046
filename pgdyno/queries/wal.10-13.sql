-- Returns one row: how much WAL there is, as bytes from the beginning of time.
-- Since 10 (this form to 13: pg_stat_wal came in 14). Cost: one read of shared memory.
-- On a standby: what it has received.
SELECT pg_wal_lsn_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                ELSE pg_current_wal_insert_lsn() END, '0/0')::bigint AS wal_position_bytes,
       NULL::bigint AS wal_records,
       NULL::bigint AS wal_full_page_images,
       NULL::bigint AS wal_bytes,
       NULL::bigint AS wal_buffers_full,
       NULL::bigint AS wal_writes,
       NULL::bigint AS wal_syncs,
       NULL::float8 AS wal_write_time_ms,
       NULL::float8 AS wal_sync_time_ms
