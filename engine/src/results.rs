//! What goes out: `summary.json` and the lines of `intervals.jsonl`, written first in `pgdyno/contract.py`.
//!
//! Nanoseconds are on the engine's monotonic clock. A changed shape raises `CONTRACT_VERSION` in both halves.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;

use crate::plan::CONTRACT_VERSION;

/// How the engine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All the plan asked for.
    Completed,
    /// A signal ended it; what was in flight was finished where the deadline allowed.
    Interrupted,
    /// It could not go on.
    Aborted,
}

/// Which part of the work a transaction belongs to: the one in which it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Recorded, but kept apart.
    Warmup,
    /// What counts.
    Measurement,
}

impl Phase {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::Warmup, Self::Measurement];

    /// Place in an array of both phases.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Failed transactions by class of SQLSTATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// 40001.
    pub serialization: u64,
    /// 40P01.
    pub deadlock: u64,
    /// Any other error, a failure column, a failed meta command.
    pub other: u64,
    /// 08xxx, 57P01 to 57P03, or the connection ended where nothing could have been committed.
    pub connection: u64,
}

impl Failed {
    /// All failed transactions.
    pub fn total(&self) -> u64 {
        self.serialization + self.deadlock + self.other + self.connection
    }
}

impl AddAssign for Failed {
    fn add_assign(&mut self, other: Self) {
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
        self.connection += other.connection;
    }
}

/// A partition: scheduled = committed + failed + unknown + skipped + in_flight_at_end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// All transactions whose end is known, and those that were cut off.
    pub scheduled: u64,
    /// The script ended and the server acknowledged everything.
    pub committed: u64,
    /// By class.
    pub failed: Failed,
    /// The connection was lost while a message that could commit was unanswered.
    pub unknown: u64,
    /// Never started: too far behind the schedule.
    pub skipped: u64,
    /// Not finished when the drain deadline came.
    pub in_flight_at_end: u64,
    /// Transactions that were tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Committed ones whose response took longer than the plan's limit.
    pub late: u64,
}

impl Counters {
    /// Whether the partition holds.
    pub fn add_up(&self) -> bool {
        let ended = self.committed + self.failed.total() + self.unknown;
        self.scheduled == ended + self.skipped + self.in_flight_at_end
            && self.late <= self.committed
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        debug_assert!(
            self.add_up() && other.add_up(),
            "{self:?} and {other:?} must add up"
        );
        self.scheduled += other.scheduled;
        self.committed += other.committed;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.in_flight_at_end += other.in_flight_at_end;
        self.retried += other.retried;
        self.retries += other.retries;
        self.late += other.late;
        debug_assert!(self.add_up(), "{self:?} must add up");
    }
}

/// Times of one kind. Sums are exact, percentiles come from the histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Series {
    pub count: u64,
    pub sum_ns: u128,
    pub sum_squares_ns2: u128,
    pub min_ns: u64,
    pub max_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub p99_9_ns: u64,
    pub p99_99_ns: u64,
}

/// Times of committed transactions. Without a schedule there is no lag, and response time is service time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Actual start to completion.
    pub service: Series,
    /// Intended start to actual start.
    pub lag: Option<Series>,
    /// Intended start to completion.
    pub response: Option<Series>,
}

/// Which engine did this, and how.
#[derive(Clone, Debug, Serialize)]
pub struct EngineFacts {
    /// Of this program.
    pub version: String,
    /// `io_uring` or `epoll`.
    pub reactor: &'static str,
    /// Worker threads.
    pub threads: usize,
    /// Process id.
    pub pid: u32,
}

/// One instant read on both clocks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClockAnchor {
    /// The engine's clock.
    pub monotonic_ns: u64,
    /// Since 1970.
    pub wall_unix_ns: u64,
}

