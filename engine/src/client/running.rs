//! A client at work: its script goes on from statement to statement, as each one is answered.

use super::rules::Happening;
use super::{Answer, Client, Context, Next, State};
use crate::error_log::{Place, Seen};
use crate::outcome::{FailureClass, TransactionOutcome};
use crate::program::{Abort, Completion, StatementId, Step};
use crate::wire::incoming::Message;
use crate::wire::message::{Columns, Row, ServerError};
use crate::wire::outgoing::Expected;

impl Client {
    /// Go on with the script until something must be awaited.
    pub(super) fn advance(&mut self, context: &mut Context) -> Next {
        loop {
            match self.program.next(&mut self.outgoing) {
                Step::Request { statement } => {
                    self.expose(statement, context);
                    self.tell_sending(statement, context);
                    return self.await_answer(statement, context);
                }
                Step::Flush { statement } => {
                    self.tell_step(Some(statement), Happening::Executed, context);
                    return self.await_answer(statement, context);
                }
                Step::Queued { statement } => {
                    self.expose(statement, context);
                    self.tell_sending(statement, context);
                    self.local_passed(statement, context);
                }
                Step::Local { statement } => {
                    self.tell_step(Some(statement), Happening::Executed, context);
                    self.local_passed(statement, context);
                }
                Step::Sleep {
                    statement,
                    duration_ns,
                } => {
                    self.state = State::Sleeping(statement);
                    self.tell_step(None, Happening::Executed, context);
                    let now_ns = self.timed_boundary_ns(context);
                    return self.wake_at(now_ns.saturating_add(duration_ns));
                }
                Step::Done => return self.script_done(context),
                Step::Abort(abort) => return self.program_aborted(&abort, context),
            }
        }
    }

    /// Close the request and wait.
    fn await_answer(&mut self, statement: StatementId, context: &Context) -> Next {
        self.outgoing.sync();
        self.state = State::Waiting(statement);
        self.answer = Answer::Rows;
        (self.rows, self.results) = (0, 0);
        self.tell_step(None, Happening::Receiving, context);
        if let Some(transaction) = &mut self.transaction {
            transaction.sent = true;
        }
        self.wait_since(self.boundary_ns, context)
    }

    /// From here on an unanswered message may have committed something.
    fn expose(&mut self, statement: StatementId, context: &Context) {
        let in_block = self.status != b'I';
        if let Some(transaction) = &mut self.transaction {
            transaction.exposed |= context.statements.effect(statement).could_commit(in_block);
        }
    }

    /// A command that needed no answer has just ended; the time is looked at only where somebody wants to know.
    #[inline]
    fn local_passed(&mut self, statement: StatementId, context: &mut Context) {
        if context.times_commands() {
            let now_ns = context.clock.now_ns();
            self.local_done(statement, context, now_ns);
        } else {
            self.untimed = true;
        }
    }

    /// The end of the last command, and begin of what comes now.
    #[inline]
    fn timed_boundary_ns(&mut self, context: &Context) -> u64 {
        if std::mem::take(&mut self.untimed) {
            self.boundary_ns = context.clock.now_ns();
        }
        self.boundary_ns
    }

    /// A command that needed no answer has ended.
    pub(super) fn local_done(
        &mut self,
        statement: StatementId,
        context: &mut Context,
        now_ns: u64,
    ) {
        if let Some(transaction) = &self.transaction {
            context
                .books
                .statement(transaction.phase, statement, (self.boundary_ns, now_ns), 0);
        }
        self.boundary_ns = now_ns;
    }

