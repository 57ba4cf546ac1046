-- Returns one row a user table: rows inserted, updated and deleted so far, and whether it is unlogged.
-- Since 9.6. Cost: one row of shared statistics a table.
-- Temporary tables are left out: other sessions cannot read them, and no crash makes them matter.
SELECT s.schemaname AS schema_name,
       s.relname AS name,
       c.relpersistence = 'u' AS unlogged,
       s.n_tup_ins + s.n_tup_upd + s.n_tup_del AS rows_changed
  FROM pg_catalog.pg_stat_user_tables AS s
  JOIN pg_catalog.pg_class AS c ON c.oid = s.relid
 WHERE c.relpersistence <> 't'
 ORDER BY 1, 2
