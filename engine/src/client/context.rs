//! What the clients of one worker share.

use std::sync::Arc;

use crate::books::Books;
use crate::clock::Clock;
use crate::program::Mix;
use crate::schedule::Schedule;
use crate::statements::Statements;

/// How much a client does.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLimits {
    /// Transactions of the measurement; None: until its end.
    pub transactions: Option<u64>,
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
}
