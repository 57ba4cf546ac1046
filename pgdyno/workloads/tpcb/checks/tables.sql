-- Rows and sums of the four tables, one row. Reads all of pgbench_accounts: about 0.1 s for a million accounts.
select
    b.branches, b.branches_balance,
    t.tellers, t.tellers_balance,
    a.accounts, a.accounts_balance,
    h.history_rows, h.history_delta,
    k.primary_keys
from
    (select count(*) as branches, coalesce(sum(bbalance), 0) as branches_balance
     from pgbench_branches) b,
    (select count(*) as tellers, coalesce(sum(tbalance), 0) as tellers_balance
     from pgbench_tellers) t,
    (select count(*) as accounts, coalesce(sum(abalance), 0) as accounts_balance
     from pgbench_accounts) a,
    (select count(*) as history_rows, coalesce(sum(delta), 0) as history_delta
     from pgbench_history) h,
    (select count(*) as primary_keys
     from pg_catalog.pg_index
     where indisprimary and indrelid in (
         'pgbench_branches'::regclass, 'pgbench_tellers'::regclass, 'pgbench_accounts'::regclass
     )) k
