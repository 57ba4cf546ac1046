-- Before data we loaded is used again: history begins empty, as it does for pgbench.
truncate pgbench_history;
