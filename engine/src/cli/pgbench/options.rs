//! What the options say, as plain values; `arguments.rs` makes it, everything else reads it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::emulation::Emulation;
use crate::plan::Protocol;

/// Options without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// `-n`: no vacuum, neither before a run nor by `-i`.
    NoVacuum,
    /// `-v`: vacuum pgbench_accounts, too.
    VacuumAll,
    /// `-C`: a connection for each transaction.
    Connect,
    /// `-l`: write a log.
    Log,
    /// `-r`: times by command.
    ReportPerCommand,
    /// `--debug`.
    Debug,
    /// `--progress-timestamp`.
    ProgressTimestamp,
    /// `--failures-detailed`.
    FailuresDetailed,
    /// `--verbose-errors`.
    VerboseErrors,
    /// `--exit-on-abort`.
    ExitOnAbort,
    /// `--continue-on-error`.
    ContinueOnError,
    /// `-q`: fewer messages of `-i`.
    Quiet,
    /// `--foreign-keys`.
    ForeignKeys,
    /// `--unlogged-tables`.
    UnloggedTables,
    /// Ours: a client that lost its connection connects again.
    Reconnect,
    /// Ours: `-T` counts from before the first connection, as stock does.
    TimeIncludesConnect,
    /// Ours: say when the generator itself was the limit.
    Advise,
}

/// How pgbench_accounts is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionMethod {
    /// By ranges of aid.
    Range,
    /// By a hash of aid.
    Hash,
}

/// What `-i` is told. Absent values are pgbench's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitOptions {
    /// Steps in order, `dtgGvpf` and blanks; already without `v` under `-n`, and with `f` under `--foreign-keys`.
    pub steps: String,
    /// Percent.
    pub fillfactor: u32,
    /// Where tables go.
    pub tablespace: Option<String>,
    /// Where indexes go.
    pub index_tablespace: Option<String>,
    /// Of pgbench_accounts; 0: it is an ordinary table.
    pub partitions: u32,
    /// How; `Range` unless it was given.
    pub partition_method: PartitionMethod,
    /// Ours: connections that load at once.
    pub jobs: usize,
}

/// A script in the order of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What reports call it: a built-in one's description, else the file's name.
    pub description: String,
    /// Its text.
    pub text: String,
    /// Share of the mix.
    pub weight: u32,
    /// Whether it is one of pgbench's own.
    pub origin: Origin,
}

/// Where a script comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// One of pgbench's own.
    BuiltIn,
    /// `-f`.
    File,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// `-t`: so many transactions of each client.
    Transactions(u32),
    /// `-T`: so many seconds.
    Seconds(u32),
}

/// Everything that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The version whose words are used.
    pub emulation: Emulation,
    /// Options without a value that were given.
    pub switches: BTreeSet<Switch>,
    /// `-h`, `-p`, `-U`, and the database as it was given (a name, a conninfo or a URI).
    pub host: Option<String>,
    /// See `host`.
    pub port: Option<String>,
    /// See `host`.
    pub user: Option<String>,
    /// See `host`.
    pub database: Option<String>,
    /// `-i` and what belongs to it; None: benchmark.
    pub init: Option<InitOptions>,
    /// `-s`; None: not given (then 1).
    pub scale: Option<u32>,
    /// `-c`.
    pub clients: usize,
    /// `-j`, at most as many as clients.
    pub jobs: usize,
    /// `-t` or `-T`.
    pub length: Length,
    /// `-M`.
    pub protocol: Protocol,
    /// The mix.
    pub scripts: Vec<Script>,
    /// `-D`.
    pub variables: Vec<(String, String)>,
    /// `-R`: transactions per second over all clients.
    pub rate_per_s: Option<f64>,
    /// `-L`.
    pub latency_limit: Option<Duration>,
    /// `--max-tries`; 0: without limit.
    pub max_tries: u32,
    /// `-P`, seconds.
    pub progress_s: Option<u32>,
    /// `--sampling-rate`, above 0 up to 1.
    pub sampling_rate: Option<f64>,
    /// `--aggregate-interval`, seconds.
    pub aggregate_interval_s: Option<u32>,
    /// `--log-prefix`.
    pub log_prefix: String,
    /// Of every random choice.
    pub seed: u64,
    /// Ours: percentiles to report, in percent.
    pub percentiles: Vec<f64>,
    /// Ours: a JSON document of everything.
    pub json: Option<PathBuf>,
    /// Ours: an HdrHistogram log.
    pub hdr: Option<PathBuf>,
}

impl Options {
    /// Whether an option without a value was given.
    pub fn has(&self, switch: Switch) -> bool {
        self.switches.contains(&switch)
    }
}
