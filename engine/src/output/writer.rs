//! The writer's thread: takes intervals from the workers, hands them to an outlet at once, adds them up, clears recordings.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::intervals::Assembly;
use super::outlet::Outlet;
use crate::books::ToWriter;
use crate::clock::now_ns;
use crate::history::Record;
use crate::recorder::{Recording, Shape};
use crate::results::{ClockAnchor, Counters, Phase};
use crate::schedule::Timetable;

/// What the writer needs to know.
pub struct WriterSetup {
    /// Where results go.
    pub outlet: Box<dyn Outlet>,
    /// What that is called in messages.
    pub outlet_name: String,
    /// How many of what are recorded.
    pub shape: Shape,
    /// Ties the clocks.
    pub anchor: ClockAnchor,
    /// By worker: where cleared recordings go.
    pub cleared: Vec<Sender<Box<Recording>>>,
    /// By worker: where emptied buffers of records go.
    pub cleared_records: Vec<Sender<Vec<Record>>>,
}

/// Everything recorded, added up.
#[derive(Debug)]
pub struct Totals {
    /// By phase.
    pub recordings: [Recording; 2],
    /// What the lines written add up to, by phase.
    pub lines: [Counters; 2],
    /// Why writing failed, if it did.
    pub failed: Option<String>,
}

/// See the module.
pub struct Writer {
    setup: WriterSetup,
    assembly: Assembly,
    totals: Totals,
    /// States to be told when their time has come, the next one last.
    coming: Vec<(u64, &'static str)>,
}

impl Writer {
    /// Nothing was taken yet.
    pub fn new(setup: WriterSetup) -> Self {
        let shape = setup.shape;
        Self {
            assembly: Assembly::new(setup.cleared.len()),
            totals: Totals {
                recordings: [Recording::new(shape), Recording::new(shape)],
                lines: [Counters::default(); 2],
                failed: None,
            },
            coming: Vec::new(),
            setup,
        }
    }

    /// Work until nobody can tell anything any more.
    pub fn run(mut self, received: &Receiver<ToWriter>) -> Totals {
        loop {
            let wait_ns = self
                .coming
                .last()
                .map_or(u64::MAX, |(at_ns, _)| at_ns.saturating_sub(now_ns()));
            match received.recv_timeout(Duration::from_nanos(wait_ns.min(1 << 40))) {
                Ok(told) => self.take(told),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.tell_states();
        }
        self.assembly.end_all();
        self.write_whole();
        let finished = self.setup.outlet.finish(now_ns());
        self.note_failure(finished);
        self.totals
    }

    fn take(&mut self, told: ToWriter) {
        match told {
            ToWriter::State(state) => {
                if state == "draining" {
                    self.coming.clear();
                }
                self.setup.outlet.state(state);
            }
            ToWriter::Started(timetable) => {
                let started = self.setup.outlet.started(timetable, self.setup.anchor);
                self.note_failure(started);
                self.coming = states(timetable);
            }
            ToWriter::Retimed(timetable) => {
                let mut states = states(timetable);
                states.truncate(self.coming.len());
                self.coming = states;
            }
            ToWriter::Part(part) => {
                for (worker, recording) in self.assembly.add(part) {
                    self.give_back(worker, recording);
                }
                self.write_whole();
            }
            ToWriter::Records(worker, mut records) => {
                let written = self.setup.outlet.records(worker, &records);
                self.note_failure(written);
                records.clear();
                // A worker that has ended needs it no more.
                let _ = self.setup.cleared_records[worker].send(records);
            }
        }
    }

    fn note_failure(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            let name = &self.setup.outlet_name;
            self.totals
                .failed
                .get_or_insert(format!("cannot write results to {name}: {error}"));
        }
    }

    fn tell_states(&mut self) {
        while let Some(&(at_ns, state)) = self.coming.last() {
            if at_ns > now_ns() {
                return;
            }
            self.coming.pop();
            self.setup.outlet.state(state);
        }
    }

    /// Write every interval that is complete.
    fn write_whole(&mut self) {
        while let Some(mut whole) = self.assembly.take() {
            let written = self.setup.outlet.interval(&whole);
            let is_written = written.is_ok();
            self.note_failure(written);
            for phase in Phase::ALL {
                if let Some((worker, recording)) = whole.recordings[phase.index()].take() {
                    if is_written {
                        self.totals.lines[phase.index()] += recording.counters();
                    }
                    self.totals.recordings[phase.index()].merge(&recording);
                    self.give_back(worker, recording);
                }
            }
        }
    }

    fn give_back(&self, worker: usize, mut recording: Box<Recording>) {
        recording.clear();
        // A worker that has ended needs it no more.
        let _ = self.setup.cleared[worker].send(recording);
    }
}

/// The states that come by themselves, the next one last.
fn states(timetable: Timetable) -> Vec<(u64, &'static str)> {
    let mut states = Vec::new();
    if let Some(end_ns) = timetable.measurement_end_ns {
        states.push((end_ns, "draining"));
    }
    states.push((timetable.measurement_begin_ns, "measuring"));
    if timetable.warmup_begin_ns < timetable.measurement_begin_ns {
        states.push((timetable.warmup_begin_ns, "warmup"));
    }
    states
}
