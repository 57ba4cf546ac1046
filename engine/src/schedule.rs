//! WHEN: the timetable of a measurement, the starts of transactions, and the grid of intervals. Pure: no clock.
//!
//! ```text
//! warmup_begin      measurement_begin              measurement_end           drain deadline
//!      |── warm-up ────────|──────── measurement ────────|── in flight finish ─────|
//! ```
//!
//! In a closed loop a start is intended when the client is free and has thought. In an open loop a free client takes the
//! next intended start, be it due, overdue or to come: from the one schedule of all clients, of which each worker takes
//! what is dealt to it, or from its own. In a partly open one that start begins a session of several transactions.

mod arrivals;
mod deal;
mod grid;
mod queue;
#[cfg(test)]
mod tests;
mod timetable;

pub use grid::Grid;
pub use timetable::{SharedTimetable, Timetable};

use arrivals::{Arrivals, RateCurve};
use deal::Deal;
use queue::{BacklogLimit, Skipped, StartQueue};

use crate::clock::seconds_to_ns;
use crate::plan::{Arrival, ClosedLoad, Load, OpenLoad, PartlyOpenLoad, Sharing, ThinkTime};
use crate::results::Phase;

/// Which clients a schedule is for.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Number of the worker's first client.
    pub first_client: usize,
    /// Clients of this worker.
    pub clients: usize,
    /// Clients of all workers.
    pub all_clients: usize,
}

/// Numbers from [0, 1), as often as they are wanted.
pub type Draw = Box<dyn FnMut() -> f64>;

/// Where chance comes from.
pub struct Draws {
    /// Spaces arrivals. Where all workers share a schedule, all of them must be given the same sequence.
    pub arrivals: Draw,
    /// Varies think times: this worker's own.
    pub thinking: Draw,
}

/// The starts of one worker's clients.
pub struct Schedule {
    timetable: SharedTimetable,
    pace: Pace,
    draws: Draws,
    /// Starts that will never happen and that nobody has counted yet.
    skipped: Skipped,
    /// A signal came: nothing starts from here on.
    stopped: bool,
}

/// Pauses of clients.
#[derive(Clone, Copy, Debug)]
struct Thinking {
    mean_ns: f64,
    variation: ThinkTime,
}

/// Who is how far within its session.
#[derive(Debug)]
struct Sessions {
    transactions: u32,
    thinking: Thinking,
    /// By slot: transactions still to come.
    left: Vec<u32>,
}

enum Pace {
    Closed(Thinking),
    Open {
        /// One for all clients, or one for each.
        queues: Vec<StartQueue>,
        sessions: Option<Sessions>,
    },
}

impl Thinking {
    fn new(mean_s: f64, variation: ThinkTime) -> Self {
        Self {
            mean_ns: seconds_to_ns(mean_s) as f64,
            variation,
        }
    }

    fn draw_ns(&self, draw: &mut Draw) -> u64 {
        match self.variation {
            _ if self.mean_ns == 0.0 => 0,
            ThinkTime::Constant => self.mean_ns as u64,
            ThinkTime::Exponential => (-(1.0 - draw()).ln() * self.mean_ns) as u64,
        }
    }
}

impl Schedule {
    /// For a worker that serves a share of all clients.
    pub fn new(load: &Load, timetable: SharedTimetable, share: Share, mut draws: Draws) -> Self {
        let first = timetable.current();
        let pace = match load {
            Load::Closed(ClosedLoad {
                think_time_s,
                think_time,
            }) => Pace::Closed(Thinking::new(*think_time_s, *think_time)),
            Load::Open(open) => Pace::Open {
                queues: open_queues(open, &first, share, &mut draws.arrivals),
                sessions: None,
            },
            Load::PartlyOpen(partly) => Pace::Open {
                queues: vec![session_queue(partly, &first, share, &mut draws.arrivals)],
                sessions: Some(Sessions {
                    transactions: partly.transactions_per_session,
                    thinking: Thinking::new(partly.think_time_s, partly.think_time),
                    left: vec![0; share.clients],
                }),
            },
        };
        Self {
            timetable,
            pace,
            draws,
            skipped: [0; 2],
            stopped: false,
        }
    }

    /// When what is, as it stands.
    pub fn timetable(&self) -> Timetable {
        self.timetable.current()
    }

