"""PostgreSQL servers: found, started, configured, stopped, and always cleaned up."""
