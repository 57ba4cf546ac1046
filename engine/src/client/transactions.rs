//! A client's transactions: when each one starts, and what is written down at its end.

use super::rules::Happening;
use super::{Client, Context, Next, State, Transaction};
use crate::outcome::TransactionOutcome;
use crate::recorder::Ended;
use crate::results::Phase;

/// Transactions that send nothing, one after the other, before the worker looks around.
const UNSENT_MOST: u32 = 256;
/// How long they may take, so that other clients need not wait.
const UNSENT_LONGEST_NS: u64 = 20_000;

impl Client {
    /// The client is free: find out when its next transaction starts.
    pub(super) fn free(&mut self, context: &mut Context, now_ns: u64) -> Next {
        let Some(intended_ns) = self.take_start(context, now_ns) else {
            self.done = true;
            return Next::Wait;
        };
        if intended_ns > now_ns {
            self.start_ns = Some(intended_ns);
            return self.wake_at(intended_ns);
        }
        self.begin(intended_ns, context, now_ns)
    }

    /// Start the transaction that is due and, as long as nothing is sent, those that are due after it.
    pub(super) fn begin_due(&mut self, context: &mut Context, now_ns: u64) -> Next {
        let longest_ns = now_ns.saturating_add(UNSENT_LONGEST_NS);
        let mut next = Next::Wait;
        let mut begin_ns = now_ns;
        for _ in 0..UNSENT_MOST {
            let Some(intended_ns) = self.start_ns.take() else {
                break;
            };
            next = self.begin(intended_ns, context, begin_ns);
            begin_ns = self.boundary_ns;
            let due = self.start_ns.is_some_and(|start_ns| start_ns <= begin_ns);
            if !due || begin_ns >= longest_ns {
                break;
            }
        }
        next
    }

    /// Start a transaction, unless its time is over.
    pub(super) fn begin(&mut self, intended_ns: u64, context: &mut Context, now_ns: u64) -> Next {
        let Some(schedule) = &context.schedule else {
            return Next::Wait;
        };
        let is_open = schedule.is_open();
        // Without a schedule a transaction is intended when it starts: a late timer is no lag.
        let intended_start_ns = if is_open { intended_ns } else { now_ns };
        let phase = schedule.timetable().phase_at(intended_start_ns);
        let stopped = schedule.is_stopped();
        let enough = context
            .limits
            .transactions
            .is_some_and(|most| self.measured >= most);
        let allowed = |phase: &Phase| !stopped && (*phase == Phase::Warmup || !enough);
        let phase = phase.filter(allowed);
        let Some(phase) = phase else {
            self.done = true;
            return Next::Wait;
        };
        self.measured += u64::from(phase == Phase::Measurement);
        let chosen = self.chosen.take();
        let transaction_type = chosen.unwrap_or_else(|| context.mix.choose(self.number));
        self.transaction = Some(Transaction {
            transaction_type,
            phase,
            intended_start_ns,
            actual_start_ns: now_ns,
            failure: None,
            exposed: false,
            sent: false,
            tries: 1,
            failed_at: None,
        });
        context.books.started(phase);
        self.begin_try(context, now_ns);
        self.boundary_ns = now_ns;
        self.program.begin(transaction_type);
        self.tell_step(None, Happening::ScriptBegins, context);
        self.advance(context)
    }

    /// End the transaction and start the next.
    pub(super) fn end_and_go_on(
        &mut self,
        outcome: TransactionOutcome,
        context: &mut Context,
        now_ns: u64,
    ) -> Next {
        let sent = self.transaction.is_some_and(|transaction| transaction.sent);
        self.end_transaction(outcome, context, now_ns);
        self.state = State::Idle;
        if self.is_to_renew(context, now_ns) {
            return self.renew(context, now_ns);
        }
        if sent {
            return self.free(context, now_ns);
        }
        // A script that sends nothing never waits: let the worker look around before the next one.
        let next_start = self.take_start(context, now_ns);
        self.start_ns = next_start;
        self.done = next_start.is_none();
        next_start.map_or(Next::Wait, |due_ns| self.wake_at(due_ns))
    }

    /// Record how the transaction under way ended; nothing where none is.
    pub(super) fn end_transaction(
        &mut self,
        outcome: TransactionOutcome,
        context: &mut Context,
        now_ns: u64,
    ) {
        let Some(transaction) = self.transaction else {
            return;
        };
        let event = Self::event_of(outcome, transaction.exposed);
        self.note_try(event, context, now_ns);
        self.transaction = None;
        // pgbench does not count what was cut off, nor its tries.
        let uncounted = outcome == TransactionOutcome::InFlightAtEnd && context.rules.is_some();
        let ended = Ended {
            transaction_type: transaction.transaction_type,
            outcome,
            intended_start_ns: transaction.intended_start_ns,
            actual_start_ns: transaction.actual_start_ns,
            end_ns: now_ns,
            tries: if uncounted { 1 } else { transaction.tries },
        };
        context.books.ended(self.slot, transaction.phase, &ended);
    }
}
