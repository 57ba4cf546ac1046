-- Returns one row: how far a standby has received and replayed, and how old the last replayed commit
-- is. Since 10. Cost: none. NULL on a primary.
SELECT pg_wal_lsn_diff(received, '0/0')::bigint AS received_bytes,
       pg_wal_lsn_diff(replayed, '0/0')::bigint AS replayed_bytes,
       CASE WHEN received = replayed THEN 0
            ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
       END::float8 AS replay_delay_s,
       CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() END::text AS paused
  FROM (SELECT pg_last_wal_receive_lsn() AS received,
               pg_last_wal_replay_lsn() AS replayed) positions
