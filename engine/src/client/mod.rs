//! One client: program × connection × schedule → books. A state machine without I/O; see [`State`].
//!
//! The worker tells it what happened (bytes came, a timer went off, the connection closed) and carries out what it
//! answers ([`Next`]); what it has to send lies in `outgoing`. Between the intended start of a transaction and its
//! record nothing here allocates, locks or formats; an error may.

mod aborting;
mod context;
mod opening;
pub mod rules;
mod running;
#[cfg(test)]
mod tests;
mod transactions;
mod trouble;

pub use context::{ClientLimits, Context};
pub use opening::Session;

use std::sync::Arc;

use crate::outcome::{CommitCount, FailureClass, TransactionOutcome};
use crate::program::{Program, StatementId};
use crate::results::Phase;
use crate::wire::incoming::Incoming;
use crate::wire::outgoing::Outgoing;
use crate::wire::startup::{Particulars, Startup};
use crate::wire::target::Target;
use crate::wire::tls::Channel;

/// Where a client is.
///
/// ```text
/// Closed ─connected→ (Securing →) Opening ─ready→ Asking → Idle ─start→ Waiting ⇄ Sleeping
///                                      ↑        ↑             │ error in a block
///                                 (client 0)    └──ended──────┴→ RollingBack → Idle
/// any of them ─connection lost, program aborted→ Closed, for good unless it connects again
/// ```
#[derive(Debug)]
enum State {
    /// No connection: not yet, or no more.
    Closed,
    /// TLS is being agreed on.
    Securing,
    /// The session is being opened.
    Opening(Box<Opening>),
    /// Settings of the session are being read, this one next.
    Asking(usize),
    /// Ready; no transaction is under way.
    Idle,
    /// The answer to a statement (or to a pipeline that ends with it) is awaited.
    Waiting(StatementId),
    /// The script sleeps.
    Sleeping(StatementId),
    /// The transaction failed inside a block: ROLLBACK was sent.
    RollingBack,
}

/// The start-up of a session.
struct Opening(Startup);

impl std::fmt::Debug for Opening {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Opening")
    }
}

/// What the worker must do for a client, besides sending what is in `outgoing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it waits for the server, or for good.
    Wait,
    /// Call `wake` at this time.
    WakeAt(u64),
    /// Call `wake` at this time, if nothing else was asked for: a request may take no longer.
    Watch(u64),
    /// Ask the server to cancel what it does for this client, and call `wake` at this time.
    Cancel(u64),
    /// The session is open and the client waits for `start`.
    Ready,
    /// Close the connection, and connect again.
    Reconnect,
    /// The same, in good order: each transaction has a session of its own.
    Renew,
    /// Close the connection: this client has ended.
    Close,
}

/// A transaction under way.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    transaction_type: usize,
    phase: Phase,
    intended_start_ns: u64,
    actual_start_ns: u64,
    /// Known already: it failed, whatever follows.
    failure: Option<FailureClass>,
    /// Something unanswered could have committed.
    exposed: bool,
    /// A statement was sent since it began.
    sent: bool,
    /// Tries so far, with the current one.
    tries: u32,
    /// The command at which the current try failed.
    failed_at: Option<StatementId>,
}

/// How a request is answered so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// With rows, or nothing yet.
    Rows,
    /// With COPY data, whose rows its tag tells.
    Copying,
    /// With an error.
    Failed,
}

/// Whether a client wants another session, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seeking {
    /// It does not.
    #[default]
    No,
    /// It lost one.
    Lost,
    /// Each transaction has its own.
    Renewal,
}

/// Looks after a request that may take no longer than the plan says.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    /// When the request under way was sent.
    asked_ns: u64,
    /// A timer is set that looks after it, or after an earlier one.
    timer_set: bool,
    /// The server was asked to cancel it.
    cancelled: bool,
}

/// See the module.
pub struct Client {
    /// Number over all workers, from 0.
    number: usize,
    /// Number within its worker.
    slot: usize,
    program: Box<dyn Program>,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The encryption between socket and messages; None: plain.
    channel: Option<Box<Channel>>,
    state: State,
    transaction: Option<Transaction>,
    /// Whether the session is in a block, as ReadyForQuery told last: `I`, `T` or `E`.
    status: u8,
    /// End of the last command, begin of the next: one reading of the clock for both.
    boundary_ns: u64,
    /// When the next transaction is to start, if that is known.
    start_ns: Option<u64>,
    /// Transactions of the measurement started so far.
    measured: u64,
    rows: u64,
    /// Results of the current request so far.
    results: u32,
    commits: CommitCount,
    /// How the current request is answered so far.
    answer: Answer,
    /// Where the failure column of each statement is; empty where no type has one.
    failure_columns: Vec<Option<u16>>,
    session: Session,
    /// What the next session is opened with.
    particulars: Option<Box<Particulars>>,
    target: Option<Arc<Target>>,
    /// The last thing a server said before it went away.
    last_words: Option<Box<str>>,
    /// They were an error, and are counted already.
    told_why: bool,
    /// No transaction is started any more.
    done: bool,
    /// Whether it has no session and wants another.
    seeking: Seeking,
    /// Commands were carried out since `boundary_ns`, and nobody looked at the time.
    untimed: bool,
    /// The transaction type of the next start, where it is known already.
    chosen: Option<usize>,
    /// Tries of transactions since the client began.
    tries_begun: u64,
    /// Looks after the request under way.
    watch: Watch,
}

