-- Returns one row: how much WAL there is, as bytes from the beginning of time.
-- Since 9.6 (this form there only: the functions were renamed in 10). Cost: one read of shared memory.
-- On a standby: what it has received.
SELECT pg_xlog_location_diff(
           CASE WHEN pg_is_in_recovery() THEN pg_last_xlog_receive_location()
                ELSE pg_current_xlog_insert_location() END, '0/0')::bigint AS wal_position_bytes,
       NULL::bigint AS wal_records,
       NULL::bigint AS wal_full_page_images,
       NULL::bigint AS wal_bytes,
       NULL::bigint AS wal_buffers_full,
       NULL::bigint AS wal_writes,
       NULL::bigint AS wal_syncs,
       NULL::float8 AS wal_write_time_ms,
       NULL::float8 AS wal_sync_time_ms
