//! A client in trouble: another try after a serialization failure or deadlock, a request that takes too long, a
//! connection that is lost.

use super::rules::Happening;
use super::{Client, Context, Next, Seeking, State, Transaction, Watch};
use crate::books::Again;
use crate::history::TryEvent;
use crate::outcome::{FailureClass, TransactionOutcome};

impl Client {
    /// Whether the transaction that failed so is to be tried again.
    pub(super) fn may_retry(&self, class: FailureClass, context: &Context, now_ns: u64) -> bool {
        let (Some(policy), Some(transaction)) = (context.limits.retry, &self.transaction) else {
            return false;
        };
        let fleeting = matches!(class, FailureClass::Serialization | FailureClass::Deadlock);
        let left = policy.max_tries == 0 || transaction.tries < policy.max_tries;
        let spent_ns = now_ns.saturating_sub(transaction.intended_start_ns);
        let going_on = context.schedule.as_ref().is_some_and(|schedule| {
            !schedule.is_stopped() && schedule.timetable().phase_at(now_ns).is_some()
        });
        fleeting && left && spent_ns < policy.max_time_ns && going_on
    }

    /// Try the transaction once more, with the same random numbers.
    pub(super) fn retry(&mut self, context: &mut Context, now_ns: u64) -> Next {
        self.note_try(TryEvent::Failed, context, now_ns);
        self.note_failure(true, context, now_ns);
        if let Some(transaction) = &mut self.transaction {
            transaction.tries += 1;
            transaction.failure = None;
            transaction.exposed = false;
        }
        self.begin_try(context, now_ns);
        self.state = State::Idle;
        self.boundary_ns = now_ns;
        self.program.rewind();
        self.advance(context)
    }

    /// A try begins.
    pub(super) fn begin_try(&mut self, context: &mut Context, now_ns: u64) {
        self.tries_begun += 1;
        self.note_try(TryEvent::Begin, context, now_ns);
    }

    /// Write down what happened to the current try, where the plan wants a history.
    pub(super) fn note_try(&mut self, event: TryEvent, context: &mut Context, now_ns: u64) {
        if let Some(transaction) = &self.transaction {
            let of = crate::history::Try {
                slot: self.slot,
                sequence: self.tries_begun,
                transaction_type: transaction.transaction_type,
            };
            context.books.tried(of, event, now_ns);
        }
    }

    /// Wait for the server, and look after it if the plan limits how long.
    ///
    /// Setting a timer for every request would cost a heap operation each. So the timer of an earlier request is left
    /// to go off: `watch` then sees that its request is answered, and sets it for the one under way.
    pub(super) fn wait_since(&mut self, asked_ns: u64, context: &Context) -> Next {
        self.watch.asked_ns = asked_ns;
        self.watch.cancelled = false;
        match context.limits.statement_timeout_ns {
            Some(timeout_ns) if !self.watch.timer_set => {
                self.watch.timer_set = true;
                Next::Watch(asked_ns.saturating_add(timeout_ns))
            }
            _ => Next::Wait,
        }
    }

    /// The timer of a request went off: has the one under way taken too long?
    pub(super) fn watch(&mut self, context: &mut Context, now_ns: u64) -> Next {
        let Some(timeout_ns) = context.limits.statement_timeout_ns else {
            return Next::Wait;
        };
        let due_ns = self.watch.asked_ns.saturating_add(timeout_ns);
        if now_ns < due_ns {
            self.watch.timer_set = true;
            return Next::Watch(due_ns);
        }
        let seconds = timeout_ns as f64 / crate::clock::NS_PER_S as f64;
        if self.watch.cancelled {
            let what = format!("no answer for {seconds} s to a cancel request");
            return self.lost(&what, context, now_ns);
        }
        context.books.statement_timeout();
        self.watch = Watch {
            asked_ns: now_ns,
            timer_set: true,
            cancelled: true,
        };
        Next::Cancel(now_ns.saturating_add(timeout_ns))
    }

    /// Be woken for something else than a watch.
    pub(super) fn wake_at(&mut self, due_ns: u64) -> Next {
        self.watch.timer_set = false;
        Next::WakeAt(due_ns)
    }

    /// The connection is of no use any more.
    pub(super) fn lost(&mut self, what: &str, context: &mut Context, now_ns: u64) -> Next {
        if matches!(self.state, State::Closed) {
            return Next::Close;
        }
        let was_up = !matches!(
            self.state,
            State::Securing | State::Opening(_) | State::Asking(_)
        );
        let message = match self.last_words.take() {
            Some(words) => format!("{what}: {words}"),
            None => what.to_string(),
        };
        if !self.told_why && was_up {
            let place = self.place();
            context.books.own_error(&message, place, now_ns);
        }
        if context.rules.is_some() && was_up && !context.limits.reconnect {
            if !self.told_why && self.transaction.is_some() {
                self.tell(Happening::ConnectionLost(&message), context);
            }
            self.end_transaction(TransactionOutcome::InFlightAtEnd, context, now_ns);
        }
        self.session.lost = Some(message);
        let outcome = match self.transaction {
            Some(Transaction {
                failure: Some(class),
                ..
            }) => TransactionOutcome::Failed(class),
            Some(Transaction { exposed: true, .. }) => TransactionOutcome::Unknown,
            _ => TransactionOutcome::Failed(FailureClass::Connection),
        };
        self.end_transaction(outcome, context, now_ns);
        if let (Some(start_ns), Some(schedule)) = (self.start_ns.take(), &mut context.schedule) {
            schedule.give_back(self.slot, start_ns);
        }
        self.state = State::Closed;
        if !was_up {
            // A session that could not be opened may be tried elsewhere, or later.
            return Next::Close;
        }
        context.books.session_lost(now_ns);
        if context.limits.reconnect && !self.done {
            self.seeking = Seeking::Lost;
            return Next::Reconnect;
        }
        self.done = true;
        Next::Close
    }

    /// The session is open, perhaps in place of one that was lost.
    pub(super) fn opened(&mut self, context: &mut Context, now_ns: u64) {
        let again = std::mem::take(&mut self.seeking) == Seeking::Lost;
        context
            .books
            .session_opened(now_ns, if again { Again::Yes } else { Again::No });
    }

    /// It connects no more.
    pub fn give_up(&mut self) {
        self.state = State::Closed;
        self.seeking = Seeking::No;
        self.done = true;
    }

    /// What became of the current try, as the history tells it.
    pub(super) fn event_of(outcome: TransactionOutcome, exposed: bool) -> TryEvent {
        match outcome {
            TransactionOutcome::Committed => TryEvent::Acknowledged,
            TransactionOutcome::Unknown => TryEvent::Unknown,
            TransactionOutcome::InFlightAtEnd if exposed => TryEvent::Unknown,
            TransactionOutcome::InFlightAtEnd | TransactionOutcome::Failed(_) => TryEvent::Failed,
        }
    }
}
