-- Returns one row: what the server's C compiler was told. Since 9.6. Cost: none. Until 17 only a
-- superuser may ask; later, members of pg_read_all_settings too.
SELECT setting AS flags
  FROM pg_catalog.pg_config
 WHERE name = 'CFLAGS'
