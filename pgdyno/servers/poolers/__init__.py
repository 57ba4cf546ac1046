"""Poolers and balancers in front of servers: pgpool-II, PgBouncer, HAProxy."""
