-- Bytes of some tables without and with indexes, partitions included. Cheap.
with recursive relation as (
    select to_regclass(name)::oid as oid
    from unnest(%(tables)s::text[]) as name
    where to_regclass(name) is not null
    union
    select i.inhrelid from pg_inherits i join relation r on i.inhparent = r.oid
)
select
    coalesce(sum(pg_table_size(oid)), 0)::bigint as table_bytes,
    coalesce(sum(pg_indexes_size(oid)), 0)::bigint as index_bytes
from relation
