//! What the clients of one worker share.

use std::sync::Arc;

use super::rules::{CommandTimes, Rules};
use crate::books::Books;
use crate::clock::{Clock, seconds_to_ns};
use crate::plan::{OnConnectionLoss, Plan};
use crate::program::Mix;
use crate::schedule::Schedule;
use crate::statements::Statements;

/// How much a client does.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLimits {
    /// Transactions of the measurement; None: until its end.
    pub transactions: Option<u64>,
    /// Whether a transaction is tried again.
    pub retry: Option<RetryPolicy>,
    /// How long a request may take.
    pub statement_timeout_ns: Option<u64>,
    /// Whether a client that lost its connection connects again.
    pub reconnect: bool,
}

/// When a transaction that failed by serialization or deadlock is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first try included; 0: without limit.
    pub max_tries: u32,
    /// No try begins later than this after the intended start.
    pub max_time_ns: u64,
}

impl ClientLimits {
    /// What the plan says.
    pub fn of(plan: &Plan) -> Self {
        let policy = |retry: crate::plan::Retry| RetryPolicy {
            max_tries: retry.max_tries,
            max_time_ns: retry.max_time_s.map_or(u64::MAX, seconds_to_ns),
        };
        Self {
            transactions: plan.transactions_per_client,
            retry: plan.retry.map(policy),
            statement_timeout_ns: plan.statement_timeout_s.map(seconds_to_ns),
            reconnect: plan.on_connection_loss == OnConnectionLoss::Reconnect,
        }
    }
}

/// See the module.
pub struct Context {
    /// The time.
    pub clock: Clock,
    /// Which transaction type is next.
    pub mix: Box<dyn Mix>,
    /// When the next transaction starts; None before the start.
    pub schedule: Option<Schedule>,
    /// What happened.
    pub books: Books,
    /// What the statements are.
    pub statements: Arc<Statements>,
    /// How much each client does.
    pub limits: ClientLimits,
    /// Settings to be read in one session.
    pub session_settings: Arc<[String]>,
    /// pgbench's, where they hold.
    pub rules: Option<Rules>,
}

impl Context {
    /// Whether each command's time is to be recorded.
    #[inline]
    pub fn times_commands(&self) -> bool {
        self.rules
            .as_ref()
            .is_none_or(|rules| rules.command_times == CommandTimes::Kept)
    }
}
