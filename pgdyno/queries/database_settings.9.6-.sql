-- Returns one row for each setting that this database brings to the sessions of our role, and to
-- those of everybody: whose it is, its name, its value. Since 9.6. Cost: a small catalog is read.
SELECT r.setrole <> 0 AS own_role,
       split_part(s.item, '=', 1) AS name,
       substr(s.item, strpos(s.item, '=') + 1) AS value
  FROM pg_catalog.pg_db_role_setting AS r
 CROSS JOIN LATERAL unnest(r.setconfig) WITH ORDINALITY AS s (item, place)
 WHERE r.setdatabase = (SELECT d.oid FROM pg_catalog.pg_database AS d
                         WHERE d.datname = current_database())
   AND r.setrole IN (0, (SELECT a.oid FROM pg_catalog.pg_roles AS a
                          WHERE a.rolname = current_user))
 ORDER BY r.setrole, s.place
