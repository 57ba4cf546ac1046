//! What comes in: `plan.json`, written first in `pgdyno/contract.py`; `validate` lists every problem at once.
//!
//! A changed shape raises `CONTRACT_VERSION` in both halves.

mod load;
mod policies;

pub use load::{Arrival, ClosedLoad, Load, OpenLoad, PartlyOpenLoad, Sharing, Stage, ThinkTime};
pub use policies::{OnConnectionLoss, Reconnect, Retry, TransactionLog, WarmupEnds};

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Version of the shapes in this file and in `results.rs`.
pub const CONTRACT_VERSION: u32 = 1;

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One Query message with the values in its text.
    Simple,
    /// Parse, Bind, Execute each time.
    Extended,
    /// Parse once for each connection, then Bind and Execute.
    Prepared,
}

/// A result column that says whether a statement did its work, for functions that swallow errors.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Name of the column.
    pub column: String,
    /// The text it holds where the work was done; anything else makes the transaction failed (other).
    pub success: String,
}

/// One named kind of transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionType {
    /// Its name in results.
    pub name: String,
    /// Its share of the mix, relative to the others.
    pub weight: u32,
    /// File name for messages.
    pub source: String,
    /// The script, in pgbench's language.
    pub script: String,
    /// How a row tells that it failed.
    #[serde(default)]
    pub failure: Option<Failure>,
}

/// Which system interface moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReactorChoice {
    /// io_uring where it works, else epoll.
    Auto,
    /// io_uring or an error.
    #[serde(rename = "io_uring")]
    IoUring,
    /// epoll.
    Epoll,
}

/// How io_uring receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// One request for as long as the connection lives.
    #[default]
    Multishot,
    /// A new request after each receive.
    Oneshot,
}

/// What the engine is told to do. Exactly one of `duration_s` and `transactions_per_client` is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the shape.
    #[serde(default = "contract_version")]
    pub version: u32,
    /// A name for messages.
    #[allow(dead_code, reason = "part of the shape; whoever reads a plan wants it")]
    pub name: String,
    /// libpq conninfo or URI, without a password.
    pub conninfo: String,
    /// How statements are sent.
    #[serde(default = "prepared")]
    pub protocol: Protocol,
    /// Connections, each with one transaction at a time.
    pub clients: usize,
    /// Worker threads; 0: by `Plan::worker_count`'s rule.
    #[serde(default)]
    pub threads: usize,
    /// Shares of the clients with random choices of their own, whole ones to each worker: what pgbench calls threads.
    /// 0: one for each worker. Not part of the shape; a drop-in asks for it.
    #[serde(skip)]
    pub lanes: usize,
    /// CPUs to pin worker threads to, in turn; empty: none.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// io_uring or epoll.
    #[serde(default = "auto")]
    pub reactor: ReactorChoice,
    /// How io_uring receives.
    #[serde(default)]
    pub receive: Receive,
    /// Seed of every random choice.
    pub seed: u64,
    /// When transactions start.
    #[serde(default)]
    pub load: Load,
    /// A committed transaction whose response took longer is counted as late.
    #[serde(default)]
    pub response_time_limit_s: Option<f64>,
    /// Seconds before the measurement begins, at most.
    #[serde(default)]
    pub warmup_s: f64,
    /// Whether the warm-up may end earlier.
    #[serde(default)]
    pub warmup_ends: WarmupEnds,
    /// Seconds in which transactions of the measurement start.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Transactions each client does in the measurement.
    #[serde(default)]
    pub transactions_per_client: Option<u64>,
    /// Seconds between lines of `intervals.jsonl`.
    #[serde(default = "one_second")]
    pub interval_s: f64,
    /// Seconds for all clients to connect.
    #[serde(default = "half_minute")]
    pub connect_deadline_s: f64,
    /// Clients that must have a session at the start, whatever became of the others. None: a client may only be
    /// missing because it had no answer by the connect deadline, and at least one must have a session.
    #[serde(default)]
    pub min_clients: Option<usize>,
    /// Seconds for transactions in flight at the end.
    #[serde(default = "half_minute")]
    pub drain_deadline_s: f64,
    /// Seconds a request may take before it is cancelled; as long again without an answer, and the connection is
    /// closed. None: no limit.
    #[serde(default)]
    pub statement_timeout_s: Option<f64>,
    /// None: no transaction is tried again.
    #[serde(default)]
    pub retry: Option<Retry>,
    /// What a client does that lost its connection.
    #[serde(default)]
    pub on_connection_loss: OnConnectionLoss,
    /// How it connects again.
    #[serde(default)]
    pub reconnect: Reconnect,
    /// A sample of transactions, one line each.
    #[serde(default)]
    pub transaction_log: Option<TransactionLog>,
    /// Whether `history.jsonl` is written: begin and end of every try of every transaction.
    #[serde(default)]
    pub history: bool,
    /// Script variables, as pgbench's `-D`.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// The mix.
    pub transaction_types: Vec<TransactionType>,
    /// Settings read in a session of the load before it starts.
    #[serde(default = "session_settings")]
    pub session_settings: Vec<String>,
    /// Where results go; made where it is missing.
    pub output_dir: PathBuf,
}

