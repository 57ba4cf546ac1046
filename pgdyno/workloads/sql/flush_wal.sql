-- Commits an empty message, so that all WAL before it is written and flushed. Costs one flush.
select pg_logical_emit_message(true, 'pgdyno', '')
