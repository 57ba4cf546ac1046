-- Returns one row: replayed_bytes, how far a standby has replayed, counted from 0/0; NULL on a
-- primary. 9.6. Cost: none.
SELECT pg_catalog.pg_xlog_location_diff(pg_catalog.pg_last_xlog_replay_location(), '0/0')::bigint
       AS replayed_bytes
