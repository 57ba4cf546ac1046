-- Returns one row a setting that this role may see: its value in base units and as SHOW prints it.
-- Since 9.6. Cost: some 350 rows from memory.
SELECT name,
       setting,
       unit,
       boot_val AS compiled_in,
       source,
       current_setting(name) AS shown
  FROM pg_catalog.pg_settings
 ORDER BY name
