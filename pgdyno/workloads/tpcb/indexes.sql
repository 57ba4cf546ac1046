-- Each statement runs on a connection of its own, the largest first.
alter table pgbench_accounts add primary key (aid);
alter table pgbench_tellers add primary key (tid);
alter table pgbench_branches add primary key (bid);