    /// Whether starts are intended independently of when clients are free.
    pub fn is_open(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// Nothing starts any more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether `stop` was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// When the client at `slot`, free since `free_ns`, is to start; it may lie in the past. None: never again.
    pub fn take_start(&mut self, slot: usize, free_ns: u64) -> Option<u64> {
        self.take_start_within(slot, free_ns, u64::MAX)
    }

    /// As [`Schedule::take_start`]; None also when `most` starts (above 0) were skipped on the way.
    pub fn take_start_within(&mut self, slot: usize, free_ns: u64, most: u64) -> Option<u64> {
        if self.stopped {
            return None;
        }
        let timetable = self.timetable.current();
        let (thinking, draw) = (&mut self.draws.thinking, &mut self.draws.arrivals);
        let intended_ns = match &mut self.pace {
            Pace::Closed(pause) => free_ns.saturating_add(pause.draw_ns(thinking)),
            Pace::Open { queues, sessions } => match sessions {
                Some(Sessions {
                    thinking: pause,
                    left,
                    ..
                }) if left[slot] > 0 => {
                    left[slot] -= 1;
                    free_ns.saturating_add(pause.draw_ns(thinking))
                }
                _ => {
                    let queue = slot.min(queues.len() - 1);
                    let start_ns =
                        queues[queue].take(free_ns, &timetable, draw, (&mut self.skipped, most))?;
                    if let Some(sessions) = sessions {
                        sessions.left[slot] = sessions.transactions - 1;
                    }
                    start_ns
                }
            },
        };
        timetable.phase_at(intended_ns)?;
        Some(intended_ns)
    }

    /// The client at `slot` cannot make the start it took: somebody else shall. (A session that has begun ends.)
    pub fn give_back(&mut self, slot: usize, start_ns: u64) {
        if let Pace::Open { queues, sessions } = &mut self.pace {
            if let Some(sessions) = sessions {
                let begun = sessions.left[slot] + 1 < sessions.transactions;
                sessions.left[slot] = 0;
                if begun {
                    return;
                }
            }
            let queue = slot.min(queues.len() - 1);
            queues[queue].give_back(start_ns);
        }
    }

    /// Look at what has come due by `now_ns`: a backlog that is full must turn it away in time.
    pub fn admit(&mut self, now_ns: u64) {
        if let (false, Pace::Open { queues, .. }) = (self.stopped, &mut self.pace) {
            for queue in queues {
                queue.admit(
                    now_ns,
                    &self.timetable.current(),
                    &mut self.draws.arrivals,
                    &mut self.skipped,
                );
            }
        }
    }

    /// The end: starts that were due before `now_ns` and that nobody has taken never happen.
    pub fn skip_overdue(&mut self, now_ns: u64) {
        if let Pace::Open { queues, .. } = &mut self.pace {
            for queue in queues {
                queue.skip_overdue(
                    now_ns,
                    &self.timetable.current(),
                    &mut self.draws.arrivals,
                    &mut self.skipped,
                );
            }
        }
    }

    /// Starts skipped since this was last asked: one after the other, with their phase.
    #[inline]
    pub fn take_skipped(&mut self) -> Option<Phase> {
        let phase = Phase::ALL
            .into_iter()
            .find(|phase| self.skipped[phase.index()] > 0)?;
        self.skipped[phase.index()] -= 1;
        Some(phase)
    }
}

/// The worker's part of a bound on all clients' backlog.
fn backlog_limit(starts: Option<u64>, wait_s: Option<f64>, share: Share) -> BacklogLimit {
    let part = |all: u64| {
        let part = u128::from(all) * share.clients as u128;
        part.div_ceil(share.all_clients as u128) as usize
    };
    BacklogLimit {
        starts: starts.map(part),
        wait_ns: wait_s.map(seconds_to_ns),
    }
}

fn open_queues(
    open: &OpenLoad,
    timetable: &Timetable,
    share: Share,
    draw: &mut Draw,
) -> Vec<StartQueue> {
    let curve = open.rate_per_s.map_or_else(
        || RateCurve::staged(&open.stages, timetable),
        RateCurve::constant,
    );
    let begin_ns = timetable.warmup_begin_ns;
    let limit = |share| backlog_limit(open.backlog_limit, open.backlog_limit_s, share);
    if open.schedule == Sharing::Shared {
        let arrivals = Arrivals::new(curve, open.arrival, begin_ns);
        return vec![shared_queue(arrivals, limit(share), share, draw)];
    }
    let of_client = |slot: usize| {
        let all = share.all_clients as f64;
        let own = Share {
            clients: 1,
            ..share
        };
        let arrivals = Arrivals::new(curve.clone().scaled(1.0 / all), open.arrival, begin_ns);
        let mut queue = StartQueue::new(arrivals, None, limit(own), 1);
        // Equal gaps of all clients interleave; they must not all begin at once.
        let first = (share.first_client + slot + 1) as f64 / all;
        queue.begin((open.arrival == Arrival::Constant).then_some(first), draw);
        queue
    };
    (0..share.clients).map(of_client).collect()
}

fn session_queue(
    partly: &PartlyOpenLoad,
    timetable: &Timetable,
    share: Share,
    draw: &mut Draw,
) -> StartQueue {
    let curve = RateCurve::constant(partly.sessions_per_s);
    let arrivals = Arrivals::new(curve, partly.arrival, timetable.warmup_begin_ns);
    let limit = backlog_limit(partly.backlog_limit, partly.backlog_limit_s, share);
    shared_queue(arrivals, limit, share, draw)
}

fn shared_queue(
    arrivals: Arrivals,
    limit: BacklogLimit,
    share: Share,
    draw: &mut Draw,
) -> StartQueue {
    let deal = (share.clients < share.all_clients).then(|| Deal::new(share));
    let mut queue = StartQueue::new(arrivals, deal, limit, share.clients);
    queue.begin(None, draw);
    queue
}
