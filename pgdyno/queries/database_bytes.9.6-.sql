-- Returns one row: the bytes of the current database on disk.
-- Since 9.6. Cost: one stat() a file of the database.
SELECT pg_database_size(current_database()) AS bytes