fn contract_version() -> u32 {
    CONTRACT_VERSION
}
fn prepared() -> Protocol {
    Protocol::Prepared
}
fn auto() -> ReactorChoice {
    ReactorChoice::Auto
}
fn one_second() -> f64 {
    1.0
}
fn half_minute() -> f64 {
    30.0
}
fn session_settings() -> Vec<String> {
    vec!["synchronous_commit".into()]
}

/// Clients that one worker thread serves before the default rule adds another.
const CLIENTS_PER_WORKER: usize = 256;
/// The default rule leaves at least this many CPUs to the server for each one it takes.
const CPUS_PER_WORKER: usize = 4;
/// Longest time a plan may ask for: a year. Keeps nanoseconds far from overflow.
const LONGEST_S: f64 = 366.0 * 86_400.0;

impl Plan {
    /// Read a plan; the error says where in the file its shape is wrong.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the plan {}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Every problem of what the plan says, one line each; the scripts are checked by their language.
    pub fn validate(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        require(
            self.version == CONTRACT_VERSION,
            format!(
                "version is {}, this engine reads {CONTRACT_VERSION}",
                self.version
            ),
        );
        require(self.clients >= 1, "clients must be at least 1".into());
        require(
            self.duration_s.is_some() != self.transactions_per_client.is_some(),
            "exactly one of duration_s and transactions_per_client must be given".into(),
        );
        require(
            self.transactions_per_client != Some(0),
            "transactions_per_client must be at least 1".into(),
        );
        for (name, value, may_be_zero) in self.times_s() {
            let in_range = value.is_finite()
                && value <= LONGEST_S
                && (value > 0.0 || (may_be_zero && value == 0.0));
            require(
                in_range,
                format!(
                    "{name} must be {} and at most a year, not {value}",
                    if may_be_zero { "0 or more" } else { "above 0" }
                ),
            );
        }
        require(
            self.min_clients
                .is_none_or(|least| (1..=self.clients).contains(&least)),
            "min_clients must be at least 1 and at most clients".into(),
        );
        problems.extend(
            self.transaction_log
                .iter()
                .flat_map(TransactionLog::problems),
        );
        problems.extend(self.warmup_problem());
        problems.extend(self.load.problems());
        problems.extend(self.mix_problems());
        problems
    }

    /// A warm-up that is told to end needs a longest time, and a load whose course does not wait for its end.
    fn warmup_problem(&self) -> Option<String> {
        let told = self.warmup_ends == WarmupEnds::Told;
        let staged = matches!(&self.load, Load::Open(open) if !open.stages.is_empty());
        if told && self.warmup_s == 0.0 {
            Some("warmup_ends \"told\" needs warmup_s, after which it ends anyway".into())
        } else if told && staged {
            Some(
                "warmup_ends must be \"time\" where the load has stages, which begin after it"
                    .into(),
            )
        } else {
            None
        }
    }

    /// What is wrong with the transaction types, apart from their scripts.
    fn mix_problems(&self) -> Vec<String> {
        let types = &self.transaction_types;
        if types.is_empty() {
            return vec!["transaction_types is empty".into()];
        }
        let mut problems = Vec::new();
        if types.iter().all(|kind| kind.weight == 0) {
            problems.push("the weights of all transaction types are 0".into());
        }
        let mut names = HashSet::new();
        for TransactionType { name, .. } in types {
            // Names become tags of histogram logs, where a comma or a blank would end them.
            let plain = |c: char| c.is_alphanumeric() || "_-.@/+".contains(c);
            if name.is_empty() || !name.chars().all(plain) {
                let how = "must be named with letters, digits, '_', '-', '.'";
                problems.push(format!("transaction type '{name}' {how}"));
            }
            if !names.insert(name) {
                problems.push(format!("two transaction types are named '{name}'"));
            }
        }
        problems
    }

