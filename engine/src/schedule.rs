//! WHEN: the timetable of a measurement, the starts of transactions, and the grid of intervals. Pure: no clock.
//!
//! ```text
//! warmup_begin      measurement_begin              measurement_end           drain deadline
//!      |── warm-up ────────|──────── measurement ────────|── in flight finish ─────|
//! ```
//!
//! In a closed loop a start is intended when the client is free and has thought. In an open loop all clients of a
//! worker share one sequence of intended starts; a free client takes the next one, be it due, overdue or to come.

use crate::plan::{Arrival, Load, Plan};
use crate::results::Phase;

/// When which phase begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// The first transaction may start.
    pub warmup_begin_ns: u64,
    /// The first transaction that counts may start. Equal to `warmup_begin_ns` without a warm-up.
    pub measurement_begin_ns: u64,
    /// No transaction starts from here on; None where the number of transactions ends it.
    pub measurement_end_ns: Option<u64>,
}

impl Timetable {
    /// What the plan asks for, beginning at `begin_ns`.
    pub fn new(plan: &Plan, begin_ns: u64) -> Self {
        let measurement_begin_ns = begin_ns + crate::clock::seconds_to_ns(plan.warmup_s);
        let end_ns = |duration_s| measurement_begin_ns + crate::clock::seconds_to_ns(duration_s);
        Self {
            warmup_begin_ns: begin_ns,
            measurement_begin_ns,
            measurement_end_ns: plan.duration_s.map(end_ns),
        }
    }

    /// The phase a transaction belongs to that is (intended to be) started at `start_ns`; None: it must not start.
    pub fn phase_at(&self, start_ns: u64) -> Option<Phase> {
        if start_ns < self.measurement_begin_ns {
            Some(Phase::Warmup)
        } else if self
            .measurement_end_ns
            .is_none_or(|end_ns| start_ns < end_ns)
        {
            Some(Phase::Measurement)
        } else {
            None
        }
    }
}

/// The starts of one worker's clients.
pub struct Schedule {
    timetable: Timetable,
    pace: Pace,
    /// A signal came: nothing starts from here on.
    stopped: bool,
}

enum Pace {
    Closed {
        think_ns: u64,
    },
    Open {
        /// The next start nobody has taken. A fraction, so that rounding never changes the rate.
        next_ns: f64,
        gap_ns: f64,
        arrival: Arrival,
        draw: Box<dyn FnMut() -> f64>,
    },
}

impl Schedule {
    /// For a worker that serves `share` (0 to 1) of all clients; `draw` gives numbers from [0, 1).
    pub fn new(
        load: Load,
        timetable: Timetable,
        share: f64,
        draw: Box<dyn FnMut() -> f64>,
    ) -> Self {
        let pace = match load {
            Load::Closed { think_time_s } => Pace::Closed {
                think_ns: crate::clock::seconds_to_ns(think_time_s),
            },
            Load::Open {
                rate_per_s,
                arrival,
            } => Pace::Open {
                next_ns: timetable.warmup_begin_ns as f64,
                gap_ns: crate::clock::NS_PER_S as f64 / (rate_per_s * share),
                arrival,
                draw,
            },
        };
        let mut schedule = Self {
            timetable,
            pace,
            stopped: false,
        };
        // The first arrival is one gap after the begin, as all others are after the one before.
        schedule.advance();
        schedule
    }

    /// When what is.
    pub fn timetable(&self) -> &Timetable {
        &self.timetable
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

    /// When a client that is free since `free_ns` is to start; it may lie in the past. None: never again.
    pub fn take_start(&mut self, free_ns: u64) -> Option<u64> {
        if self.stopped {
            return None;
        }
        let intended_ns = match &self.pace {
            Pace::Closed { think_ns } => free_ns + think_ns,
            Pace::Open { next_ns, .. } => *next_ns as u64,
        };
        self.timetable.phase_at(intended_ns)?;
        self.advance();
        Some(intended_ns)
    }

    /// Starts that were due before `now_ns` and that nobody has taken: one after the other, with their phase.
    pub fn take_overdue(&mut self, now_ns: u64) -> Option<Phase> {
        let Pace::Open { next_ns, .. } = &self.pace else {
            return None;
        };
        let intended_ns = *next_ns as u64;
        if intended_ns >= now_ns {
            return None;
        }
        let phase = self.timetable.phase_at(intended_ns)?;
        self.advance();
        Some(phase)
    }

    fn advance(&mut self) {
        if let Pace::Open {
            next_ns,
            gap_ns,
            arrival,
            draw,
        } = &mut self.pace
        {
            *next_ns += match arrival {
                Arrival::Constant => *gap_ns,
                // Inverse transform of the exponential distribution; 1 − u is never 0.
                Arrival::Poisson => -(1.0 - draw()).ln() * *gap_ns,
            };
        }
    }
}

/// The intervals results are written for: the same boundaries for every worker.
///
/// Each phase begins an interval of its own, so no interval lies in two phases.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    timetable: Timetable,
    interval_ns: u64,
    begin_ns: u64,
    index: u64,
}

impl Grid {
    /// Standing in the first interval.
    pub fn new(timetable: Timetable, interval_ns: u64) -> Self {
        Self {
            timetable,
            interval_ns: interval_ns.max(1),
            begin_ns: timetable.warmup_begin_ns,
            index: 0,
        }
    }

