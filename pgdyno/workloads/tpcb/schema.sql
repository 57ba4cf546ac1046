-- The bank of pgbench: names, columns and their order are those that `pgbench -i` makes.
-- The defaults of pgbench_accounts are there for loading only: the server fills in what is the same
-- for every account instead of parsing it each time. indexes.sql drops them.
{% set account = 'bigint' if scale >= 20000 else 'int' %}
create table pgbench_history (
    tid int,
    bid int,
    aid {{ account }},
    delta int,
    mtime timestamp,
    filler char(22)
);
create table pgbench_tellers (tid int not null, bid int, tbalance int, filler char(84));
create table pgbench_accounts (aid {{ account }} not null, bid int, abalance int default 0, filler char(84) default '');
create table pgbench_branches (bid int not null, bbalance int, filler char(88));
