-- Returns one row: replayed_bytes, how far a standby has replayed, counted from 0/0; NULL on a
-- primary. Since 9.6 (this form there only: the functions were renamed in 10). Cost: none.
SELECT pg_catalog.pg_xlog_location_diff(pg_catalog.pg_last_xlog_replay_location(), '0/0')::bigint
       AS replayed_bytes
