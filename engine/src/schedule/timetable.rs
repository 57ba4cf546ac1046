//! When which phase begins and ends; the same for all threads, also when the warm-up is told to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::seconds_to_ns;
use crate::plan::Plan;
use crate::results::Phase;

/// From being told to the end of the warm-up at least this long, so that every thread knows in time.
const NOTICE_NS: u64 = 50_000_000;

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
    /// What the plan asks for, beginning at `begin_ns`; the warm-up at its longest.
    pub fn new(plan: &Plan, begin_ns: u64) -> Self {
        let measurement_begin_ns = begin_ns + seconds_to_ns(plan.warmup_s);
        let end_ns = |duration_s| measurement_begin_ns + seconds_to_ns(duration_s);
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

    /// The same measurement, begun at `begin_ns`.
    fn measuring_from(self, begin_ns: u64) -> Self {
        let duration_ns = self
            .measurement_end_ns
            .map(|end_ns| end_ns - self.measurement_begin_ns);
        Self {
            measurement_begin_ns: begin_ns,
            measurement_end_ns: duration_ns.map(|duration_ns| begin_ns + duration_ns),
            ..self
        }
    }

    /// The warm-up is told at `now_ns` to end: with the interval under way, or with the next one where that is too near.
    fn with_warmup_told_to_end(self, now_ns: u64, interval_ns: u64) -> Self {
        let interval_ns = interval_ns.max(1);
        let warmup_ns = (now_ns + NOTICE_NS).saturating_sub(self.warmup_begin_ns);
        let end_ns = self.warmup_begin_ns + warmup_ns.div_ceil(interval_ns).max(1) * interval_ns;
        self.measuring_from(end_ns.min(self.measurement_begin_ns))
    }
}

/// The timetable that control and all workers go by. A change is seen by every thread at once, and well before the
/// instant it makes the boundary of the phases: so no transaction is counted in the wrong one.
#[derive(Clone, Debug)]
pub struct SharedTimetable {
    first: Timetable,
    measurement_begin_ns: Arc<AtomicU64>,
}

impl From<Timetable> for SharedTimetable {
    fn from(first: Timetable) -> Self {
        Self {
            first,
            measurement_begin_ns: Arc::new(AtomicU64::new(first.measurement_begin_ns)),
        }
    }
}

impl SharedTimetable {
    /// As it stands.
    #[inline]
    pub fn current(&self) -> Timetable {
        let begin_ns = self.measurement_begin_ns.load(Ordering::Acquire);
        self.first.measuring_from(begin_ns)
    }

    /// End the warm-up with the interval under way at `now_ns`, or the next one. What was told before, or came later
    /// than the warm-up's own end, changes nothing.
    pub fn end_warmup(&self, now_ns: u64, interval_ns: u64) {
        let told = self.first.with_warmup_told_to_end(now_ns, interval_ns);
        self.measurement_begin_ns
            .fetch_min(told.measurement_begin_ns, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const TEN_SECONDS: Timetable = Timetable {
        warmup_begin_ns: SECOND / 2,
        measurement_begin_ns: SECOND / 2 + 10 * SECOND,
        measurement_end_ns: Some(SECOND / 2 + 70 * SECOND),
    };

    #[test]
    fn a_warm_up_that_is_told_ends_with_an_interval() {
        let warmup_s = |told_after_s: f64| {
            let now_ns = TEN_SECONDS.warmup_begin_ns + seconds_to_ns(told_after_s);
            let told = TEN_SECONDS.with_warmup_told_to_end(now_ns, SECOND);
            let duration_ns = told.measurement_end_ns.unwrap() - told.measurement_begin_ns;
            assert_eq!(60 * SECOND, duration_ns);
            (told.measurement_begin_ns - told.warmup_begin_ns) as f64 / SECOND as f64
        };
        let told = [0.0, 0.3, 0.96, 1.0, 3.2, 8.94, 8.96, 9.3, 15.0];
        assert_eq!(
            [1.0, 1.0, 2.0, 2.0, 4.0, 9.0, 10.0, 10.0, 10.0],
            told.map(warmup_s)
        );
    }

    #[test]
    fn the_first_word_counts_and_everybody_hears_it() {
        let control = SharedTimetable::from(TEN_SECONDS);
        let worker = control.clone();
        assert_eq!(TEN_SECONDS, worker.current());
        for told_after_ns in [2 * SECOND, 5 * SECOND] {
            control.end_warmup(TEN_SECONDS.warmup_begin_ns + told_after_ns, SECOND);
            let begin_ns = TEN_SECONDS.warmup_begin_ns + 3 * SECOND;
            assert_eq!(TEN_SECONDS.measuring_from(begin_ns), worker.current());
        }
    }
}
