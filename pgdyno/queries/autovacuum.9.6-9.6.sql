-- Returns one row: how many autovacuum workers are at work, and what they say they do.
-- Since 9.6: a worker is known by the words of its query, which superusers see.
-- Cost: one row of shared memory for each session.
SELECT count(*) AS workers,
       string_agg(query, '; ' ORDER BY query) AS doing
  FROM pg_catalog.pg_stat_activity
 WHERE query LIKE 'autovacuum: %'
