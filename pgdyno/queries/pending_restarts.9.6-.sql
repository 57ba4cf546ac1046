-- Returns one row: how many settings wait for a restart, and when the configuration was last read.
-- Since 9.6. Cheap. Since 16 only what a role may see is counted; ours may see all that it set.
SELECT (SELECT count(*) FROM pg_catalog.pg_settings WHERE pending_restart) AS settings,
       pg_conf_load_time() AS loaded
