//! One thread: a reactor and its clients. It connects them, waits for the start, runs, drains, and reports.
//!
//! ```text
//! turn: orders → timers → send what clients wrote → wait for events (one batch) → clients
//! ```

mod crew;
mod dialing;
mod orders;
mod punctuality;
mod revival;
#[cfg(test)]
mod tests;

pub use crew::Connecting;
pub use orders::{Orders, Stop};

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::books::{Books, BooksTotal, Exchange};
use crate::client::rules::{AfterAbort, Rules};
use crate::client::{Client, ClientLimits, Context, Session};
use crate::clock::{Clock, seconds_to_ns};
use crate::destination::Destination;
use crate::plan::{Load, Plan, Sharing};
use crate::process::{Usage, usage};
use crate::program::Language;
use crate::random::Generator;
use crate::reactor::{Activity, Reactor, Setting, Waker};
use crate::schedule::{Draws, Schedule, Share, SharedTimetable, Timetable};
use crate::series::SeriesRecorder;
use crate::statements::Statements;
use crew::Crew;
use dialing::Dialing;

/// Keeps think times apart from everything else that is drawn from the plan's seed.
const THINKING_SEED: u64 = 0x7468_696e_6b69_6e67;

/// A worker that must act on time runs as soon as its timer wakes it.
const PUNCTUAL_SLICE_NS: u64 = 100_000;
/// One that only answers answers (a closed loop) lets the server finish what it is at, and then finds more of them.
const BATCHING_SLICE_NS: u64 = 10_000_000;

/// What all workers are given.
pub struct Assignment {
    /// The plan.
    pub plan: Plan,
    /// Its scripts.
    pub language: Arc<dyn Language>,
    /// Their statements.
    pub statements: Arc<Statements>,
    /// Where to connect, as whom.
    pub destination: Arc<Destination>,
    /// pgbench's rules, where they hold.
    pub rules: Option<Rules>,
}

/// Which part of it one worker does.
pub struct Part {
    /// Number of the worker, from 0.
    pub worker: usize,
    /// Number of its first client.
    pub first_client: usize,
    /// How many clients it serves.
    pub clients: usize,
    /// The CPU to stay on.
    pub cpu: Option<usize>,
}

/// What a worker tells while it works.
#[derive(Debug)]
pub enum Notice {
    /// Every client of this worker is connected, or failed to.
    Connected(Box<Connecting>),
    /// The worker has ended.
    Ended(Box<WorkerReport>),
    /// It could not work at all.
    Failed(String),
    /// A person or a supervisor wants it to end.
    Signal,
    /// The lab has seen enough of the warm-up.
    EndWarmup,
    /// A client of this worker ended early, and all others shall end with it.
    ClientAborted(usize),
}

/// What the engine had spent at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// When.
    pub at_ns: u64,
    /// Of the process.
    pub usage: Usage,
    /// Of this worker's reactor.
    pub activity: Activity,
    /// This thread's waiting for a CPU.
    pub run_delay_ns: Option<u64>,
}

/// What remains of a worker.
#[derive(Debug)]
pub struct WorkerReport {
    /// Number of its first client.
    pub first_client: usize,
    /// What it wrote down.
    pub total: BooksTotal,
    /// Clients that still had a session when it ended.
    pub alive: usize,
    /// Why clients ended early, the latest.
    pub lost: Option<String>,
    /// How many did.
    pub lost_count: usize,
    /// At begin and end of the measurement, as far as it came.
    pub cost: [Option<Cost>; 2],
    /// How late its timers were acted upon.
    pub schedule_error: SeriesRecorder,
    /// How long connecting took, at the start and where each transaction has a session of its own.
    pub connect_times: SeriesRecorder,
    /// It allowed no start after this.
    pub last_start_ns: u64,
    /// Nothing was in flight after this.
    pub end_ns: u64,
}

