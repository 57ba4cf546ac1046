-- Returns one row: flushed_bytes, how far a primary's WAL is flushed, counted from 0/0.
-- Since 9.6 (this form there only: the functions were renamed in 10). Cost: none. Not on a standby.
SELECT pg_catalog.pg_xlog_location_diff(pg_catalog.pg_current_xlog_flush_location(), '0/0')::bigint
       AS flushed_bytes
