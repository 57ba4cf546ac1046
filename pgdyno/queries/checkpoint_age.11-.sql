-- Returns one row: seconds since the last checkpoint began, its position in the WAL (redo) and the
-- end of the WAL now, in bytes, and what the next one depends on: bytes of a WAL segment,
-- max_wal_size in bytes, and the divisor that leaves the part between two checkpoints.
-- Since 11: divisor.
-- Cost: pg_control is read.
-- Source of the divisor: CalculateCheckpointSegments(), src/backend/access/transam/xlog.c.
SELECT extract(epoch FROM clock_timestamp() - c.checkpoint_time)::float8 AS since_checkpoint_s,
       pg_wal_lsn_diff(c.redo_lsn, '0/0')::bigint AS redo_bytes,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS wal_end_bytes,
       pg_size_bytes(current_setting('wal_segment_size')) AS segment_bytes,
       pg_size_bytes(current_setting('max_wal_size')) AS max_wal_bytes,
       1 + current_setting('checkpoint_completion_target')::float8 AS divisor
  FROM pg_control_checkpoint() AS c