/// See the module.
pub struct Worker<R> {
    reactor: R,
    crew: Crew,
    assignment: Arc<Assignment>,
    part: Part,
    orders: Arc<Orders>,
    notices: Sender<Notice>,
    connect_deadline_ns: u64,
    timetable: Option<Timetable>,
    stop: Stop,
    drain_deadline_ns: u64,
    last_start_ns: u64,
    cost: [Option<Cost>; 2],
}

/// Run a worker to its end on this thread, with a reactor of kind `R`.
pub fn work<R: Reactor>(
    assignment: Arc<Assignment>,
    part: Part,
    orders: Arc<Orders>,
    notices: Sender<Notice>,
    exchange: Exchange,
) {
    let waker = orders.waker(part.worker).clone();
    let ended = Worker::<R>::new(assignment, part, &waker, orders, exchange, notices.clone());
    let ended = ended.and_then(Worker::run);
    // Without anyone listening there is nobody to tell.
    let _ = notices.send(match ended {
        Ok(report) => Notice::Ended(Box::new(report)),
        Err(error) => Notice::Failed(error),
    });
}

impl<R: Reactor> Worker<R> {
    fn new(
        assignment: Arc<Assignment>,
        part: Part,
        waker: &Waker,
        orders: Arc<Orders>,
        exchange: Exchange,
        notices: Sender<Notice>,
    ) -> Result<Self, String> {
        if let Some(cpu) = part.cpu {
            crate::process::pin_to_cpu(cpu)
                .map_err(|error| format!("cannot run on CPU {cpu}: {error}"))?;
        }
        crate::process::want_exact_timers();
        let setting = Setting {
            slots: part.clients,
            receive: assignment.plan.receive,
        };
        let reactor = R::new(&setting, waker)
            .map_err(|error| format!("cannot set up the reactor: {error}"))?;
        let plan = &assignment.plan;
        let context = Context {
            clock: Clock::system(),
            mix: assignment.language.mix(),
            schedule: None,
            books: Books::new(assignment.statements.shape(), part.clients, exchange),
            statements: assignment.statements.clone(),
            limits: ClientLimits::of(plan),
            session_settings: plan.session_settings.clone().into(),
            rules: assignment.rules.clone(),
        };
        let client = |slot| {
            let number = part.first_client + slot;
            Client::new(number, slot, assignment.language.program(number), &context)
        };
        let clients: Vec<_> = (0..part.clients).map(client).collect();
        let now_ns = context.clock.now_ns();
        Ok(Self {
            reactor,
            crew: Crew::new(
                clients,
                context,
                Dialing::new(&assignment, &part),
                &plan.reconnect,
            ),
            connect_deadline_ns: now_ns + seconds_to_ns(plan.connect_deadline_s),
            assignment,
            part,
            orders,
            notices,
            timetable: None,
            stop: Stop::No,
            drain_deadline_ns: u64::MAX,
            last_start_ns: 0,
            cost: [None; 2],
        })
    }

    fn now_ns(&self) -> u64 {
        self.crew.context.clock.now_ns()
    }

    fn run(mut self) -> Result<WorkerReport, String> {
        self.connect()?;
        let connecting = self.crew.connecting();
        let _ = self.notices.send(Notice::Connected(Box::new(connecting)));
        while self.timetable.is_none() && self.stop == Stop::No {
            self.turn(None)?;
            self.take_orders();
        }
        while !self.is_over() {
            self.turn(Some(self.drain_deadline_ns))?;
            self.take_orders();
            self.note_cost();
            self.note_abort();
        }
        Ok(self.end())
    }

    /// Where one client's early end is the end of all, tell of it.
    fn note_abort(&mut self) {
        let all_end = self
            .assignment
            .rules
            .as_ref()
            .is_some_and(|rules| rules.after_abort == AfterAbort::AllEnd);
        if all_end && self.stop == Stop::No && self.crew.lost().0 > 0 {
            let _ = self.notices.send(Notice::ClientAborted(self.part.worker));
        }
    }

