//! A measurement from plan to summary: starts the threads, gives the start, takes signals, judges the outcome.

mod beginning;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use beginning::{connect_problem, may_start};

use crate::blocks::block;
use crate::books::{Exchange, RECORDINGS_PER_WORKER, ToWriter};
use crate::client::rules::{Rules, SessionUse};
use crate::clock::{anchor, now_ns, seconds_to_ns};
use crate::destination::Destination;
use crate::history::{RECORD_BUFFERS, Record, Wanted, WhenFull, buffer};
use crate::output::{
    Findings, Outlet, ResultFiles, Totals, Writer, WriterSetup, summarize, write_summary,
};
use crate::plan::{Plan, WarmupEnds};
use crate::program::Language;
use crate::reactor::{EpollReactor, ReactorKind, UringReactor, choose};
use crate::recorder::Recording;
use crate::results::{ClockAnchor, EngineFacts, Outcome, Phase, Summary, Timeline};
use crate::schedule::{SharedTimetable, Timetable};
use crate::series::SeriesRecorder;
use crate::signals;
use crate::statements::Statements;
use crate::worker::{
    Assignment, Connecting, Notice, Orders, Part, Sessions, Stop, WorkerReport, work,
};

/// Open files beside the clients' connections: results, rings, wakers, the standard streams.
const FILES_BESIDE_CLIENTS: u64 = 64;

/// Why a measurement could not even begin, or could not be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlError {
    /// One line.
    pub message: String,
    /// Advice.
    pub hint: Option<String>,
}

impl From<String> for ControlError {
    fn from(message: String) -> Self {
        Self {
            message,
            hint: None,
        }
    }
}

/// What a measurement needs.
pub struct Measurement {
    /// The plan, valid.
    pub plan: Plan,
    /// Its scripts.
    pub language: Arc<dyn Language>,
    /// Where to connect.
    pub destination: Destination,
    /// Where results go.
    pub results: ResultsGo,
    /// pgbench's rules, where they hold.
    pub rules: Option<Rules>,
    /// From when on time counts.
    pub begin: Begin,
}

/// Where results go.
pub enum ResultsGo {
    /// Into the plan's folder, and a live copy of events to a pipe.
    ToFiles(Option<OwnedFd>),
    /// Elsewhere; nothing is written to the plan's folder.
    To(Box<dyn Outlet>),
}

/// From when on time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// When every client has a session.
    AllConnected,
    /// When the first one begins to connect.
    FirstAttempt,
}

/// What a measurement found.
pub struct Measured {
    /// For files and people.
    pub summary: Summary,
    /// The measurement's histograms and sums.
    pub recording: Recording,
}

/// The threads of a measurement under way.
struct Threads {
    orders: Arc<Orders>,
    notices: Receiver<Notice>,
    to_writer: Sender<ToWriter>,
    writer: JoinHandle<Totals>,
    workers: Vec<JoinHandle<()>>,
}

/// What was found on the way.
struct Course {
    anchor: ClockAnchor,
    timeline: Timeline,
    timetable: Option<SharedTimetable>,
    connected: usize,
    sessions: Sessions,
    reports: Vec<WorkerReport>,
    signals: usize,
    aborted: Option<String>,
    begin: Begin,
}

/// Measure. Where results go to files, the summary is written when this returns, unless it is an error.
pub fn measure(measurement: Measurement) -> Result<Measured, ControlError> {
    let Measurement {
        plan,
        language,
        destination,
        results,
        rules,
        begin,
    } = measurement;
    check_open_files(plan.clients)?;
    let to_files = matches!(results, ResultsGo::ToFiles(_));
    let folder = plan.output_dir.clone();
    let shown = folder.display().to_string();
    if to_files {
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make the folder {shown}: {error}"))?;
    }
    let kind = choose(plan.reactor).map_err(|error| ControlError {
        message: format!("io_uring does not work here: {error}"),
        hint: Some("use reactor \"auto\" or \"epoll\"".into()),
    })?;
    let destination = Arc::new(destination.look_up()?);
    let statements = Arc::new(Statements::new(&plan, language.statements()));
    let assignment = Arc::new(Assignment {
        plan,
        language,
        statements,
        destination,
        rules,
    });
    let mut course = Course::new(begin);
    let threads = start_threads(&assignment, kind, results, course.anchor)?;
    course.follow(&assignment, &threads);
    let totals = threads.end();
    let recording = totals.recordings[Phase::Measurement.index()].clone();
    let summary = course.conclude(&assignment, kind, totals);
    if to_files {
        write_summary(&folder, &summary)
            .map_err(|error| format!("cannot write {shown}/summary.json: {error}"))?;
    }
    Ok(Measured { summary, recording })
}

