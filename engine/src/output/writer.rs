//! The writer's thread: takes intervals from the workers, writes them at once, adds them up, clears recordings.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::events::EventStream;
use super::hdr_log::HdrLog;
use super::intervals::{Assembly, Whole};
use super::records::RecordFiles;
use crate::books::ToWriter;
use crate::clock::now_ns;
use crate::history::Record;
use crate::process::{Usage, usage};
use crate::recorder::{Recording, Shape};
use crate::results::{ClockAnchor, Counters, Interval, IntervalType, Phase, RESULT_VERSION};
use crate::schedule::Timetable;
use crate::statements::Statements;

/// What the writer needs to know.
pub struct WriterSetup {
    /// Where files go; exists.
    pub folder: PathBuf,
    /// Names of the transaction types, in order.
    pub type_names: Vec<String>,
    /// The plan's statements.
    pub statements: Arc<Statements>,
    /// Ties the clocks, for the logs.
    pub anchor: ClockAnchor,
    /// Where the live copy goes.
    pub events: Option<OwnedFd>,
    /// By worker: where cleared recordings go.
    pub cleared: Vec<Sender<Box<Recording>>>,
    /// By worker: where emptied buffers of records go.
    pub cleared_records: Vec<Sender<Vec<Record>>>,
    /// Where records go.
    pub records: RecordFiles,
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
    shape: Shape,
    intervals: File,
    transactions: HdrLog,
    statements: HdrLog,
    /// `warmup.TYPE.service` …: made once.
    statement_tags: [Vec<String>; 2],
    events: EventStream,
    assembly: Assembly,
    usage: Usage,
    totals: Totals,
    /// States to be told when their time has come, the next one last.
    coming: Vec<(u64, &'static str)>,
}

/// A file cannot be written.
fn failure(path: &std::path::Path) -> impl Fn(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("cannot write {path}: {error}")
}

impl Writer {
    /// Create the files.
    pub fn new(mut setup: WriterSetup) -> Result<Self, String> {
        let create = |name: &str| {
            let path = setup.folder.join(name);
            File::create(&path).map_err(failure(&path))
        };
        let log = |name: &str| {
            let path = setup.folder.join(name);
            HdrLog::create(&path, setup.anchor).map_err(failure(&path))
        };
        let shape = setup.statements.shape();
        let tag = |prefix: &str| {
            let named = |d: &crate::program::StatementDefinition| {
                format!(
                    "{prefix}{}:{}",
                    setup.type_names[d.transaction_type], d.number
                )
            };
            setup.statements.definitions().iter().map(named).collect()
        };
        Ok(Self {
            shape,
            intervals: create("intervals.jsonl")?,
            transactions: log("transactions.hlog")?,
            statements: log("statements.hlog")?,
            statement_tags: [tag(prefix(Phase::Warmup)), tag(prefix(Phase::Measurement))],
            events: EventStream::new(setup.events.take()),
            assembly: Assembly::new(setup.cleared.len()),
            usage: Usage::default(),
            totals: Totals {
                recordings: [Recording::new(shape), Recording::new(shape)],
                lines: [Counters::default(); 2],
                failed: None,
            },
            coming: Vec::new(),
            setup,
        })
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
        self.events.state("done", now_ns());
        self.totals
    }

    fn take(&mut self, told: ToWriter) {
        match told {
            ToWriter::State(state) => {
                if state == "draining" {
                    self.coming.clear();
                }
                self.events.state(state, now_ns());
            }
            ToWriter::Started(timetable) => {
                self.usage = usage();
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
                if let Err(error) = self.setup.records.write(&records) {
                    self.note_failure(&error);
                }
                records.clear();
                // A worker that has ended needs it no more.
                let _ = self.setup.cleared_records[worker].send(records);
            }
        }
    }

    fn note_failure(&mut self, error: &io::Error) {
        let folder = self.setup.folder.display();
        self.totals
            .failed
            .get_or_insert(format!("cannot write results to {folder}: {error}"));
    }

    fn tell_states(&mut self) {
        while let Some(&(at_ns, state)) = self.coming.last() {
            if at_ns > now_ns() {
                return;
            }
            self.coming.pop();
            self.events.state(state, now_ns());
        }
    }

    /// Write every interval that is complete.
    fn write_whole(&mut self) {
        while let Some(mut whole) = self.assembly.take() {
            for phase in Phase::ALL {
                if let Some((worker, recording)) = whole.recordings[phase.index()].take() {
                    if let Err(error) = self.write_recording(&whole, phase, &recording) {
                        self.note_failure(&error);
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

    /// One line, and the histograms.
    fn write_recording(
        &mut self,
        whole: &Whole,
        phase: Phase,
        recording: &Recording,
    ) -> io::Result<()> {
        let interval = self.interval(whole, phase, recording);
        self.totals.lines[phase.index()] += interval.counters;
        let mut line = serde_json::to_vec(&interval)?;
        line.push(b'\n');
        self.intervals.write_all(&line)?;
        self.events.interval(&interval);
        let span_ns = (whole.begin_ns, whole.end_ns);
        for (name, of_type) in self.setup.type_names.iter().zip(&recording.types) {
            for (series_name, series) in of_type.times.named() {
                let tag = format!("{}{name}.{series_name}", prefix(phase));
                self.transactions.add(&tag, span_ns, series.histogram())?;
            }
        }
        for (tag, of_statement) in self.statement_tags[phase.index()]
            .iter()
            .zip(&recording.statements)
        {
            self.statements
                .add(tag, span_ns, of_statement.time.histogram())?;
        }
        self.transactions.flush()?;
        self.statements.flush()
    }

    fn interval(&mut self, whole: &Whole, phase: Phase, recording: &Recording) -> Interval {
        // The CPU of an interval is told once: in the line of the phase it lies in.
        let before = if phase == whole.phase {
            std::mem::replace(&mut self.usage, whole.usage)
        } else {
            whole.usage
        };
        let types = self
            .setup
            .type_names
            .iter()
            .zip(&recording.types)
            .map(|(name, of_type)| {
                let times = of_type.times.summarize();
                let interval_type = IntervalType {
                    counters: of_type.counters,
                    service: times.service,
                    lag: times.lag,
                    response: times.response,
                };
                (name.clone(), interval_type)
            });
        Interval {
            version: RESULT_VERSION,
            phase,
            begin_ns: whole.begin_ns,
            end_ns: whole.end_ns,
            counters: recording.counters(),
            server_commits: recording.server_commits(),
            in_flight: whole.in_flight[phase.index()],
            clients_connected: whole.clients_connected,
            times: recording.times(self.shape),
            types: types.collect::<BTreeMap<_, _>>(),
            cpu_user_ns: whole.usage.user_ns.saturating_sub(before.user_ns),
            cpu_sys_ns: whole.usage.sys_ns.saturating_sub(before.sys_ns),
        }
    }
}

/// What tags of a phase begin with.
fn prefix(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup.",
        Phase::Measurement => "",
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