impl Client {
    /// Its number over all workers.
    pub fn number(&self) -> usize {
        self.number
    }

    /// A client without a connection.
    pub fn new(number: usize, slot: usize, program: Box<dyn Program>, context: &Context) -> Self {
        let statements = &context.statements;
        let columns = if statements.any_failure() {
            statements.definitions().len()
        } else {
            0
        };
        Self {
            number,
            slot,
            program,
            outgoing: Outgoing::new(statements.encodings()),
            incoming: Incoming::default(),
            channel: None,
            state: State::Closed,
            transaction: None,
            status: b'I',
            boundary_ns: 0,
            start_ns: None,
            measured: 0,
            rows: 0,
            results: 0,
            commits: CommitCount::default(),
            answer: Answer::Rows,
            failure_columns: vec![None; columns],
            session: Session::default(),
            particulars: None,
            target: None,
            last_words: None,
            told_why: false,
            done: false,
            seeking: Seeking::No,
            untimed: false,
            chosen: None,
            tries_begun: 0,
            watch: Watch::default(),
        }
    }

    /// What was learned of the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Bytes came.
    #[inline]
    pub fn receive(&mut self, bytes: &[u8], context: &mut Context) -> Next {
        if self.channel.is_none() {
            self.receive_messages(bytes, context)
        } else {
            self.receive_sealed(bytes, context)
        }
    }

    /// Bytes came, as messages.
    fn receive_messages(&mut self, bytes: &[u8], context: &mut Context) -> Next {
        let now_ns = context.clock.now_ns();
        // The decoder hands out views into itself, so it stands apart while a message is handled.
        let mut incoming = std::mem::take(&mut self.incoming);
        let mut input = bytes;
        let mut next = Next::Wait;
        loop {
            match incoming.next(&mut input, self.rows_wanted(context)) {
                Ok(Some(message)) => {
                    let after = match self.state {
                        State::Opening(_) | State::Asking(_) => {
                            self.open(&message, context, now_ns)
                        }
                        _ => self.answered(&message, context, now_ns),
                    };
                    if after == Next::Ready {
                        self.opened(context, now_ns);
                    }
                    if after != Next::Wait {
                        next = after;
                    }
                    if matches!(after, Next::Close | Next::Reconnect | Next::Renew) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    next = self.lost(&error.to_string(), context, now_ns);
                    break;
                }
            }
        }
        self.incoming = incoming;
        next
    }

    /// The time has come that was asked for with `Next::WakeAt`.
    pub fn wake(&mut self, context: &mut Context) -> Next {
        let now_ns = context.clock.now_ns();
        self.watch.timer_set = false;
        match self.state {
            State::Sleeping(statement) => {
                self.state = State::Idle;
                self.local_done(statement, context, now_ns);
                self.advance(context)
            }
            State::Idle => self.begin_due(context, now_ns),
            State::Waiting(_) | State::RollingBack => self.watch(context, now_ns),
            _ => Next::Wait,
        }
    }

    /// The timetable is known: start the first transaction when the schedule wants it.
    pub fn start(&mut self, context: &mut Context, now_ns: u64) -> Next {
        if matches!(self.state, State::Idle) {
            self.free(context, now_ns)
        } else {
            Next::Wait
        }
    }

    /// The connection closed or broke.
    pub fn connection_closed(
        &mut self,
        error: Option<&std::io::Error>,
        context: &mut Context,
    ) -> Next {
        let now_ns = context.clock.now_ns();
        let what = match error {
            None => "the server closed the connection".to_string(),
            Some(error) => format!("the connection broke: {}", crate::reactor::reason(error)),
        };
        self.lost(&what, context, now_ns)
    }

    /// Nothing starts any more. True if the client is done with that.
    pub fn stop(&mut self) -> bool {
        self.done = true;
        if self.transaction.is_none() {
            self.start_ns = None;
        }
        self.is_done()
    }

    /// The start it waits for never comes if it lies there. True if the client is done with that.
    pub fn forget_start_from(&mut self, end_ns: u64) -> bool {
        let beyond = self.start_ns.is_some_and(|start_ns| start_ns >= end_ns);
        if beyond {
            self.start_ns = None;
            self.done = true;
        }
        beyond
    }

    /// The deadline has come: what is under way is counted as in flight. True if there was something.
    pub fn cut_off(&mut self, context: &mut Context, now_ns: u64) -> bool {
        self.done = true;
        let under_way = self.transaction.is_some();
        self.end_transaction(TransactionOutcome::InFlightAtEnd, context, now_ns);
        under_way
    }

    /// Whether it will never do anything again (but keeps its connection until the end).
    pub fn is_done(&self) -> bool {
        (matches!(self.state, State::Closed) && self.seeking == Seeking::No)
            || (self.done && self.transaction.is_none())
    }

    /// Whether it has an open session.
    #[cfg(test)]
    fn is_connected(&self) -> bool {
        !matches!(
            self.state,
            State::Closed | State::Securing | State::Opening(_)
        )
    }
}
