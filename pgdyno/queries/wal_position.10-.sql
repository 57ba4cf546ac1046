-- Returns one row: flushed_bytes, how far a primary's WAL is flushed, counted from 0/0.
-- Since 10. Cost: none. Not on a standby.
SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), '0/0')::bigint
       AS flushed_bytes
