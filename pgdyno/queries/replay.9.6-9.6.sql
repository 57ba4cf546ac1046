-- Returns one row: how far a standby has received and replayed, and how old the last replayed commit
-- is. Since 9.6 (this form there only: the functions were renamed in 10). Cost: none. NULL on a primary.
SELECT pg_xlog_location_diff(received, '0/0')::bigint AS received_bytes,
       pg_xlog_location_diff(replayed, '0/0')::bigint AS replayed_bytes,
       CASE WHEN received = replayed THEN 0
            ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
       END::float8 AS replay_delay_s,
       CASE WHEN pg_is_in_recovery() THEN pg_is_xlog_replay_paused() END::text AS paused
  FROM (SELECT pg_last_xlog_receive_location() AS received,
               pg_last_xlog_replay_location() AS replayed) positions
