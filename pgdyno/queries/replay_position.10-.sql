-- Returns one row: replayed_bytes, how far a standby has replayed, counted from 0/0; NULL on a
-- primary. Since 10. Cost: none.
SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0')::bigint
       AS replayed_bytes