/// When the engine reached what; None where it never did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timeline {
    /// The first connection was begun.
    pub connect_begin_ns: u64,
    /// The last client was ready.
    pub connect_end_ns: Option<u64>,
    /// The first transaction could start.
    pub warmup_begin_ns: Option<u64>,
    /// The first transaction that counts could start.
    pub measurement_begin_ns: Option<u64>,
    /// No transaction was started after this.
    pub measurement_end_ns: Option<u64>,
    /// The last one in flight had finished.
    pub drain_end_ns: Option<u64>,
}

/// What became of one transaction type during the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct TransactionTypeResult {
    /// From the plan.
    pub name: String,
    /// From the plan.
    pub weight: u32,
    /// Of the measurement.
    pub counters: Counters,
    /// Commits the server acknowledged.
    pub server_commits: u64,
    /// Of committed transactions.
    pub times: Times,
}

/// One command of one script.
#[derive(Clone, Debug, Serialize)]
pub struct StatementResult {
    /// Name of its type.
    pub transaction_type: String,
    /// From 1.
    pub number: u32,
    /// `sql` or `meta`.
    pub kind: &'static str,
    /// Its first line as written.
    pub text: String,
    /// Of executions without an error.
    pub time: Series,
    /// Rows it returned.
    pub rows: u64,
    /// Executions the server answered with an error.
    pub errors: u64,
    /// Bytes of COPY data it sent.
    pub copy_bytes: u64,
}

/// One kind of error: same SQLSTATE, same place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorSeen {
    /// None for an error that is not the server's.
    pub sqlstate: Option<String>,
    /// Primary text of the first one.
    pub message: String,
    /// Where it happened, if in a transaction.
    pub transaction_type: Option<String>,
    /// The statement's number.
    pub statement: Option<u32>,
    /// None before the start.
    pub phase: Option<Phase>,
    /// How many.
    pub count: u64,
    /// The first one.
    pub first_ns: u64,
    /// The last one.
    pub last_ns: u64,
}

/// A time in which connections were lost, of all clients: from the first one lost until all lost ones had a session
/// again. Without clients that connect again it never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// The first connection was lost.
    pub lost_ns: u64,
    /// Connections lost in it.
    pub connections_lost: u64,
    /// Attempts to connect again.
    pub attempts: u64,
    /// The last lost client had a session again; None: one never had.
    pub restored_ns: Option<u64>,
    /// The last commit before the longest time without any commit of the engine; None: none before.
    pub last_success_ns: Option<u64>,
    /// The first commit after it; None: none before the end.
    pub first_success_ns: Option<u64>,
}

/// One client's share of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientResult {
    /// Transactions.
    pub committed: u64,
    /// Sum of their service times.
    pub sum_service_ns: u64,
}

/// What the measurement cost the engine itself, and how well it kept its own time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OwnCost {
    /// Of all threads.
    pub cpu_user_ns: u64,
    /// Of all threads.
    pub cpu_sys_ns: u64,
    /// Largest resident size so far.
    pub max_rss_bytes: u64,
    /// Turns of the reactors.
    pub loops: u64,
    /// Completions handled.
    pub events: u64,
    /// Worker threads were ready to run for so long and waited for a CPU; None where the kernel does not tell.
    pub run_delay_ns: Option<u64>,
    /// Turns by how many completions they found: none, one, 2–3, 4–7, 8–15, …
    pub batch_sizes: Vec<u64>,
    /// How late timers (starts, think times, sleeps) were acted upon; None where there was none.
    pub schedule_error: Option<Series>,
}

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Of the shape.
    pub version: u32,
    /// Which engine.
    pub engine: EngineFacts,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was not completed.
    pub message: Option<String>,
    /// Ties the two clocks.
    pub clock: ClockAnchor,
    /// When what was reached.
    pub timeline: Timeline,
    /// From the plan.
    pub clients_asked: usize,
    /// How many were ready.
    pub clients_connected: usize,
    /// Time from the first attempt to ready, one value for each connected client.
    pub connect_time: Option<Series>,
    /// As the server reports it.
    pub server_version: Option<String>,
    /// Read in a session of the load.
    pub session_settings: BTreeMap<String, String>,
    /// Transactions started in the warm-up.
    pub warmup: Counters,
    /// The same by type.
    pub warmup_by_type: BTreeMap<String, Counters>,
    /// Commits acknowledged in transactions of the warm-up.
    pub warmup_server_commits: u64,
    /// Transactions started in the measurement.
    pub measurement: Counters,
    /// Commits acknowledged in them.
    pub server_commits: u64,
    /// Of committed transactions of the measurement.
    pub times: Times,
    /// In the plan's order.
    pub transaction_types: Vec<TransactionTypeResult>,
    /// In the scripts' order.
    pub statements: Vec<StatementResult>,
    /// In the order of client numbers.
    pub clients: Vec<ClientResult>,
    /// Sorted by count, most frequent first.
    pub errors: Vec<ErrorSeen>,
    /// In the order they began.
    pub outages: Vec<Outage>,
    /// Notices and warnings of the server to clients at work.
    pub notices: u64,
    /// Requests cancelled because they took longer than `statement_timeout_s`.
    pub statement_timeouts: u64,
    /// Lines the sampled log should have had and could not be kept for; 0 means it is complete.
    pub transaction_log_dropped: u64,
    /// Over the measurement.
    pub own_cost: Option<OwnCost>,
}

