-- How the pgbench_accounts that the search path finds first is partitioned: strategy (r, h, l; NULL: it is not) and
-- the number of its partitions; no row where there is none. Needs a server from 10 on.
SELECT p.partstrat,
       (SELECT count(*) FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
  FROM pg_catalog.pg_class c
  LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = c.oid
 WHERE c.oid = pg_catalog.to_regclass('pgbench_accounts')