/// Every client needs a descriptor.
fn check_open_files(clients: usize) -> Result<(), ControlError> {
    let limit = crate::process::raise_open_files_limit()
        .map_err(|error| format!("cannot read the limit of open files: {error}"))?;
    let needed = clients as u64 + FILES_BESIDE_CLIENTS;
    if needed <= limit {
        return Ok(());
    }
    Err(ControlError {
        message: format!(
            "{clients} clients need {needed} open files, and this process may have {limit}"
        ),
        hint: Some(format!(
            "raise the hard limit (ulimit -Hn {needed}, or LimitNOFILE= of a service), or use fewer clients"
        )),
    })
}

/// Start the writer and the workers; clients are dealt to workers in blocks, as pgbench does.
fn start_threads(
    assignment: &Arc<Assignment>,
    kind: ReactorKind,
    results: ResultsGo,
    anchor: ClockAnchor,
) -> Result<Threads, ControlError> {
    let plan = &assignment.plan;
    let workers = plan.worker_count();
    let orders =
        Arc::new(Orders::new(workers).map_err(|error| format!("cannot make a waker: {error}"))?);
    let (notify, notices) = channel();
    let (to_writer, received) = channel();
    let taken = [signals::END, &[signals::END_WARMUP]].concat();
    signals::block(&taken).map_err(|error| format!("cannot block signals: {error}"))?;
    let (cleared, pools): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel()).unzip();
    for pool in &cleared {
        for _ in 0..RECORDINGS_PER_WORKER {
            let _ = pool.send(Box::new(Recording::new(assignment.statements.shape())));
        }
    }
    let wanted = Wanted {
        // What reads pgbench's logs expects every transaction in them.
        when_full: match assignment.rules {
            Some(_) => WhenFull::Wait,
            None => WhenFull::Drop,
        },
        ..Wanted::by(plan)
    };
    let (cleared_records, record_pools): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel()).unzip();
    if wanted.any() {
        for pool in &cleared_records {
            (0..RECORD_BUFFERS).for_each(|_| drop(pool.send(buffer())));
        }
    }
    let back = GivenBack {
        cleared,
        cleared_records,
    };
    let writer = start_writer(assignment, back, results, anchor, received)?;
    let watcher = notify.clone();
    let tell = move |signal| {
        drop(watcher.send(match signal {
            signals::END_WARMUP => Notice::EndWarmup,
            _ => Notice::Signal,
        }));
    };
    signals::watch(&taken, tell).map_err(|error| format!("cannot start a thread: {error}"))?;
    let mut threads = Vec::new();
    for (worker, (cleared, cleared_records)) in pools.into_iter().zip(record_pools).enumerate() {
        let part = part(plan, worker, workers);
        let exchange = Exchange {
            worker,
            first_client: part.first_client,
            wanted,
            parts: to_writer.clone(),
            cleared,
            cleared_records,
        };
        let (assignment, orders, notify) = (assignment.clone(), orders.clone(), notify.clone());
        let body: Box<dyn FnOnce() + Send> = match kind {
            ReactorKind::IoUring => {
                Box::new(move || work::<UringReactor>(assignment, part, orders, notify, exchange))
            }
            ReactorKind::Epoll => {
                Box::new(move || work::<EpollReactor>(assignment, part, orders, notify, exchange))
            }
        };
        threads.push(spawn(format!("worker-{worker}"), body)?);
    }
    Ok(Threads {
        orders,
        notices,
        to_writer,
        writer,
        workers: threads,
    })
}

/// By worker: where the writer gives back what it has emptied.
struct GivenBack {
    cleared: Vec<Sender<Box<Recording>>>,
    cleared_records: Vec<Sender<Vec<Record>>>,
}

/// Create the files and start the thread that writes them.
fn start_writer(
    assignment: &Assignment,
    back: GivenBack,
    results: ResultsGo,
    anchor: ClockAnchor,
    received: Receiver<ToWriter>,
) -> Result<JoinHandle<Totals>, ControlError> {
    let plan = &assignment.plan;
    let statements = &assignment.statements;
    let (outlet, outlet_name): (Box<dyn Outlet>, _) = match results {
        ResultsGo::ToFiles(events) => (
            Box::new(ResultFiles::create(plan, statements, anchor, events)?),
            plan.output_dir.display().to_string(),
        ),
        ResultsGo::To(outlet) => (outlet, "files".into()),
    };
    let writer = Writer::new(WriterSetup {
        outlet,
        outlet_name,
        shape: statements.shape(),
        anchor,
        cleared: back.cleared,
        cleared_records: back.cleared_records,
    });
    Ok(spawn("writer".into(), move || writer.run(&received))?)
}

fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let thread = std::thread::Builder::new().name(name).spawn(body);
    thread.map_err(|error| format!("cannot start a thread: {error}"))
}

/// The clients of one worker: those of its lanes, a contiguous block.
fn part(plan: &Plan, worker: usize, workers: usize) -> Part {
    let lanes = plan.lane_count();
    let own = block(lanes, workers, worker);
    let first_client = block(plan.clients, lanes, own.start).start;
    let end_client = block(plan.clients, lanes, own.end - 1).end;
    Part {
        worker,
        first_client,
        clients: end_client - first_client,
        cpu: (!plan.cpus.is_empty()).then(|| plan.cpus[worker % plan.cpus.len()]),
    }
}

impl Threads {
    /// All workers have told that they ended: let the writer end, too.
    fn end(self) -> Totals {
        for worker in self.workers {
            let _ = worker.join();
        }
        drop(self.to_writer);
        self.writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn stop(&self, stop: Stop) {
        let _ = self.to_writer.send(ToWriter::State("draining"));
        self.orders.order_stop(stop);
    }
}

impl Course {
    fn new(begin: Begin) -> Self {
        let anchor = anchor();
        Self {
            anchor,
            timeline: Timeline {
                connect_begin_ns: anchor.monotonic_ns,
                ..Timeline::default()
            },
            timetable: None,
            connected: 0,
            sessions: Sessions {
                first: None,
                connect_times: SeriesRecorder::default(),
            },
            reports: Vec::new(),
            signals: 0,
            aborted: None,
            begin,
        }
    }

    /// Take notices until every worker has ended.
    fn follow(&mut self, assignment: &Assignment, threads: &Threads) {
        let _ = threads.to_writer.send(ToWriter::State("connecting"));
        let workers = threads.workers.len();
        let (mut connecting, mut ended) = (Vec::new(), 0);
        while ended < workers {
            let Ok(notice) = threads.notices.recv() else {
                return;
            };
            match notice {
                Notice::Connected(told) => {
                    connecting.push(*told);
                    if connecting.len() == workers {
                        self.all_connected(std::mem::take(&mut connecting), assignment, threads);
                    }
                }
                Notice::Ended(report) => {
                    self.reports.push(*report);
                    ended += 1;
                }
                Notice::Failed(error) => {
                    self.aborted.get_or_insert(error);
                    threads.stop(Stop::AtOnce);
                    ended += 1;
                }
                Notice::ClientAborted(worker) => {
                    let message = format!("Run was aborted due to an error in thread {worker}");
                    self.aborted.get_or_insert(message);
                    threads.stop(Stop::AtOnce);
                }
                Notice::EndWarmup => self.end_warmup(&assignment.plan, threads),
                Notice::Signal => {
                    self.signals += 1;
                    threads.stop(if self.signals == 1 && assignment.rules.is_none() {
                        Stop::Draining
                    } else {
                        Stop::AtOnce
                    });
                }
            }
        }
    }

    /// Every worker has connected its clients, or tried: start, unless one is missing.
    fn all_connected(
        &mut self,
        connecting: Vec<Connecting>,
        assignment: &Assignment,
        threads: &Threads,
    ) {
        let mut failures: Vec<(String, usize)> = Vec::new();
        let mut late = 0;
        for told in connecting {
            self.connected += told.connected;
            late += told.late;
            self.sessions
                .connect_times
                .merge(&told.sessions.connect_times);
            self.sessions.first = self.sessions.first.take().or(told.sessions.first);
            for (message, count) in told.failures {
                match failures.iter_mut().find(|(known, _)| *known == message) {
                    Some((_, total)) => *total += count,
                    None => failures.push((message, count)),
                }
            }
        }
        let clients = assignment.plan.clients;
        let enough = may_start(&assignment.plan, self.connected, late);
        if !enough || (self.connected < clients && self.signals > 0) {
            if self.signals == 0 {
                self.aborted
                    .get_or_insert(connect_problem(clients, &failures, assignment));
            }
            return threads.stop(Stop::AtOnce);
        }
        let begin_ns = now_ns();
        self.timeline.connect_end_ns = Some(begin_ns);
        let counts_from_ns = match self.begin {
            Begin::AllConnected => begin_ns,
            Begin::FirstAttempt => self.timeline.connect_begin_ns,
        };
        let first = Timetable::new(&assignment.plan, counts_from_ns);
        let _ = threads.to_writer.send(ToWriter::Started(first));
        let timetable = SharedTimetable::from(first);
        self.timetable = Some(timetable.clone());
        threads.orders.start(timetable);
    }

