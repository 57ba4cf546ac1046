//! Progress lines of `-P`: one for each interval since the start was given, for `-t` and `-T` alike.
//!
//! Time is the measurement's own clock: it begins when all clients are connected.

use super::options::{Options, Switch};
use super::tally::{Tally, fixed};

/// A last interval is told when it is at least this share of a whole one.
const LEAST_SHARE: f64 = 0.9;

/// An interval, as progress lines tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its length, in seconds.
    pub length_s: f64,
    /// From the start to its end, in seconds.
    pub end_s: f64,
    /// Its end, in seconds since 1970.
    pub end_unix_s: f64,
}

/// The line of an interval; None when it is too short to be told: the run has ended in it.
pub fn progress_line(options: &Options, interval: Interval, tally: &Tally) -> Option<String> {
    let whole_s = f64::from(options.progress_s?);
    if interval.length_s < LEAST_SHARE * whole_s {
        return None;
    }
    let time = if options.has(Switch::ProgressTimestamp) {
        fixed(interval.end_unix_s, 3)
    } else {
        fixed(interval.end_s, 1)
    };
    let tps = fixed(tally.committed as f64 / interval.length_s, 1);
    let [average, deviation, lag] = if tally.committed == 0 {
        [0.0; 3]
    } else {
        let latency = &tally.latency;
        [
            latency.mean_us(),
            latency.stddev_us(),
            tally.lag.sum_us / tally.committed as f64,
        ]
    }
    .map(|time_us| fixed(0.001 * time_us, 3));
    let mut line = format!(
        "progress: {time} s, {tps} tps, lat {average} ms stddev {deviation}, {} failed",
        tally.failures()
    );
    if options.rate_per_s.is_some() {
        line.push_str(&format!(", lag {lag} ms"));
        if options.latency_limit.is_some() {
            line.push_str(&format!(", {} skipped", tally.skipped));
        }
    }
    if options.max_tries != 1 {
        let Tally {
            retried, retries, ..
        } = tally;
        line.push_str(&format!(", {retried} retried, {retries} retries"));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::emulation::Emulation;
    use super::super::tally::Moments;
    use super::super::test_options::options;
    use super::*;

    const SECOND: Interval = Interval {
        length_s: 1.0,
        end_s: 3.0,
        end_unix_s: 1_795_290_955.064_448,
    };

    fn tally() -> Tally {
        let mut latency = Moments::default();
        latency.record(500.0);
        latency.record(1_500.0);
        let mut lag = Moments::default();
        lag.record(100.0);
        lag.record(224.0);
        Tally {
            committed: 2,
            skipped: 4,
            deadlock: 3,
            retried: 5,
            retries: 6,
            latency,
            lag,
            ..Tally::default()
        }
    }

    fn line(change: impl Fn(&mut Options)) -> Option<String> {
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        options.progress_s = Some(1);
        change(&mut options);
        progress_line(&options, SECOND, &tally())
    }

    #[test]
    fn each_option_adds_its_part() {
        let plain = "progress: 3.0 s, 2.0 tps, lat 1.000 ms stddev 0.500, 3 failed";
        let shown = |change: &dyn Fn(&mut Options)| line(change).unwrap();
        assert_eq!(plain, shown(&|_| {}));
        assert_eq!(
            format!("{plain}, lag 0.162 ms"),
            shown(&|options| options.rate_per_s = Some(10.0))
        );
        assert_eq!(
            format!("{plain}, lag 0.162 ms, 4 skipped, 5 retried, 6 retries"),
            shown(&|options| {
                options.rate_per_s = Some(10.0);
                options.latency_limit = Some(Duration::from_millis(5));
                options.max_tries = 0;
            })
        );
        assert_eq!(
            "progress: 1795290955.064 s, 2.0 tps, lat 1.000 ms stddev 0.500, 3 failed",
            shown(&|options| {
                options.switches.insert(Switch::ProgressTimestamp);
            })
        );
    }

    #[test]
    fn an_empty_interval_has_zeros() {
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        options.progress_s = Some(1);
        options.rate_per_s = Some(0.1);
        assert_eq!(
            Some(
                "progress: 3.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed, lag 0.000 ms"
                    .into()
            ),
            progress_line(&options, SECOND, &Tally::default())
        );
    }

    #[test]
    fn the_rest_of_an_interval_is_not_told() {
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        assert_eq!(None, progress_line(&options, SECOND, &tally()));
        options.progress_s = Some(2);
        assert_eq!(None, progress_line(&options, SECOND, &tally()));
    }
}