    /// Whether the rows now coming are wanted.
    pub(super) fn rows_wanted(&self, context: &Context) -> bool {
        match self.state {
            State::Opening(_) | State::Asking(_) => true,
            State::Waiting(_) => match self.outgoing.expects() {
                Some(Expected::Statement { statement, .. }) => {
                    context.statements.definition(statement).wants_rows
                        || self.failure_column(statement).is_some()
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn failure_column(&self, statement: StatementId) -> Option<u16> {
        self.failure_columns
            .get(statement.index())
            .copied()
            .flatten()
    }

    /// A message came while the client is at work.
    pub(super) fn answered(
        &mut self,
        message: &Message<'_>,
        context: &mut Context,
        now_ns: u64,
    ) -> Next {
        match message {
            Message::RowPassed => self.rows += 1,
            Message::Row(row) => self.row(row, context, now_ns),
            Message::Complete(tag) => self.command_complete(tag, context),
            Message::Ready(status) => return self.ready(*status, context, now_ns),
            Message::Parsed => self.outgoing.parse_accepted(),
            Message::Columns(columns) => self.columns(columns, context),
            Message::Error(error) => return self.server_error(error, context, now_ns),
            Message::Notice(notice) => self.notice(notice, context),
            Message::CopyIn | Message::CopyOut if context.rules.is_some() => {
                self.tell(Happening::Copy, context);
                return self.abort("COPY is not supported", context, now_ns);
            }
            Message::CopyIn => return self.refuse_copy(context, now_ns),
            Message::CopyData(bytes) => self.copy_data(*bytes, context),
            // EmptyQueryResponse and PortalSuspended end a statement as CommandComplete does.
            Message::Other(b'I' | b's') => self.command_complete(b"", context),
            _ => {}
        }
        Next::Wait
    }

    fn expected_statement(&self) -> Option<StatementId> {
        match self.outgoing.expects() {
            Some(Expected::Statement { statement, .. }) => Some(statement),
            _ => None,
        }
    }

    fn columns(&mut self, columns: &Columns<'_>, context: &Context) {
        let Some(statement) = self.expected_statement() else {
            return;
        };
        if context.statements.definition(statement).wants_rows {
            self.program.columns(statement, columns);
        }
        if let Some(failure) = context.statements.failure(statement) {
            let found = columns
                .names()
                .position(|name| name == failure.column.as_bytes());
            self.failure_columns[statement.index()] =
                found.and_then(|index| u16::try_from(index).ok());
        }
    }

    fn row(&mut self, row: &Row<'_>, context: &mut Context, now_ns: u64) {
        self.rows += 1;
        let Some(statement) = self.expected_statement() else {
            return;
        };
        if context.statements.definition(statement).wants_rows {
            self.program.row(statement, row);
        }
        let Some(column) = self.failure_column(statement) else {
            return;
        };
        let Some(failure) = context.statements.failure(statement) else {
            return;
        };
        let value = row.get(usize::from(column));
        if value != Some(failure.success.as_bytes()) {
            let shown = value.map_or("NULL".into(), |value| {
                format!("'{}'", String::from_utf8_lossy(value))
            });
            let message = format!(
                "column '{}' is {shown}, not '{}'",
                failure.column, failure.success
            );
            let place = Place {
                statement: Some(statement),
                ..self.place()
            };
            context.books.own_error(&message, place, now_ns);
            self.fail(FailureClass::Other);
        }
    }

    /// One command of a statement ended. In the extended protocol that ends the statement, too.
    fn command_complete(&mut self, tag: &[u8], context: &mut Context) {
        // Where statements are sent one by one, each has one result.
        self.results += u32::from(self.outgoing.protocol() == crate::plan::Protocol::Simple);
        if !tag.is_empty() {
            self.commits.command(tag);
        }
        if self.answer == Answer::Copying {
            self.answer = Answer::Rows;
            self.rows += rows_in_tag(tag);
        }
        if let Some(statement) = self.expected_statement() {
            if context.statements.definition(statement).wants_rows {
                self.program.complete(Completion {
                    statement,
                    rows: self.rows,
                    succeeded: true,
                });
            }
            if let (State::Waiting(awaited), Some(transaction)) = (&self.state, &self.transaction)
                && *awaited != statement
            {
                // A statement of a pipeline: its time was recorded when it was queued.
                context
                    .books
                    .rows(transaction.phase, statement, std::mem::take(&mut self.rows));
            }
            if self.outgoing.protocol() != crate::plan::Protocol::Simple {
                self.outgoing.answered();
            }
        }
    }

    /// The first error of a transaction decides its class.
    fn fail(&mut self, class: FailureClass) {
        if let Some(transaction) = &mut self.transaction {
            transaction.failure.get_or_insert(class);
        }
    }

    fn server_error(
        &mut self,
        error: &ServerError<'_>,
        context: &mut Context,
        now_ns: u64,
    ) -> Next {
        let message = error.text();
        let statement = self.expected_statement();
        let place = Place {
            statement: statement.or(self.place().statement),
            ..self.place()
        };
        context.books.error(Seen {
            sqlstate: Some(error.sqlstate),
            message: &message,
            place,
            at_ns: now_ns,
        });
        if let Some(rules) = context.rules.clone() {
            let parsing = match self.outgoing.expects() {
                Some(Expected::Statement { statement, parsed }) => parsed.then_some(statement),
                _ => None,
            };
            if self.judge_error(&rules, error, parsing, context) {
                return self.abort(&message, context, now_ns);
            }
        }
        if error.severity == b"FATAL" || error.severity == b"PANIC" {
            self.last_words = Some(message.into());
            self.told_why = true;
        }
        // A server that goes away while a commit may be under way does not say whether it happened.
        let exposed = self
            .transaction
            .is_some_and(|transaction| transaction.exposed);
        if !(self.told_why && exposed) {
            self.fail(FailureClass::of_sqlstate(error.sqlstate));
        }
        self.commits.error();
        self.answer = Answer::Failed;
        if let (Some(statement), Some(transaction)) = (statement, &self.transaction) {
            context
                .books
                .statement_failed(transaction.phase, statement, now_ns);
            if context.statements.definition(statement).wants_rows {
                self.program.complete(Completion {
                    statement,
                    rows: self.rows,
                    succeeded: false,
                });
            }
        }
        // The server passes over everything up to the next Sync.
        while let Some(Expected::Statement { statement, parsed }) = self.outgoing.expects() {
            if parsed {
                self.outgoing.forget(statement);
            }
            self.outgoing.answered();
        }
        Next::Wait
    }

    /// A server that is shut down at once says so in a warning, not in an error.
    fn notice(&mut self, notice: &ServerError<'_>, context: &mut Context) {
        context.books.notice();
        self.tell(Happening::Notice(notice), context);
        if notice.sqlstate.starts_with(b"57P") {
            self.last_words = Some(notice.text().into());
        }
    }

    /// A script has no data to give. In a pipeline the server takes what follows for COPY data gone wrong and counts
    /// Syncs in its own way, so that there is no telling which answer belongs to what.
    fn refuse_copy(&mut self, context: &mut Context, now_ns: u64) -> Next {
        if !self.outgoing.is_last_expected() {
            self.fail(FailureClass::Other);
            return self.lost("COPY FROM STDIN in a pipeline", context, now_ns);
        }
        self.outgoing
            .copy_fail("a script has no data for COPY FROM STDIN");
        Next::Wait
    }

    /// A piece of COPY data came; its rows are told at the end.
    fn copy_data(&mut self, bytes: usize, context: &mut Context) {
        if self.answer == Answer::Rows {
            self.answer = Answer::Copying;
        }
        if let (Some(statement), Some(transaction)) = (self.expected_statement(), self.transaction)
        {
            context
                .books
                .copy_bytes(transaction.phase, statement, bytes as u64);
        }
    }

    /// ReadyForQuery: the request is acknowledged.
    fn ready(&mut self, status: u8, context: &mut Context, now_ns: u64) -> Next {
        while let Some(Expected::Statement { .. }) = self.outgoing.expects() {
            self.outgoing.answered();
        }
        self.outgoing.answered();
        self.status = status;
        let commits = self.commits.acknowledge(status == b'I');
        let Some(transaction) = &mut self.transaction else {
            return Next::Wait;
        };
        if commits > 0 {
            context
                .books
                .server_commits(transaction.phase, transaction.transaction_type, commits);
        }
        if self.outgoing.expects().is_some() {
            // A pipeline with several Syncs: more is to come.
            return Next::Wait;
        }
        transaction.exposed = false;
        let failed = self.answer == Answer::Failed;
        match self.state {
            State::Waiting(statement) if !failed => {
                context.books.statement(
                    transaction.phase,
                    statement,
                    (self.boundary_ns, now_ns),
                    self.rows,
                );
                self.boundary_ns = now_ns;
                self.untimed = false;
                self.state = State::Idle;
                self.advance(context)
            }
            State::Waiting(_) if status != b'I' => self.roll_back(context, now_ns),
            State::Waiting(_) | State::RollingBack => {
                let class = transaction.failure.unwrap_or(FailureClass::Other);
                if self.may_retry(class, context, now_ns) {
                    return self.retry(context, now_ns);
                }
                if self.is_cut_short(context, now_ns) {
                    let outcome = TransactionOutcome::InFlightAtEnd;
                    return self.end_and_go_on(outcome, context, now_ns);
                }
                self.note_failure(false, context, now_ns);
                self.end_and_go_on(TransactionOutcome::Failed(class), context, now_ns)
            }
            _ => Next::Wait,
        }
    }

    fn roll_back(&mut self, context: &Context, now_ns: u64) -> Next {
        self.outgoing.own_query("ROLLBACK");
        self.answer = Answer::Rows;
        self.state = State::RollingBack;
        self.wait_since(now_ns, context)
    }

    /// The script has ended: the transaction too, unless it left a block open.
    fn script_done(&mut self, context: &mut Context) -> Next {
        let now_ns = self.timed_boundary_ns(context);
        if self.status != b'I' && context.rules.is_some() {
            self.end_transaction(TransactionOutcome::Committed, context, now_ns);
            self.tell(Happening::BlockOpen, context);
            return self.abort("the script ended in a block", context, now_ns);
        }
        if self.status != b'I' {
            let message = "the script ended with a transaction block open";
            context.books.own_error(message, self.place(), now_ns);
            self.fail(FailureClass::Other);
            return self.roll_back(context, now_ns);
        }
        let failure = self.transaction.and_then(|transaction| transaction.failure);
        let outcome = failure.map_or(TransactionOutcome::Committed, TransactionOutcome::Failed);
        self.end_and_go_on(outcome, context, now_ns)
    }

    /// The program cannot go on: nor can its client.
    fn program_aborted(&mut self, abort: &Abort, context: &mut Context) -> Next {
        let now_ns = context.clock.now_ns();
        let place = Place {
            statement: Some(abort.statement),
            ..self.place()
        };
        context.books.own_error(&abort.message, place, now_ns);
        if context.rules.is_some() {
            return self.abort_by_program(abort, context, now_ns);
        }
        self.session.lost = Some(abort.message.clone());
        self.end_transaction(
            TransactionOutcome::Failed(FailureClass::Other),
            context,
            now_ns,
        );
        self.state = State::Closed;
        self.done = true;
        Next::Close
    }

    /// Where an error that comes now happened.
    pub(super) fn place(&self) -> Place {
        let statement = match self.state {
            State::Waiting(statement) | State::Sleeping(statement) => Some(statement),
            _ => None,
        };
        Place {
            transaction_type: self
                .transaction
                .map(|transaction| transaction.transaction_type),
            statement,
            phase: self.transaction.map(|transaction| transaction.phase),
        }
    }
}

/// The rows a command's tag tells of (`COPY 5`); 0 where it tells of none.
fn rows_in_tag(tag: &[u8]) -> u64 {
    let number = tag.rsplit(|&byte| byte == b' ').next().unwrap_or(&[]);
    std::str::from_utf8(number)
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
