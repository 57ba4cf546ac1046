//! The trait between a language and the client that carries it out: what to do next, given what the server said.
//!
//! A [`Language`] is made once from a plan. It numbers every command of every script ([`StatementId`]), so that
//! recorders, prepared statements and results are plain arrays, and it makes one [`Program`] for each client and
//! one [`Mix`] for each worker, on the worker's own thread.
//!
//! The client drives its program like this:
//!
//! ```text
//! transaction_type = mix.choose()
//! program.begin(transaction_type)
//! loop { match program.next(&mut outgoing) {
//!     Request { statement }  the client adds Sync where the protocol needs it, sends, and waits; then, as they come:
//!                            program.columns, program.row (only where `wants_rows`), program.complete, and next again
//!     Queued  { statement }  written but not sent: a pipeline is open; next again at once
//!     Flush   { statement }  \endpipeline: Sync, send, wait for every statement queued
//!     Local   { statement }  a meta command ran; it is timed too; next again at once
//!     Sleep   { statement, duration_ns }   next again after it
//!     Done                   the script is through: the transaction ended
//!     Abort(…)               the program cannot go on: the transaction failed and this client ends
//! } }
//! ```
//!
//! After an error of the server the client never calls `next` in that transaction again: it rolls back where a
//! block is open, then calls `rewind` (to try again) or `begin`. Nothing here may allocate per transaction in the
//! steady state: an error may.

use crate::wire::message::{Columns, Row};
use crate::wire::outgoing::Outgoing;

/// One command of one script, numbered over all scripts of the plan from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementId(pub u32);

impl StatementId {
    /// Place in arrays that hold something for every statement.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a command is: only SQL goes to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Sent to the server; one message in the simple protocol, which may hold several commands joined by `\;`.
    Sql,
    /// Carried out by the program: `\set`, `\sleep`, `\if`, …
    Meta,
}

/// What is known of a command before the start.
#[derive(Clone, Debug)]
pub struct StatementDefinition {
    /// Index into the plan's transaction types.
    pub transaction_type: usize,
    /// Number within its script, from 1, meta commands included (`\gset` belongs to its SQL and has none).
    pub number: u32,
    /// SQL or meta.
    pub kind: StatementKind,
    /// What results and messages show: its first line as written.
    pub label: String,
    /// Text for Parse, with `$1`…; in the simple protocol the text as written; empty for meta commands.
    pub sql: String,
    /// How many `$n` the text has.
    pub parameters: u16,
    /// Whether the program wants `columns` and `row` for it (`\gset`, `\aset`).
    pub wants_rows: bool,
}

/// A problem of a script, with its place; printed with the source line and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptProblem {
    /// File name as the plan gives it in `source`.
    pub source: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong: lower case, one line.
    pub message: String,
    /// The line it stands in.
    pub source_line: String,
}

/// Compiled scripts: the table of statements, and what runs them.
pub trait Language: Send + Sync {
    /// Every command of every script; `StatementId` is the index.
    fn statements(&self) -> &[StatementDefinition];
    /// The program of client `client` (from 0, over all workers).
    fn program(&self, client: usize) -> Box<dyn Program>;
    /// The choice of transaction types, for one worker.
    fn mix(&self) -> Box<dyn Mix>;
    /// Draws from [0, 1) that space open-loop arrivals, from a generator of this worker's own.
    fn arrival_draws(&self, worker: usize) -> Box<dyn FnMut() -> f64>;
}

/// Chooses transaction types by weight. pgbench draws per thread, so each lane has a generator of its own.
pub trait Mix {
    /// Index into the plan's transaction types, for this client (numbered over all workers).
    fn choose(&mut self, client: usize) -> usize;
}

/// What the client must do next. See the module for the protocol.
#[derive(Debug)]
pub enum Step {
    /// One statement was written to `outgoing`; wait for its answer.
    Request {
        /// Which.
        statement: StatementId,
    },
    /// One statement was written inside an open pipeline; nothing is awaited yet.
    Queued {
        /// Which.
        statement: StatementId,
    },
    /// The pipeline ends here: send everything and wait for all of it.
    Flush {
        /// The meta command that ended it.
        statement: StatementId,
    },
    /// A meta command was carried out.
    Local {
        /// Which.
        statement: StatementId,
    },
    /// Wait this long. The time counts as the command's and the transaction's.
    Sleep {
        /// Which.
        statement: StatementId,
        /// How long, in nanoseconds.
        duration_ns: u64,
    },
    /// The script has ended.
    Done,
    /// The program cannot go on (a meta command that fails).
    Abort(Box<Abort>),
}

/// Why a program cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// The command that failed.
    pub statement: StatementId,
    /// What is wrong: one line.
    pub message: String,
}

/// One result of the server: how a command of a statement ended. A `\;` compound has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which statement.
    pub statement: StatementId,
    /// Rows it returned.
    pub rows: u64,
    /// False where the server answered with an error.
    pub succeeded: bool,
}

/// One client's way through its transactions.
pub trait Program {
    /// Start a transaction of this type (index into the plan's transaction types).
    fn begin(&mut self, transaction_type: usize);
    /// Do the next command: write its bytes to `outgoing`, or carry it out.
    fn next(&mut self, outgoing: &mut Outgoing) -> Step;
    /// The result of `statement` has these columns. In the prepared protocol told once for each connection.
    fn columns(&mut self, statement: StatementId, columns: &Columns<'_>);
    /// One row of `statement`; values in text format.
    fn row(&mut self, statement: StatementId, row: &Row<'_>);
    /// One command of a statement ended.
    fn complete(&mut self, completion: Completion);
    /// In the simple protocol, the statement that was written last, as it was sent.
    fn sent_text(&self) -> &[u8];
    /// Go back to the start of the current transaction, with the generator as it was then.
    fn rewind(&mut self);
}
