//! The script language of pgbench: scripts become a `Language`, and each client gets a `Program`.
