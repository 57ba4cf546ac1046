-- Returns one row: how many transaction ids the server has given out. Only writing transactions get one.
-- Since 13. Cost: one snapshot.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS transaction_ids