    /// Worker threads. 0 in the plan means the default rule: one thread for every 256 clients, but at most one for
    /// every four CPUs, and at least one. One busy thread spends the least CPU for each transaction, because it
    /// finds more answers each time it wakes, and whatever the engine does not use is the server's.
    pub fn worker_count(&self) -> usize {
        if self.threads > 0 {
            return self.threads.min(self.clients);
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        self.clients
            .div_ceil(CLIENTS_PER_WORKER)
            .min(cpus / CPUS_PER_WORKER)
            .max(1)
    }

    /// Shares of the clients with random choices of their own: at least one for each worker.
    pub fn lane_count(&self) -> usize {
        self.lanes.min(self.clients).max(self.worker_count())
    }

    /// The plan's times, and whether 0 is allowed.
    fn times_s(&self) -> Vec<(&'static str, f64, bool)> {
        let mut times = vec![
            ("warmup_s", self.warmup_s, true),
            ("interval_s", self.interval_s, false),
            ("connect_deadline_s", self.connect_deadline_s, false),
            ("drain_deadline_s", self.drain_deadline_s, false),
            (
                "reconnect.first_pause_s",
                self.reconnect.first_pause_s,
                false,
            ),
            (
                "reconnect.longest_pause_s",
                self.reconnect.longest_pause_s,
                false,
            ),
            ("reconnect.attempt_s", self.reconnect.attempt_s, false),
            ("reconnect.give_up_s", self.reconnect.give_up_s, false),
        ];
        if let Some(statement_timeout_s) = self.statement_timeout_s {
            times.push(("statement_timeout_s", statement_timeout_s, false));
        }
        if let Some(max_time_s) = self.retry.and_then(|retry| retry.max_time_s) {
            times.push(("retry.max_time_s", max_time_s, false));
        }
        if let Some(duration_s) = self.duration_s {
            times.push(("duration_s", duration_s, false));
        }
        if let Some(limit_s) = self.response_time_limit_s {
            times.push(("response_time_limit_s", limit_s, false));
        }
        times.extend(self.load.times_s());
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(extra: &str) -> Result<Plan, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"name": "x", "conninfo": "", "clients": 4, "seed": 18446744073709551615, "output_dir": "/o",
                "transaction_types": [{{"name": "a", "weight": 1, "source": "a.sql", "script": "SELECT 1;"}}]{extra}}}"#
        ))
    }

    #[test]
    fn defaults_are_the_contracts() {
        let plan = plan(r#", "duration_s": 1"#).unwrap();
        assert_eq!(Vec::<String>::new(), plan.validate());
        assert_eq!(
            (Protocol::Prepared, ReactorChoice::Auto, u64::MAX),
            (plan.protocol, plan.reactor, plan.seed)
        );
        assert_eq!(
            (Load::default(), None),
            (plan.load, plan.response_time_limit_s)
        );
        assert_eq!(
            (
                None,
                OnConnectionLoss::Abort,
                Reconnect::default(),
                None,
                false
            ),
            (
                plan.retry,
                plan.on_connection_loss,
                plan.reconnect,
                plan.statement_timeout_s,
                plan.history
            )
        );
        assert_eq!(
            (1.0, 30.0, 30.0),
            (
                plan.interval_s,
                plan.connect_deadline_s,
                plan.drain_deadline_s
            )
        );
    }

    #[test]
    fn open_load_and_unknown_fields() {
        let open =
            plan(r#", "duration_s": 1, "load": {"kind": "open", "rate_per_s": 100}"#).unwrap();
        assert!(open.load.is_open());
        assert!(plan(r#", "load": {"kind": "open", "rate_per_s": 100, "burst": 1}"#).is_err());
        assert!(plan(r#", "clientz": 1"#).is_err());
    }

    #[test]
    fn all_problems_come_at_once() {
        let text = r#", "version": 9, "warmup_s": -1, "load": {"kind": "open", "rate_per_s": 0}"#;
        let mut plan = plan(text).unwrap();
        plan.transaction_types[0].weight = 0;
        plan.transaction_types
            .push(plan.transaction_types[0].clone());
        plan.transaction_types[0].name = "a b".into();
        plan.min_clients = Some(9);
        plan.statement_timeout_s = Some(0.0);
        plan.reconnect.give_up_s = f64::NAN;
        plan.transaction_log = Some(TransactionLog {
            rate: 1.5,
            file: "../summary.json".into(),
        });
        let problems = plan.validate();
        for part in [
            "min_clients",
            "statement_timeout_s",
            "give_up_s",
            "log.rate",
            "log.file",
            "version is 9",
            "exactly one of",
            "warmup_s",
            "rate_per_s",
            "weights",
            "'a b'",
        ] {
            assert!(
                problems.iter().any(|problem| problem.contains(part)),
                "{part} in {problems:?}"
            );
        }
    }

    #[test]
    fn threads_never_exceed_clients() {
        let mut plan = plan(r#", "duration_s": 1, "threads": 9"#).unwrap();
        assert_eq!(4, plan.worker_count());
        plan.threads = 0;
        assert_eq!(1, plan.worker_count());
    }
}
