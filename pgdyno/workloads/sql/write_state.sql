-- Takes a workload's data into account, with the tables as they are now. Cheap.
insert into pgdyno.state (workload, digest, identity, complete, table_names, table_oids, changed)
select
    %(workload)s, %(digest)s, %(identity)s, %(complete)s, %(tables)s::text[],
    (select coalesce(array_agg(to_regclass(name)::oid order by place), '{}')
     from unnest(%(tables)s::text[]) with ordinality as made (name, place)),
    now()
on conflict (workload) do update
set digest = excluded.digest, identity = excluded.identity, complete = excluded.complete,
    table_names = excluded.table_names, table_oids = excluded.table_oids, changed = excluded.changed,
    measurements = 0