/// One transaction type within one interval.
#[derive(Clone, Debug, Serialize)]
pub struct IntervalType {
    /// Transactions that ended in it.
    pub counters: Counters,
    /// Of the committed ones.
    pub service: Series,
    /// Only in an open loop.
    pub lag: Option<Series>,
    /// Only in an open loop.
    pub response: Option<Series>,
}

/// One line of `intervals.jsonl`: what completed between `begin_ns` and `end_ns`.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    /// Of the shape.
    pub version: u32,
    /// Phase in which its transactions were started.
    pub phase: Phase,
    /// First instant of it.
    pub begin_ns: u64,
    /// First instant after it.
    pub end_ns: u64,
    /// Transactions that ended in it.
    pub counters: Counters,
    /// Commits acknowledged in it.
    pub server_commits: u64,
    /// Transactions under way at its end.
    pub in_flight: u64,
    /// Clients that had a session at its end.
    pub clients_connected: usize,
    /// Of the committed ones.
    pub times: Times,
    /// By transaction type.
    pub types: BTreeMap<String, IntervalType>,
    /// Of the whole engine.
    pub cpu_user_ns: u64,
    /// Of the whole engine.
    pub cpu_sys_ns: u64,
}

/// Version of the shapes written.
pub const RESULT_VERSION: u32 = CONTRACT_VERSION;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn counters()(parts in proptest::array::uniform11(0_u64..1 << 40)) -> Counters {
            let failed = Failed { serialization: parts[0], deadlock: parts[1], other: parts[2], connection: parts[3] };
            let mut counters = Counters {
                scheduled: 0, committed: parts[4], failed, unknown: parts[5], skipped: parts[6],
                in_flight_at_end: parts[7], retried: parts[8], retries: parts[9], late: parts[10].min(parts[4]),
            };
            counters.scheduled = parts[..8].iter().sum();
            counters
        }
    }

    proptest! {
        #[test]
        fn merged_counters_still_add_up(a in counters(), b in counters()) {
            let mut merged = a;
            merged += b;
            prop_assert!(merged.add_up());
            let mut other_way = b;
            other_way += a;
            prop_assert_eq!(merged, other_way);
            prop_assert_eq!(a.committed + b.committed, merged.committed);
            prop_assert_eq!(a.failed.total() + b.failed.total(), merged.failed.total());
        }
    }

    #[test]
    fn counters_that_miss_one_do_not_add_up() {
        assert!(
            !Counters {
                scheduled: 2,
                committed: 1,
                ..Counters::default()
            }
            .add_up()
        );
    }

    #[test]
    fn sums_of_squares_are_written_in_full() {
        let series = Series {
            sum_squares_ns2: u128::from(u64::MAX) * 7,
            ..Series::default()
        };
        assert!(
            serde_json::to_string(&series)
                .unwrap()
                .contains("129127208515966861305")
        );
    }
}
