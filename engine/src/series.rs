//! Times of one kind: a histogram of fixed size, with the exact sum, sum of squares, least and greatest beside it.
//!
//! Recording allocates nothing and takes a few nanoseconds. Values have three significant digits between 1 ns and one
//! hour; what is longer counts as an hour in the histogram and in full in the sums.

use hdrhistogram::Histogram;

use crate::results::Series;

/// Longest time the histogram tells apart.
pub const LONGEST_NS: u64 = 3600 * crate::clock::NS_PER_S;
/// Significant decimal digits of a value in the histogram.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Records times of one kind.
#[derive(Clone, Debug)]
pub struct SeriesRecorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
    sum_squares_ns2: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for SeriesRecorder {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS);
        Self {
            histogram: histogram.expect("the bounds are constants that fit"),
            sum_ns: 0,
            sum_squares_ns2: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl SeriesRecorder {
    /// Record one time.
    #[inline]
    pub fn record(&mut self, time_ns: u64) {
        self.histogram.saturating_record(time_ns);
        self.sum_ns += u128::from(time_ns);
        self.sum_squares_ns2 += u128::from(time_ns) * u128::from(time_ns);
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }

    /// Take in everything another one recorded.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.histogram
            .add(&other.histogram)
            .expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 += other.sum_squares_ns2;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Forget everything; costs next to nothing where nothing was recorded.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        self.histogram.reset();
        (self.sum_ns, self.sum_squares_ns2, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The histogram, for logs.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// What is written: a percentile is the greatest value equivalent to the one at that rank, never above the exact
    /// maximum.
    pub fn summarize(&self) -> Series {
        if self.is_empty() {
            return Series::default();
        }
        let at = |quantile: f64| self.histogram.value_at_quantile(quantile).min(self.max_ns);
        Series {
            count: self.histogram.len(),
            sum_ns: self.sum_ns,
            sum_squares_ns2: self.sum_squares_ns2,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            p99_99_ns: at(0.9999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(times_ns: &[u64]) -> SeriesRecorder {
        let mut recorder = SeriesRecorder::default();
        times_ns
            .iter()
            .for_each(|&time_ns| recorder.record(time_ns));
        recorder
    }

    #[test]
    fn an_empty_series_is_all_zero() {
        assert_eq!(Series::default(), SeriesRecorder::default().summarize());
    }

    #[test]
    fn longer_than_an_hour_is_exact_in_the_sums() {
        let series = recorded(&[2 * LONGEST_NS]).summarize();
        assert_eq!(
            (1, u128::from(2 * LONGEST_NS), 2 * LONGEST_NS),
            (series.count, series.sum_ns, series.max_ns)
        );
    }

    proptest! {
        // Every case clears and merges histograms of 270 kB.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn sums_are_exact_and_percentiles_close(mut times_ns in proptest::collection::vec(0_u64..10_000_000_000, 1..300)) {
            let series = recorded(&times_ns).summarize();
            times_ns.sort_unstable();
            prop_assert_eq!(times_ns.len() as u64, series.count);
            prop_assert_eq!(times_ns.iter().map(|&t| u128::from(t)).sum::<u128>(), series.sum_ns);
            prop_assert_eq!(times_ns.iter().map(|&t| u128::from(t) * u128::from(t)).sum::<u128>(), series.sum_squares_ns2);
            prop_assert_eq!((times_ns[0], times_ns[times_ns.len() - 1]), (series.min_ns, series.max_ns));
            for (quantile, found) in [(0.5, series.p50_ns), (0.9, series.p90_ns), (0.999, series.p99_9_ns)] {
                let rank = (quantile * times_ns.len() as f64).ceil() as usize;
                let exact = times_ns[rank.max(1) - 1];
                prop_assert!(found >= exact && found as f64 <= exact as f64 * 1.001 + 1.0, "{found} for {exact}");
            }
        }

        #[test]
        fn merging_is_recording_together(a in proptest::collection::vec(0_u64..1 << 40, 0..50), b in proptest::collection::vec(0_u64..1 << 40, 0..50)) {
            let mut merged = recorded(&a);
            merged.merge(&recorded(&b));
            prop_assert_eq!(recorded(&[a, b].concat()).summarize(), merged.summarize());
            merged.clear();
            prop_assert_eq!(Series::default(), merged.summarize());
        }
    }
}
