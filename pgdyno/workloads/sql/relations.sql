-- Every relation with storage that belongs to some tables: the tables and their partitions first,
-- then what is stored out of line, then indexes. `key_column`: one that a complete btree begins
-- with, null where there is none. Cheap.
with recursive member as (
    select to_regclass(name)::oid as oid
    from unnest(%(tables)s::text[]) as name
    where to_regclass(name) is not null
    union
    select i.inhrelid from pg_inherits i join member m on i.inhparent = m.oid
),
relation as (
    select oid, 1 as place from member
    union all
    select c.reltoastrelid, 2 from member m join pg_class c on c.oid = m.oid where c.reltoastrelid <> 0
    union all
    select i.indexrelid, 3 from member m join pg_index i on i.indrelid = m.oid where i.indisvalid
)
select
    r.oid::bigint as oid,
    r.oid::regclass::text as name,
    r.place = 1 as is_table,
    pg_relation_size(r.oid) as bytes,
    (
        select quote_ident(a.attname)
        from pg_index i
        join pg_class x on x.oid = i.indexrelid
        join pg_am m on m.oid = x.relam and m.amname = 'btree'
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = r.oid and i.indpred is null and i.indisvalid
        order by i.indisprimary desc, i.indexrelid
        limit 1
    ) as key_column
from relation r
join pg_class c on c.oid = r.oid
where c.relkind in ('r', 'm', 't', 'i')
order by r.place, bytes desc
