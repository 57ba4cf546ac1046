-- Returns one row a table outside the system's schemas: rows live and dead as the statistics have
-- them, bytes of heap and indexes, seconds since the last vacuum and analyze of whatever kind (NULL:
-- never). Since 9.6. Cost: a scan of pg_class, its statistics, and one stat() a file.
SELECT n.nspname AS schema_name,
       c.relname AS name,
       pg_stat_get_live_tuples(c.oid) AS live_rows,
       pg_stat_get_dead_tuples(c.oid) AS dead_rows,
       pg_table_size(c.oid) AS heap_bytes,
       pg_indexes_size(c.oid) AS index_bytes,
       extract(epoch FROM clock_timestamp()
           - greatest(pg_stat_get_last_vacuum_time(c.oid),
                      pg_stat_get_last_autovacuum_time(c.oid)))::float8 AS since_vacuum_s,
       extract(epoch FROM clock_timestamp()
           - greatest(pg_stat_get_last_analyze_time(c.oid),
                      pg_stat_get_last_autoanalyze_time(c.oid)))::float8 AS since_analyze_s
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm')
   AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgdyno')
   AND n.nspname NOT LIKE 'pg\_toast%'
