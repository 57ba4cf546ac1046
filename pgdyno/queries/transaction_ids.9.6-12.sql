-- Returns one row: how many transaction ids the server has given out. Only writing transactions get one.
-- Since 9.6 (this form to 12). Cost: one snapshot.
SELECT txid_snapshot_xmax(txid_current_snapshot()) AS transaction_ids
