-- Returns one row a tablespace outside the data folder: its name and folder on the server's host.
-- Since 9.6. Cost: a scan of pg_tablespace.
SELECT spcname AS name, pg_tablespace_location(oid) AS folder
  FROM pg_catalog.pg_tablespace
 WHERE pg_tablespace_location(oid) <> ''
 ORDER BY 1
