-- Returns one row: how many autovacuum workers are at work, and what they say they do.
-- Since 10 (backend_type). Cost: one row of shared memory for each session.
-- What a worker does is seen by superusers and members of pg_read_all_stats; others see NULL.
SELECT count(*) AS workers,
       string_agg(query, '; ' ORDER BY query) AS doing
  FROM pg_catalog.pg_stat_activity
 WHERE backend_type = 'autovacuum worker'
