-- Returns one row: whether our role may make databases and copy this one, how many sessions of
-- others are connected to it, and its bytes. Since 9.6. Cost: a stat() of each file.
SELECT r.rolsuper OR r.rolcreatedb AS may_create,
       r.rolsuper OR d.datistemplate OR pg_has_role(d.datdba, 'MEMBER') AS may_copy,
       (SELECT count(*)
          FROM pg_catalog.pg_stat_activity AS a
         WHERE a.datname = current_database()
           AND a.pid <> pg_backend_pid()
           AND a.application_name NOT LIKE 'pgdyno%') AS others_connected,
       pg_database_size(current_database()) AS database_bytes
  FROM pg_catalog.pg_roles AS r, pg_catalog.pg_database AS d
 WHERE r.rolname = current_user
   AND d.datname = current_database()
