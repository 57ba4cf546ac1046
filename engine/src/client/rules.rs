//! What a client does where pgbench's rules differ from a plan's, and who is told as it happens.

use std::sync::Arc;

use crate::program::{Abort, StatementId};
use crate::wire::message::ServerError;

/// How long a session lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// As long as the client.
    Kept,
    /// One transaction.
    PerTransaction,
}

/// What an error of the server does that is neither a serialization failure nor a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// It ends the client.
    EndClient,
    /// It fails the transaction.
    FailTransaction,
}

/// What a client that ends early does to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAbort {
    /// They go on.
    OthersGoOn,
    /// They end.
    AllEnd,
}

/// Whether anybody wants to know how long single commands took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandTimes {
    /// Somebody does.
    Kept,
    /// Nobody does: commands that are not sent to the server need no look at the clock.
    Unwanted,
}

/// See the module.
///
/// A transaction whose client ends in it is cut off: in flight at the end, neither committed nor failed.
#[derive(Clone)]
pub struct Rules {
    /// How long a session lasts.
    pub sessions: SessionUse,
    /// What most errors do.
    pub after_error: AfterError,
    /// What the end of a client does.
    pub after_abort: AfterAbort,
    /// What is kept of single commands.
    pub command_times: CommandTimes,
    /// Who is told.
    pub witness: Arc<dyn Witness>,
}

/// Where a client is in its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Number of the client over all workers.
    pub client: usize,
    /// Index of its script.
    pub script: usize,
    /// The command under way; where a pipeline is answered, the one that ended it.
    pub statement: StatementId,
    /// Results of it so far.
    pub results: u32,
}

/// A transaction that failed: how far its tries went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Tries so far.
    pub tries: u32,
    /// From its intended start to now.
    pub spent_ns: u64,
}

/// What happened.
pub enum Happening<'a> {
    /// A script begins.
    ScriptBegins,
    /// A statement is sent; its text as sent in the simple protocol, None in the others.
    Sending(Option<&'a [u8]>),
    /// An answer is awaited.
    Receiving,
    /// A meta command was carried out.
    Executed,
    /// An error that fails the transaction, which may be tried again.
    Failed(&'a ServerError<'a>, Option<&'a str>),
    /// The transaction is tried again.
    Repeats(Tried),
    /// It is not: it has failed.
    GivesUp(Tried),
    /// An error that ends the client; and the statement, where its text is known.
    EndedByError(&'a ServerError<'a>, Option<&'a str>),
    /// The same, when the statement was being prepared.
    EndedByParse(&'a ServerError<'a>, &'a str),
    /// The connection is gone, and with it the client.
    ConnectionLost(&'a str),
    /// No new connection can be had, and that ends the client.
    NotConnected(&'a str),
    /// A command cannot be carried out, and that ends the client.
    CannotGoOn(&'a Abort),
    /// COPY, and that ends the client.
    Copy,
    /// The script ended in a transaction block, and so does the client.
    BlockOpen,
    /// The server says something.
    Notice(&'a ServerError<'a>),
}

/// Is told what happens to clients, on their workers' threads.
pub trait Witness: Send + Sync {
    /// Whether it wants to know of every step, not only of trouble.
    fn wants_steps(&self) -> bool;
    /// Something happened.
    fn saw(&self, spot: Spot, happening: Happening<'_>);
}
