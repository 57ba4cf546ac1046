-- The account of what was loaded here, one row for each workload's data. Cheap.
create schema if not exists pgdyno;
create table if not exists pgdyno.state (
    workload text primary key,
    digest text not null,
    identity text not null,
    complete boolean not null,
    table_names text[] not null,
    table_oids oid[] not null,
    changed timestamptz not null default now(),
    measurements integer not null default 0
);
-- Tables made by 0.1 did not count.
alter table pgdyno.state add column if not exists measurements integer not null default 0;
