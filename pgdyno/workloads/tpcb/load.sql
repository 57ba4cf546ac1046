-- Balances begin at 0; an account has a blank filler, the others none.
-- section branches: scale rows
COPY pgbench_branches (bid, bbalance) FROM STDIN;
:row	0
\.

-- section tellers: 10 * scale rows
COPY pgbench_tellers (tid, bid, tbalance) FROM STDIN;
\set bid (:row - 1) / 10 + 1
:row	:bid	0
\.

-- section accounts: 100_000 * scale rows
COPY pgbench_accounts (aid, bid, abalance, filler) FROM STDIN;
\set bid (:row - 1) / 100000 + 1
:row	:bid	0	
\.
