-- Returns one row a name of a function that an extension or provider may have brought along: every name
-- outside information_schema that ends in _version. Since 9.6. Cost: a scan of pg_proc.
SELECT DISTINCT proname::text AS name
  FROM pg_catalog.pg_proc
 WHERE proname LIKE '%\_version'
 ORDER BY 1
