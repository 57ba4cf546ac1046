//! A client under pgbench's rules: an error ends it or fails its transaction, and the witness is told; a session may
//! last one transaction; starts that come too late count as its own.

use super::rules::{AfterError, Happening, Rules, SessionUse, Spot, Tried};
use super::{Client, Context, Next, Seeking, State};
use crate::history::SkippedRecord;
use crate::outcome::{FailureClass, TransactionOutcome};
use crate::plan::Protocol;
use crate::program::{Abort, StatementId};
use crate::wire::message::ServerError;

impl Client {
    /// Where the client is, as far as it is anywhere.
    fn spot(&self) -> Spot {
        let statement = match self.state {
            State::Waiting(statement) | State::Sleeping(statement) => Some(statement),
            _ => self
                .transaction
                .and_then(|transaction| transaction.failed_at),
        };
        Spot {
            client: self.number,
            script: self
                .transaction
                .map_or(0, |transaction| transaction.transaction_type),
            statement: statement.unwrap_or(StatementId(0)),
            results: self.results,
        }
    }

    /// Tell the witness, where there is one.
    pub(super) fn tell(&self, happening: Happening<'_>, context: &Context) {
        if let Some(rules) = &context.rules {
            rules.witness.saw(self.spot(), happening);
        }
    }

    /// Tell the witness of a command, where it wants to know of every step.
    #[inline]
    pub(super) fn tell_step(
        &mut self,
        statement: Option<StatementId>,
        happening: Happening<'_>,
        context: &Context,
    ) {
        if let Some(rules) = &context.rules
            && rules.witness.wants_steps()
        {
            let spot = self.spot();
            let statement = statement.unwrap_or(spot.statement);
            rules.witness.saw(Spot { statement, ..spot }, happening);
        }
    }

    /// A statement was written to `outgoing`, where something else may have stood before it.
    #[inline]
    pub(super) fn tell_sending(&mut self, statement: StatementId, context: &Context) {
        if let Some(rules) = &context.rules
            && rules.witness.wants_steps()
        {
            let simple = self.outgoing.protocol() == Protocol::Simple;
            let text = simple.then(|| self.program.sent_text());
            let spot = self.spot();
            rules
                .witness
                .saw(Spot { statement, ..spot }, Happening::Sending(text));
        }
    }

    /// An error came for a statement. True: it ends the client.
    pub(super) fn judge_error(
        &mut self,
        rules: &Rules,
        error: &ServerError<'_>,
        parsing: Option<StatementId>,
        context: &Context,
    ) -> bool {
        let fatal = matches!(error.severity, b"FATAL" | b"PANIC");
        let class = FailureClass::of_sqlstate(error.sqlstate);
        let fleeting = matches!(class, FailureClass::Serialization | FailureClass::Deadlock);
        let rolling_back = matches!(self.state, State::RollingBack);
        let passes = fleeting || rules.after_error == AfterError::FailTransaction;
        if fatal && context.limits.reconnect {
            // The connection will be lost in a moment, and then the client connects again.
            return false;
        }
        let spot = self.spot();
        if let Some(transaction) = &mut self.transaction {
            transaction.failed_at.get_or_insert(spot.statement);
        }
        let sent = self.outgoing.expects().is_some();
        let text = sent
            .then(|| self.sent_text(spot.statement, context))
            .flatten();
        let happening = match parsing {
            _ if passes && !fatal && !rolling_back => Happening::Failed(error, text.as_deref()),
            Some(statement) if self.outgoing.protocol() == Protocol::Prepared => {
                let sql = &context.statements.definition(statement).sql;
                rules.witness.saw(spot, Happening::EndedByParse(error, sql));
                return true;
            }
            _ => Happening::EndedByError(error, text.as_deref()),
        };
        let ends = !matches!(happening, Happening::Failed(..));
        rules.witness.saw(spot, happening);
        ends
    }

    /// The text of a statement, where the server's positions point into it.
    fn sent_text(&self, statement: StatementId, context: &Context) -> Option<String> {
        match self.outgoing.protocol() {
            Protocol::Simple => {
                Some(String::from_utf8_lossy(self.program.sent_text()).into_owned())
            }
            Protocol::Extended => Some(context.statements.definition(statement).sql.clone()),
            Protocol::Prepared => None,
        }
    }

