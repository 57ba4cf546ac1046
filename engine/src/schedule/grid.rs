//! The intervals results are written for: the same boundaries for every worker.

use super::{SharedTimetable, Timetable};
use crate::results::Phase;

/// Each phase begins an interval of its own, so no interval lies in two phases.
#[derive(Clone, Debug)]
pub struct Grid {
    timetable: SharedTimetable,
    interval_ns: u64,
    begin_ns: u64,
    index: u64,
}

impl Grid {
    /// Standing in the first interval.
    pub fn new(timetable: SharedTimetable, interval_ns: u64) -> Self {
        Self {
            interval_ns: interval_ns.max(1),
            begin_ns: timetable.current().warmup_begin_ns,
            timetable,
            index: 0,
        }
    }

    /// The timetable it goes by, as it stands.
    pub fn timetable(&self) -> Timetable {
        self.timetable.current()
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
        let timetable = self.timetable.current();
        let end_ns = self.begin_ns.saturating_add(self.interval_ns);
        let cut = |boundary_ns: u64| {
            if self.begin_ns < boundary_ns {
                end_ns.min(boundary_ns)
            } else {
                end_ns
            }
        };
        cut(timetable.measurement_begin_ns).min(cut(timetable.measurement_end_ns.unwrap_or(0)))
    }

    /// The phase the current interval lies in; what is in flight after the end belongs to the measurement.
    pub fn phase(&self) -> Phase {
        if self.begin_ns < self.timetable.current().measurement_begin_ns {
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