    /// The lab has seen enough of the warm-up; where the plan does not let it say so, or too early, nothing changes.
    fn end_warmup(&self, plan: &Plan, threads: &Threads) {
        let Some(timetable) = &self.timetable else {
            return;
        };
        if plan.warmup_ends == WarmupEnds::Told {
            timetable.end_warmup(now_ns(), seconds_to_ns(plan.interval_s));
            let _ = threads
                .to_writer
                .send(ToWriter::Retimed(timetable.current()));
            threads.orders.wake_all();
        }
    }

    /// Judge, and put the summary together.
    fn conclude(mut self, assignment: &Assignment, kind: ReactorKind, totals: Totals) -> Summary {
        self.finish_timeline(&assignment.plan);
        let (outcome, message) = self.outcome(&totals);
        self.reports.sort_by_key(|report| report.first_client);
        let rules = assignment.rules.as_ref();
        if rules.is_some_and(|rules| rules.sessions == SessionUse::PerTransaction) {
            self.sessions.connect_times = SeriesRecorder::default();
            for report in &self.reports {
                self.sessions.connect_times.merge(&report.connect_times);
            }
        }
        summarize(Findings {
            plan: &assignment.plan,
            statements: &assignment.statements,
            engine: EngineFacts {
                version: env!("CARGO_PKG_VERSION").into(),
                reactor: kind.name(),
                threads: assignment.plan.worker_count(),
                pid: std::process::id(),
            },
            outcome,
            message,
            clock: self.anchor,
            timeline: self.timeline,
            connected: self.connected,
            sessions: self.sessions,
            totals,
            reports: self.reports,
        })
    }

    fn finish_timeline(&mut self, plan: &Plan) {
        let Some(timetable) = self.timetable.as_ref().map(SharedTimetable::current) else {
            return;
        };
        let last_start_ns = self
            .reports
            .iter()
            .map(|report| report.last_start_ns)
            .max()
            .unwrap_or(0);
        if plan.warmup_s > 0.0 {
            self.timeline.warmup_begin_ns = Some(timetable.warmup_begin_ns);
        }
        if last_start_ns > timetable.measurement_begin_ns {
            self.timeline.measurement_begin_ns = Some(timetable.measurement_begin_ns);
            self.timeline.measurement_end_ns = Some(last_start_ns);
        }
        self.timeline.drain_end_ns = self.reports.iter().map(|report| report.end_ns).max();
    }

    fn outcome(&self, totals: &Totals) -> (Outcome, Option<String>) {
        if let Some(message) = self.aborted.as_ref().or(totals.failed.as_ref()) {
            return (Outcome::Aborted, Some(message.clone()));
        }
        let alive: usize = self.reports.iter().map(|report| report.alive).sum();
        let lost: usize = self.reports.iter().map(|report| report.lost_count).sum();
        if self.timetable.is_some() && alive == 0 && lost > 0 {
            let reason = self
                .reports
                .iter()
                .find_map(|report| report.lost.clone())
                .unwrap_or_default();
            return (
                Outcome::Aborted,
                Some(format!("no client is left: {reason}")),
            );
        }
        if self.signals > 0 {
            return (Outcome::Interrupted, Some("interrupted by a signal".into()));
        }
        (Outcome::Completed, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_in_blocks() {
        let plan: Plan = serde_json::from_str(
            r#"{"name": "x", "conninfo": "", "clients": 7, "threads": 3, "seed": 1, "output_dir": "/o", "cpus": [4, 5],
                "transaction_types": []}"#,
        )
        .unwrap();
        let parts: Vec<_> = (0..3)
            .map(|worker| part(&plan, worker, 3))
            .map(|p| (p.first_client, p.clients, p.cpu))
            .collect();
        assert_eq!(
            vec![(0, 3, Some(4)), (3, 2, Some(5)), (5, 2, Some(4))],
            parts
        );
    }
}