    /// The client ends here; what became of its transaction is not counted.
    pub(super) fn abort(&mut self, why: &str, context: &mut Context, now_ns: u64) -> Next {
        self.session.lost = Some(why.to_owned());
        self.end_transaction(TransactionOutcome::InFlightAtEnd, context, now_ns);
        self.state = State::Closed;
        self.done = true;
        Next::Close
    }

    /// A command cannot be carried out.
    pub(super) fn abort_by_program(
        &mut self,
        abort: &Abort,
        context: &mut Context,
        now_ns: u64,
    ) -> Next {
        if let Some(rules) = &context.rules {
            let spot = Spot {
                statement: abort.statement,
                ..self.spot()
            };
            rules.witness.saw(spot, Happening::CannotGoOn(abort));
        }
        self.abort(&abort.message, context, now_ns)
    }

    /// The transaction is tried again, or given up: count it at its command and tell.
    pub(super) fn note_failure(&mut self, again: bool, context: &mut Context, now_ns: u64) {
        let Some(transaction) = self.transaction else {
            return;
        };
        if context.rules.is_none() {
            return;
        }
        let tried = Tried {
            tries: transaction.tries,
            spent_ns: now_ns.saturating_sub(transaction.intended_start_ns),
        };
        self.tell(
            if again {
                Happening::Repeats(tried)
            } else {
                Happening::GivesUp(tried)
            },
            context,
        );
        if let Some(statement) = transaction.failed_at {
            context
                .books
                .failed_try(transaction.phase, statement, again);
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.failed_at = None;
        }
    }

    /// Whether the time of transactions is over: what fails now is neither tried again nor counted.
    pub(super) fn is_cut_short(&self, context: &Context, now_ns: u64) -> bool {
        context.rules.is_some()
            && context.schedule.as_ref().is_some_and(|schedule| {
                schedule.is_stopped() || schedule.timetable().phase_at(now_ns).is_none()
            })
    }

    /// Take the next start; where rules hold, starts that came too late count as transactions of this client.
    pub(super) fn take_start(&mut self, context: &mut Context, now_ns: u64) -> Option<u64> {
        let schedule = context.schedule.as_mut()?;
        if context.rules.is_none() {
            return schedule.take_start(self.slot, now_ns);
        }
        let most = context
            .limits
            .transactions
            .map_or(u64::MAX, |most| most.saturating_sub(self.measured));
        if most == 0 {
            return None;
        }
        let start_ns = schedule.take_start_within(self.slot, now_ns, most);
        while let Some(phase) = context.schedule.as_mut().and_then(|s| s.take_skipped()) {
            let number = self.number;
            let transaction_type = *self
                .chosen
                .get_or_insert_with(|| context.mix.choose(number));
            self.measured += 1;
            let skipped = SkippedRecord {
                client: self.slot,
                transaction_type,
                at_ns: now_ns,
            };
            context.books.skipped_by(skipped, phase);
        }
        start_ns
    }

    /// Whether the session ends with the transaction that has ended, and another one is wanted.
    pub(super) fn is_to_renew(&self, context: &Context, now_ns: u64) -> bool {
        let per_transaction = context
            .rules
            .as_ref()
            .is_some_and(|rules| rules.sessions == SessionUse::PerTransaction);
        let enough = context
            .limits
            .transactions
            .is_some_and(|most| self.measured >= most);
        per_transaction && !enough && !self.done && !self.is_cut_short(context, now_ns)
    }

    /// Close the session in good order and open another.
    pub(super) fn renew(&mut self, context: &mut Context, now_ns: u64) -> Next {
        self.state = State::Closed;
        self.seeking = Seeking::Renewal;
        context.books.session_closed(now_ns);
        Next::Renew
    }

    /// No session could be opened in place of the one that ended with its transaction.
    pub fn not_renewed(&mut self, message: &str, context: &Context) {
        self.tell(Happening::NotConnected(message), context);
        self.give_up();
    }
}
