-- Returns one row: how many standbys are connected that a commit waits for.
-- Since 9.6. Cost: one row a replication connection. A role without pg_monitor sees none of them.
SELECT count(*) AS standbys
  FROM pg_catalog.pg_stat_replication
 WHERE sync_state IN ('sync', 'quorum')