    /// Whether nothing is left to do. A measurement of a given length is not over before its end while any client is
    /// left, even when all of them think.
    fn is_over(&self) -> bool {
        let now_ns = self.now_ns();
        let end_ns = self
            .timetable
            .and_then(|timetable| timetable.measurement_end_ns);
        let early = end_ns.is_some_and(|end_ns| now_ns < end_ns)
            && self.stop == Stop::No
            && self.crew.any_alive();
        now_ns >= self.drain_deadline_ns || (self.crew.all_done() && !early)
    }

    /// Connect all clients at once; ends when each one is ready or has failed.
    fn connect(&mut self) -> Result<(), String> {
        for slot in 0..self.part.clients {
            self.crew.connect(slot, &mut self.reactor);
        }
        while !self.crew.all_connected() {
            self.turn(Some(self.connect_deadline_ns))?;
            self.take_orders();
            if self.now_ns() >= self.connect_deadline_ns || self.stop != Stop::No {
                self.crew.give_up_connecting();
                self.crew.flush(&mut self.reactor);
            }
        }
        Ok(())
    }

    /// One turn; waits no longer than until `limit_ns`.
    fn turn(&mut self, limit_ns: Option<u64>) -> Result<(), String> {
        let now_ns = self.now_ns();
        self.crew.context.books.turn_to(now_ns);
        self.crew.settle_schedule(now_ns);
        let woke = self.crew.timers_due(now_ns);
        self.crew.flush(&mut self.reactor);
        self.open_and_cancel();
        if self.timetable.is_some() && self.is_over() {
            return Ok(());
        }
        let wake_ns = self.crew.next_wake_ns().min(limit_ns.unwrap_or(u64::MAX));
        // What timers set off took a while, and something may be due again.
        let now_ns = if woke { self.now_ns() } else { now_ns };
        let timeout_ns = (wake_ns != u64::MAX).then(|| wake_ns.saturating_sub(now_ns));
        let crew = &mut self.crew;
        self.reactor
            .wait(timeout_ns, &mut |slot, event| crew.happened(slot, event))
            .map_err(|error| format!("cannot wait for the server: {error}"))?;
        self.crew.flush(&mut self.reactor);
        Ok(())
    }

    /// Connect clients that are to be connected (again), and have requests cancelled that take too long. Cancelling
    /// needs connections of its own and waits for the server, so a thread does it.
    fn open_and_cancel(&mut self) {
        for slot in self.crew.take_connects() {
            self.crew.connect(slot, &mut self.reactor);
        }
        let keys = self.crew.take_cancels();
        if !keys.is_empty() {
            let destination = self.assignment.destination.clone();
            let cancel = move || crate::reactor::cancel_all(&destination, &keys);
            let thread = std::thread::Builder::new().name("cancel".into());
            // Where no thread can be had, the request goes on until the connection is closed.
            drop(thread.spawn(cancel));
        }
    }

    /// Look whether control wants something.
    fn take_orders(&mut self) {
        if let Some(timetable) = self.orders.timetable() {
            match self.timetable {
                None => self.begin(&timetable.clone()),
                Some(known) if known != timetable.current() => self.retimed(timetable.current()),
                Some(_) => {}
            }
        }
        let stop = self.orders.stop();
        if stop > self.stop {
            self.stop = stop;
            let now_ns = self.now_ns();
            self.last_start_ns = if self.last_start_ns == 0 {
                now_ns
            } else {
                self.last_start_ns.min(now_ns)
            };
            let drain_ns = seconds_to_ns(self.assignment.plan.drain_deadline_s);
            let deadline_ns = if stop == Stop::AtOnce {
                now_ns
            } else {
                now_ns + drain_ns
            };
            self.drain_deadline_ns = self.drain_deadline_ns.min(deadline_ns);
            self.crew.stop(now_ns);
        }
    }

    fn begin(&mut self, timetable: &SharedTimetable) {
        self.follow(timetable.current());
        let plan = &self.assignment.plan;
        let share = Share {
            first_client: self.part.first_client,
            clients: self.part.clients,
            all_clients: plan.clients,
        };
        let schedule = Schedule::new(&plan.load, timetable.clone(), share, self.draws());
        crate::process::want_time_slice(if plan.load.has_timers() {
            PUNCTUAL_SLICE_NS
        } else {
            BATCHING_SLICE_NS
        });
        self.crew.context.schedule = Some(schedule);
        self.crew
            .context
            .books
            .begin(timetable.clone(), seconds_to_ns(plan.interval_s));
        self.crew.start();
    }

