-- Balances begin at 0; an account has a blank filler, the others none. What is the same for all
-- accounts is a default (see schema.sql). Frozen rows need no vacuum afterwards.
-- section branches: scale rows
COPY pgbench_branches (bid, bbalance) FROM STDIN WITH (FREEZE);
:row	0
\.

-- section tellers: 10 * scale rows
COPY pgbench_tellers (tid, bid, tbalance) FROM STDIN WITH (FREEZE);
\set bid (:row - 1) / 10 + 1
:row	:bid	0
\.

-- section accounts: 100_000 * scale rows
COPY pgbench_accounts (aid, bid) FROM STDIN WITH (FREEZE);
\set bid (:row - 1) / 100000 + 1
:row	:bid
\.
