-- Which of some tables exist here, as an unqualified name would find them. Cheap.
select name, to_regclass(name)::oid::bigint as oid
from unnest(%(tables)s::text[]) as name
where to_regclass(name) is not null
