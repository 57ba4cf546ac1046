//! How late this worker acts on its own timers: the error of the generator, apart from any waiting for the server.
//!
//! A timer counts when it was set for a time to come: then nothing but this process and its CPU can make it late. The
//! error reaches from when it was due to when everything that was due with it is ready to be sent.

use crate::client::Context;
use crate::results::Phase;
use crate::series::SeriesRecorder;

/// See the module.
#[derive(Debug)]
pub struct Punctuality {
    /// By slot: its timer was set for a time to come.
    ahead: Vec<bool>,
    /// Timers that have gone off in this turn.
    due_ns: Vec<u64>,
    /// Of the measurement.
    pub error: SeriesRecorder,
}

impl Punctuality {
    /// For this many slots.
    pub fn new(slots: usize) -> Self {
        Self {
            ahead: vec![false; slots],
            due_ns: Vec::with_capacity(slots),
            error: SeriesRecorder::default(),
        }
    }

    /// The timer of `slot` was set.
    pub fn set(&mut self, slot: usize, due_ns: u64, context: &Context) {
        self.ahead[slot] = due_ns > context.clock.now_ns();
    }

    /// It has gone off.
    pub fn went_off(&mut self, slot: usize, due_ns: u64) {
        if std::mem::take(&mut self.ahead[slot]) {
            self.due_ns.push(due_ns);
        }
    }

    /// Everything that was due has been acted upon.
    pub fn acted(&mut self, context: &Context) {
        if self.due_ns.is_empty() {
            return;
        }
        let now_ns = context.clock.now_ns();
        let timetable = context
            .schedule
            .as_ref()
            .map(|schedule| schedule.timetable());
        for due_ns in self.due_ns.drain(..) {
            let phase = timetable.and_then(|timetable| timetable.phase_at(due_ns));
            if phase == Some(Phase::Measurement) {
                self.error.record(now_ns - due_ns);
            }
        }
    }
}
