-- Returns the names of databases that were made for a trial, as far as they belong to our role.
-- Since 9.6. Cost: a small catalog is read.
SELECT d.datname AS name
  FROM pg_catalog.pg_database AS d
 WHERE d.datname LIKE 'pgdyno\_trial\_%'
   AND pg_get_userbyid(d.datdba) = current_user
 ORDER BY d.datname