    /// Number of the current interval, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// First instant of the current interval.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// First instant after the current interval.
    pub fn end_ns(&self) -> u64 {
        let end_ns = self.begin_ns.saturating_add(self.interval_ns);
        let cut = |boundary_ns: u64| {
            if self.begin_ns < boundary_ns {
                end_ns.min(boundary_ns)
            } else {
                end_ns
            }
        };
        cut(self.timetable.measurement_begin_ns)
            .min(cut(self.timetable.measurement_end_ns.unwrap_or(0)))
    }

    /// The phase the current interval lies in; what is in flight after the end belongs to the measurement.
    pub fn phase(&self) -> Phase {
        if self.begin_ns < self.timetable.measurement_begin_ns {
            Phase::Warmup
        } else {
            Phase::Measurement
        }
    }

    /// Go on to the next interval.
    pub fn advance(&mut self) {
        self.begin_ns = self.end_ns();
        self.index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMETABLE: Timetable = Timetable {
        warmup_begin_ns: 100,
        measurement_begin_ns: 350,
        measurement_end_ns: Some(1_000),
    };

    fn never() -> Box<dyn FnMut() -> f64> {
        Box::new(|| unreachable!("a closed loop draws nothing"))
    }

    fn open(rate_per_s: f64, arrival: Arrival, timetable: Timetable, draws: u64) -> Schedule {
        let mut state = draws;
        let draw = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        Schedule::new(
            Load::Open {
                rate_per_s,
                arrival,
            },
            timetable,
            1.0,
            Box::new(draw),
        )
    }

    #[test]
    fn a_phase_is_where_the_start_lies() {
        let phases = [100, 349, 350, 999, 1_000].map(|ns| TIMETABLE.phase_at(ns));
        use Phase::*;
        assert_eq!(
            [
                Some(Warmup),
                Some(Warmup),
                Some(Measurement),
                Some(Measurement),
                None
            ],
            phases
        );
    }

    #[test]
    fn a_closed_loop_starts_when_the_client_has_thought() {
        let mut schedule =
            Schedule::new(Load::Closed { think_time_s: 1e-7 }, TIMETABLE, 1.0, never());
        assert_eq!(Some(300), schedule.take_start(200));
        assert_eq!(None, schedule.take_start(900));
        schedule.stop();
        assert_eq!(None, schedule.take_start(200));
    }

    #[test]
    fn constant_arrivals_keep_their_rate_when_nobody_is_free() {
        let mut schedule = open(1e7, Arrival::Constant, TIMETABLE, 0);
        let starts: Vec<_> = std::iter::from_fn(|| schedule.take_start(950)).collect();
        assert_eq!(vec![200, 300, 400, 500, 600, 700, 800, 900], starts);
    }

    #[test]
    fn overdue_starts_are_told_with_their_phase() {
        let mut schedule = open(1e7, Arrival::Constant, TIMETABLE, 0);
        let phases: Vec<_> = std::iter::from_fn(|| schedule.take_overdue(600)).collect();
        assert_eq!(
            vec![
                Phase::Warmup,
                Phase::Warmup,
                Phase::Measurement,
                Phase::Measurement
            ],
            phases
        );
        assert_eq!(Some(600), schedule.take_start(0));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_asked_for() {
        let timetable = Timetable {
            warmup_begin_ns: 0,
            measurement_begin_ns: 0,
            measurement_end_ns: Some(10_000_000_000),
        };
        let mut schedule = open(10_000.0, Arrival::Poisson, timetable, 7);
        let starts: Vec<_> = std::iter::from_fn(|| schedule.take_start(0)).collect();
        // 100,000 expected, standard deviation 316.
        assert!(
            (98_000..102_000).contains(&starts.len()),
            "{}",
            starts.len()
        );
        assert!(starts.is_sorted());
    }

    #[test]
    fn the_grid_is_cut_where_phases_change() {
        let mut grid = Grid::new(TIMETABLE, 200);
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push((grid.index(), grid.phase(), grid.begin_ns(), grid.end_ns()));
            grid.advance();
        }
        use Phase::*;
        let expected = vec![
            (0, Warmup, 100, 300),
            (1, Warmup, 300, 350),
            (2, Measurement, 350, 550),
            (3, Measurement, 550, 750),
            (4, Measurement, 750, 950),
            (5, Measurement, 950, 1_000),
            (6, Measurement, 1_000, 1_200),
            (7, Measurement, 1_200, 1_400),
        ];
        assert_eq!(expected, seen);
    }

    proptest! {
        #[test]
        fn the_grid_has_no_gap_and_always_moves(interval_ns in 1_u64..400, warmup_ns in 0_u64..300, duration_ns in proptest::option::of(1_u64..900)) {
            let timetable = Timetable {
                warmup_begin_ns: 5, measurement_begin_ns: 5 + warmup_ns,
                measurement_end_ns: duration_ns.map(|ns| 5 + warmup_ns + ns),
            };
            let mut grid = Grid::new(timetable, interval_ns);
            for _ in 0..50 {
                let (begin_ns, end_ns) = (grid.begin_ns(), grid.end_ns());
                prop_assert!(begin_ns < end_ns && end_ns <= begin_ns + interval_ns);
                for boundary_ns in [timetable.measurement_begin_ns, timetable.measurement_end_ns.unwrap_or(0)] {
                    prop_assert!(boundary_ns <= begin_ns || boundary_ns >= end_ns);
                }
                grid.advance();
                prop_assert_eq!(end_ns, grid.begin_ns());
            }
        }
    }
}
