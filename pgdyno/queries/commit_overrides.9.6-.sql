-- Returns one row a place, other than the server's own configuration, that sets synchronous_commit:
-- this role, this database, or a function by its SET clause or in its body.
-- Since 9.6. Cost: a scan of pg_proc and pg_db_role_setting.
-- For a body `value` is NULL: what it sets, and when, is for a reader to see.
SELECT CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'all roles'
            WHEN s.setdatabase = 0 THEN 'role ' || r.rolname
            WHEN s.setrole = 0 THEN 'database ' || d.datname
            ELSE 'role ' || r.rolname || ' in database ' || d.datname END AS place,
       'session' AS reach,
       NULL::text AS function_name,
       substr(entry, length('synchronous_commit=') + 1) AS value,
       NULL::text AS body
  FROM pg_catalog.pg_db_role_setting AS s
 CROSS JOIN unnest(s.setconfig) AS entry
  LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = s.setrole
  LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase
 WHERE entry LIKE 'synchronous_commit=%'
   AND (s.setdatabase = 0 OR d.datname = current_database())
   AND (s.setrole = 0 OR r.rolname = session_user)
UNION ALL
SELECT 'function ' || n.nspname || '.' || p.proname, 'clause', p.proname::text,
       substr(entry, length('synchronous_commit=') + 1), NULL
  FROM pg_catalog.pg_proc AS p
  JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 CROSS JOIN unnest(p.proconfig) AS entry
 WHERE entry LIKE 'synchronous_commit=%'
UNION ALL
SELECT 'function ' || n.nspname || '.' || p.proname, 'body', p.proname::text, NULL, p.prosrc
  FROM pg_catalog.pg_proc AS p
  JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND p.prosrc ILIKE '%synchronous_commit%'
 ORDER BY 1, 2
