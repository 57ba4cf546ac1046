-- What decides whether data of this server may be used again. Cheap.
select
    current_setting('server_version_num')::int as server_version_num,
    current_setting('block_size')::int as block_size,
    current_setting('wal_block_size')::int as wal_block_size
