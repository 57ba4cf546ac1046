//! What a plan says about trouble (retries, lost connections, time limits) and about records on request.

use serde::Deserialize;

/// Whether a transaction that failed by serialization or deadlock is tried again, as pgbench's `--max-tries`.
///
/// No try begins after the end of the measurement or after a signal.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Tries of one transaction, the first one included; 0: without limit (then `max_time_s` may limit it).
    pub max_tries: u32,
    /// No try begins later than this after the intended start, in seconds.
    #[serde(default)]
    pub max_time_s: Option<f64>,
}

/// What ends the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WarmupEnds {
    /// Its length.
    #[default]
    Time,
    /// SIGUSR1, with the interval it comes in; its length at the latest.
    Told,
}

/// What a client does that lost its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConnectionLoss {
    /// It ends; the others go on.
    #[default]
    Abort,
    /// It connects again, as `Reconnect` says.
    Reconnect,
}

/// How a client connects again: at once, then after pauses that double.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reconnect {
    /// The pause after the first attempt that failed, in seconds.
    pub first_pause_s: f64,
    /// The longest pause, in seconds.
    pub longest_pause_s: f64,
    /// How long one attempt may take, in seconds.
    pub attempt_s: f64,
    /// A client without a session for this long ends, in seconds.
    pub give_up_s: f64,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first_pause_s: 0.05,
            longest_pause_s: 1.0,
            attempt_s: 10.0,
            give_up_s: 60.0,
        }
    }
}

/// A sample of transactions, one line each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionLog {
    /// The share of transactions that is written: above 0, at most 1.
    pub rate: f64,
    /// The file's name in the output folder.
    #[serde(default = "transaction_log_file")]
    pub file: String,
}

fn transaction_log_file() -> String {
    "transactions.log.jsonl".into()
}

/// Names of files the engine writes anyway.
const TAKEN: &[&str] = &[
    "summary.json",
    "intervals.jsonl",
    "history.jsonl",
    "plan.json",
    "transactions.hlog",
    "statements.hlog",
];

impl TransactionLog {
    /// What is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            problems.push(format!(
                "transaction_log.rate must be above 0 and at most 1, not {}",
                self.rate
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let named = !self.file.starts_with('.') && self.file.chars().all(plain);
        if self.file.is_empty() || !named || TAKEN.contains(&self.file.as_str()) {
            problems.push(format!(
                "transaction_log.file must be a plain file name that is not the engine's own, not '{}'",
                self.file
            ));
        }
        problems
    }
}
