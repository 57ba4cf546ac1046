-- Returns one row a table, index, toast table and materialized view outside the system's schemas,
-- largest first, with the bytes of its main part, free space map and visibility map.
-- Since 9.6. Cost: a scan of pg_class and one stat() a file. Temporary tables are left out.
-- A relation that is dropped meanwhile has no size and is left out.
SELECT schema_name, name, kind, table_name, unlogged, bytes, rows_estimate
  FROM (SELECT n.nspname AS schema_name,
               c.relname AS name,
               CASE c.relkind WHEN 'i' THEN 'index'
                              WHEN 't' THEN 'toast'
                              WHEN 'm' THEN 'materialized view'
                              WHEN 'p' THEN 'partitioned table'
                              ELSE 'table' END AS kind,
               coalesce(ti.relname, tt.relname) AS table_name,
               c.relpersistence = 'u' AS unlogged,
               pg_relation_size(c.oid, 'main') + pg_relation_size(c.oid, 'fsm')
                   + pg_relation_size(c.oid, 'vm') AS bytes,
               CASE WHEN c.reltuples < 0 THEN NULL ELSE c.reltuples::bigint END AS rows_estimate
          FROM pg_catalog.pg_class AS c
          LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid
          LEFT JOIN pg_catalog.pg_class AS ti ON ti.oid = i.indrelid
          LEFT JOIN pg_catalog.pg_class AS tt ON tt.reltoastrelid = c.oid AND c.relkind = 't'
          -- An index on a toast table belongs to the toast table; its owner decides whether it is shown.
          LEFT JOIN pg_catalog.pg_class AS owner ON owner.reltoastrelid = coalesce(ti.oid, c.oid)
          JOIN pg_catalog.pg_namespace AS n ON n.oid = coalesce(owner.relnamespace, c.relnamespace)
         WHERE c.relkind IN ('r', 'i', 't', 'm', 'p')
           AND c.relpersistence <> 't'
           AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')) AS relations
 WHERE bytes IS NOT NULL
 ORDER BY bytes DESC, schema_name, name
