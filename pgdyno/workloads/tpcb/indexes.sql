-- Each statement runs on a connection of its own, the largest first. The defaults of
-- pgbench_accounts were for loading only.
alter table pgbench_accounts
    add primary key (aid),
    alter abalance drop default,
    alter filler drop default;
alter table pgbench_tellers add primary key (tid);
alter table pgbench_branches add primary key (bid);