    /// Know when the last transaction may start and when those under way must have ended.
    fn follow(&mut self, timetable: Timetable) {
        self.timetable = Some(timetable);
        if let Some(end_ns) = timetable.measurement_end_ns {
            let drain_ns = seconds_to_ns(self.assignment.plan.drain_deadline_s);
            self.last_start_ns = end_ns;
            self.drain_deadline_ns = end_ns + drain_ns;
        }
    }

    /// The warm-up was told to end, and so the measurement ends earlier, too.
    fn retimed(&mut self, timetable: Timetable) {
        if self.stop != Stop::No {
            self.timetable = Some(timetable);
            return;
        }
        self.follow(timetable);
        if let Some(end_ns) = timetable.measurement_end_ns {
            self.crew.forget_starts_from(end_ns);
        }
    }

    /// Where this worker's schedule takes chance from. A schedule that all share needs one sequence for all.
    fn draws(&self) -> Draws {
        let Assignment { plan, language, .. } = self.assignment.as_ref();
        let own = matches!(&plan.load, Load::Open(open) if open.schedule == Sharing::PerClient);
        let worker = self.part.worker;
        let mut thinking = Generator::from_seed(plan.seed.wrapping_add(THINKING_SEED));
        (0..=worker).for_each(|_| thinking = thinking.child());
        Draws {
            arrivals: language.arrival_draws(if own { worker } else { 0 }),
            thinking: Box::new(move || thinking.unit()),
        }
    }

    /// Read the meters when the measurement begins and when its last start is past.
    fn note_cost(&mut self) {
        let Some(timetable) = self.timetable else {
            return;
        };
        let now_ns = self.now_ns();
        if self.cost[0].is_none() && now_ns >= timetable.measurement_begin_ns {
            self.cost[0] = Some(self.cost_at(now_ns));
        }
        let over = self.last_start_ns != 0 && now_ns >= self.last_start_ns;
        if self.cost[0].is_some() && self.cost[1].is_none() && over {
            self.cost[1] = Some(self.cost_at(now_ns));
        }
    }

    fn cost_at(&self, at_ns: u64) -> Cost {
        Cost {
            at_ns,
            usage: usage(),
            activity: self.reactor.activity(),
            run_delay_ns: crate::process::run_delay_ns(),
        }
    }

    /// Cut off what is still in flight, close everything, report.
    fn end(mut self) -> WorkerReport {
        let end_ns = self.now_ns();
        let keys = self.crew.cut_off(end_ns);
        let last_start_ns = if self.last_start_ns == 0 {
            end_ns
        } else {
            self.last_start_ns.min(end_ns)
        };
        if self.assignment.rules.is_none() {
            self.crew.skip_overdue(last_start_ns, end_ns);
        }
        let alive = self.crew.close_all(&mut self.reactor);
        if !keys.is_empty() {
            crate::reactor::cancel_all(&self.assignment.destination, &keys);
        }
        if self.cost[0].is_some() && self.cost[1].is_none() {
            self.cost[1] = Some(self.cost_at(end_ns));
        }
        let (lost_count, lost) = self.crew.lost();
        WorkerReport {
            first_client: self.part.first_client,
            alive,
            lost,
            lost_count,
            cost: self.cost,
            schedule_error: self.crew.schedule_error().clone(),
            connect_times: self.crew.connect_times().clone(),
            last_start_ns,
            end_ns,
            total: self.crew.context.books.finish(end_ns),
        }
    }
}

/// The session whose facts stand for all, and how long connecting took.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Of the first client that has one.
    pub first: Option<Session>,
    /// From the first attempt to ready, one value a client.
    pub connect_times: SeriesRecorder,
}
