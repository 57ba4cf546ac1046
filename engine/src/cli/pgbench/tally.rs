//! Counts and sums of transactions as pgbench counts them: times in microseconds, of committed transactions only.

use crate::results::{Counters, Series, Times};

/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1000.0;

/// Number, sums and extremes of times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum_us: f64,
    /// The sum of their squares.
    pub sum_squares_us2: f64,
    /// The least; 0 when there are none.
    pub min_us: f64,
    /// The greatest; 0 when there are none.
    pub max_us: f64,
}

impl Moments {
    /// Take one time in.
    pub fn record(&mut self, time_us: f64) {
        self.min_us = if self.count == 0 {
            time_us
        } else {
            self.min_us.min(time_us)
        };
        self.max_us = self.max_us.max(time_us);
        self.count += 1;
        self.sum_us += time_us;
        self.sum_squares_us2 += time_us * time_us;
    }

    /// Mean in microseconds; not a number when there are none.
    pub fn mean_us(&self) -> f64 {
        self.sum_us / self.count as f64
    }

    /// Standard deviation of the population in microseconds: √(Σx²/n − mean²).
    pub fn stddev_us(&self) -> f64 {
        let mean_us = self.mean_us();
        // Rounding can make the difference of equal numbers negative.
        (self.sum_squares_us2 / self.count as f64 - mean_us * mean_us)
            .max(0.0)
            .sqrt()
    }
}

impl From<&Series> for Moments {
    fn from(series: &Series) -> Self {
        Self {
            count: series.count,
            sum_us: series.sum_ns as f64 / NS_PER_US,
            sum_squares_us2: series.sum_squares_ns2 as f64 / (NS_PER_US * NS_PER_US),
            min_us: series.min_ns as f64 / NS_PER_US,
            max_us: series.max_ns as f64 / NS_PER_US,
        }
    }
}

/// How transactions ended, and how long the committed ones took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Committed: what pgbench calls processed.
    pub committed: u64,
    /// Never started.
    pub skipped: u64,
    /// Failed with SQLSTATE 40001.
    pub serialization: u64,
    /// Failed with SQLSTATE 40P01.
    pub deadlock: u64,
    /// Failed for another reason, and the client went on (`--continue-on-error`, `--reconnect`).
    pub other: u64,
    /// Tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Committed, but later than the latency limit.
    pub late: u64,
    /// Intended start to completion, retries included.
    pub latency: Moments,
    /// Intended to actual start.
    pub lag: Moments,
}

impl Tally {
    /// What was recorded of transactions. Those that ended their client are in none of the counts, as in pgbench; those
    /// whose connection was lost and whose client connected again failed for another reason.
    pub fn of(counters: &Counters, times: &Times) -> Self {
        Self {
            committed: counters.committed,
            skipped: counters.skipped,
            serialization: counters.failed.serialization,
            deadlock: counters.failed.deadlock,
            other: counters.failed.other + counters.failed.connection + counters.unknown,
            retried: counters.retried,
            retries: counters.retries,
            late: counters.late,
            latency: times.response.as_ref().unwrap_or(&times.service).into(),
            lag: times.lag.as_ref().map(Moments::from).unwrap_or_default(),
        }
    }

    /// Failed transactions.
    pub fn failures(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    /// Committed, failed and skipped ones: what percentages are of.
    pub fn total(&self) -> u64 {
        self.committed + self.skipped + self.failures()
    }
}

/// A number with so many digits after the point, as C prints it in PostgreSQL's programs (`NaN`, `Infinity`).
pub fn fixed(value: f64, digits: usize) -> String {
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}Infinity");
    }
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_of_the_population() {
        let mut moments = Moments::default();
        for time_us in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            moments.record(time_us);
        }
        assert_eq!((5.0, 2.0), (moments.mean_us(), moments.stddev_us()));
        assert_eq!(
            (2.0, 9.0, 8),
            (moments.min_us, moments.max_us, moments.count)
        );
    }

    #[test]
    fn a_series_of_the_engine_is_told_in_microseconds() {
        let series = Series {
            count: 2,
            sum_ns: 3_000,
            sum_squares_ns2: 5_000_000,
            min_ns: 1_000,
            max_ns: 2_000,
            ..Series::default()
        };
        let moments = Moments::from(&series);
        assert_eq!((1.5, 0.5), (moments.mean_us(), moments.stddev_us()));
        assert_eq!((1.0, 2.0), (moments.min_us, moments.max_us));
    }

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        let shown: Vec<_> = [0.0005, 2.5, f64::NAN, 1.0 / 0.0, -1.0 / 0.0]
            .map(|value| fixed(value, 3))
            .into();
        assert_eq!(
            vec!["0.001", "2.500", "NaN", "Infinity", "-Infinity"],
            shown
        );
    }
}
