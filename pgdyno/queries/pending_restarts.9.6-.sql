-- Returns one row: how many settings wait for a restart, and when the configuration was last read.
-- Since 9.6. Cost: all settings are read. Counted is what our role may see.
SELECT (SELECT count(*) FROM pg_catalog.pg_settings WHERE pending_restart) AS settings,
       pg_conf_load_time() AS loaded
