//! The files of a plan's folder, written as results come: intervals, histograms, records; and the live copy of events.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::events::EventStream;
use super::hdr_log::HdrLog;
use super::intervals::Whole;
use super::outlet::Outlet;
use super::records::RecordFiles;
use crate::clock::now_ns;
use crate::history::Record;
use crate::plan::Plan;
use crate::process::{Usage, usage};
use crate::recorder::{Recording, Shape};
use crate::results::{ClockAnchor, Interval, IntervalType, Phase, RESULT_VERSION};
use crate::schedule::Timetable;
use crate::statements::Statements;

/// What the histogram logs say of themselves.
const REMARK: &str = "exact sums stand in intervals.jsonl";

/// See the module.
pub struct ResultFiles {
    type_names: Vec<String>,
    shape: Shape,
    intervals: File,
    transactions: HdrLog,
    statements: HdrLog,
    /// `warmup.TYPE.service` …: made once.
    statement_tags: [Vec<String>; 2],
    records: RecordFiles,
    events: EventStream,
    usage: Usage,
}

/// A file cannot be written.
fn failure(path: &Path) -> impl Fn(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("cannot write {path}: {error}")
}

impl ResultFiles {
    /// Create the files in the plan's folder, which exists; the live copy goes to `events`.
    pub fn create(
        plan: &Plan,
        statements: &Arc<Statements>,
        anchor: ClockAnchor,
        events: Option<OwnedFd>,
    ) -> Result<Self, String> {
        let create = |name: &str| {
            let path = plan.output_dir.join(name);
            File::create(&path).map_err(failure(&path))
        };
        let log = |name: &str| {
            let path = plan.output_dir.join(name);
            HdrLog::create(&path, anchor, REMARK).map_err(failure(&path))
        };
        let names = plan.transaction_types.iter().map(|kind| kind.name.clone());
        let type_names: Vec<_> = names.collect();
        let tag = |prefix: &str| {
            let named = |d: &crate::program::StatementDefinition| {
                format!("{prefix}{}:{}", type_names[d.transaction_type], d.number)
            };
            statements.definitions().iter().map(named).collect()
        };
        Ok(Self {
            shape: statements.shape(),
            intervals: create("intervals.jsonl")?,
            transactions: log("transactions.hlog")?,
            statements: log("statements.hlog")?,
            statement_tags: [tag(prefix(Phase::Warmup)), tag(prefix(Phase::Measurement))],
            records: RecordFiles::create(plan)?,
            events: EventStream::new(events),
            usage: Usage::default(),
            type_names,
        })
    }

    /// One line, and the histograms.
    fn write_recording(
        &mut self,
        whole: &Whole,
        phase: Phase,
        recording: &Recording,
    ) -> io::Result<()> {
        let interval = self.interval(whole, phase, recording);
        let mut line = serde_json::to_vec(&interval)?;
        line.push(b'\n');
        self.intervals.write_all(&line)?;
        self.events.interval(&interval);
        let span_ns = (whole.begin_ns, whole.end_ns);
        for (name, of_type) in self.type_names.iter().zip(&recording.types) {
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

impl Outlet for ResultFiles {
    fn state(&mut self, state: &str) {
        self.events.state(state, now_ns());
    }

    fn started(&mut self, _: Timetable, _: ClockAnchor) -> io::Result<()> {
        self.usage = usage();
        Ok(())
    }

    fn interval(&mut self, whole: &Whole) -> io::Result<()> {
        for phase in Phase::ALL {
            if let Some((_, recording)) = &whole.recordings[phase.index()] {
                self.write_recording(whole, phase, recording)?;
            }
        }
        Ok(())
    }

    fn records(&mut self, _: usize, records: &[Record]) -> io::Result<()> {
        self.records.write(records)
    }

    fn finish(&mut self, _: u64) -> io::Result<()> {
        self.state("done");
        Ok(())
    }
}
