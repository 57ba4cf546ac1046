-- Bytes of shared buffers. Cheap.
select setting::bigint * current_setting('block_size')::bigint from pg_settings where name = 'shared_buffers'
