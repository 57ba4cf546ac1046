//! pgbench, drop-in: the engine called as `pgbench` (a symlink), or `pgdyno-engine pgbench …`.
//!
//! ```text
//! words ─getopt─► pairs ─arguments─► Options ─┬─ -i ─► init
//!                                             └─ else ─► target ─► preparation ─► benchmark ─► report
//! ```
//!
//! `docs/pgbench.md` says where it differs from the stock program on purpose.

#[allow(dead_code, reason = "the run comes")]
mod aggregate;
mod arguments;
mod builtin;
mod checks;
mod emulation;
mod getopt;
#[allow(dead_code, reason = "the run comes")]
mod init;
#[allow(dead_code, reason = "the run comes")]
mod log;
mod numbers;
mod options;
#[allow(dead_code, reason = "the run comes")]
mod outlet;
#[allow(dead_code, reason = "the run comes")]
mod progress;
#[allow(dead_code, reason = "the run comes")]
mod report;
#[allow(dead_code, reason = "the run comes")]
mod results;
mod scripts;
mod seed;
mod stop;
mod table;
#[allow(dead_code, reason = "the run comes")]
mod tally;
#[cfg(test)]
mod test_options;
mod voice;

#[allow(unused_imports, reason = "read as the parts come")]
use options::Options;
