//! Lines of `--aggregate-interval`: one thread's transactions by intervals of whole seconds of the day.
//!
//! The first interval begins with the second in which the run began. An interval in which nothing ended is told, too,
//! and so is the last one, which the end of the run cuts short (pgbench drops it).

use std::collections::BTreeSet;
use std::io::Write;

use super::log::{Entry, Fate};
use super::options::{Options, Switch};
use super::tally::Tally;
use crate::outcome::FailureClass;

/// Microseconds in a second.
const US_PER_S: u64 = 1_000_000;

/// Columns that are zero, or not there, unless an option asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Lag,
    Skipped,
    Retries,
    Failures,
    /// The 16th, of version 19: it is there only with `--continue-on-error`.
    Other,
}

/// What the options ask for.
#[derive(Clone, Debug)]
pub struct Columns(BTreeSet<Column>);

/// The transactions of one thread in the current interval.
#[derive(Clone, Debug)]
pub struct Aggregate {
    columns: Columns,
    interval_us: u64,
    /// First microsecond of the current interval, since 1970.
    begin_us: u64,
    tally: Tally,
}

impl Columns {
    /// Of these options.
    pub fn of(options: &Options) -> Self {
        let columns = [
            (Column::Lag, options.rate_per_s.is_some()),
            (Column::Skipped, options.latency_limit.is_some()),
            (Column::Retries, options.max_tries != 1),
            (Column::Failures, options.has(Switch::FailuresDetailed)),
            (Column::Other, options.has(Switch::ContinueOnError)),
        ];
        let asked_for = columns.into_iter().filter(|&(_, asked_for)| asked_for);
        Self(asked_for.map(|(column, _)| column).collect())
    }

    fn has(&self, column: Column) -> bool {
        self.0.contains(&column)
    }
}

impl Aggregate {
    /// From `start_us` (since 1970) on, in intervals of `interval_s`.
    pub fn new(columns: Columns, interval_s: u32, start_us: u64) -> Self {
        Self {
            columns,
            interval_us: u64::from(interval_s) * US_PER_S,
            begin_us: start_us / US_PER_S * US_PER_S,
            tally: Tally::default(),
        }
    }

    /// Take a transaction in; lines of intervals that ended before it go to `text`.
    pub fn add(&mut self, entry: &Entry, text: &mut Vec<u8>) {
        self.turn_to(entry.end_us, text);
        let tally = &mut self.tally;
        if entry.fate != Fate::Skipped && entry.tries > 1 {
            tally.retried += 1;
            tally.retries += u64::from(entry.tries - 1);
        }
        match entry.fate {
            Fate::Committed => {
                tally.committed += 1;
                tally.latency.record(entry.latency_us as f64);
                if self.columns.has(Column::Lag) {
                    tally.lag.record(entry.lag_us as f64);
                }
            }
            Fate::Skipped => tally.skipped += 1,
            Fate::Failed(FailureClass::Serialization) => tally.serialization += 1,
            Fate::Failed(FailureClass::Deadlock) => tally.deadlock += 1,
            Fate::Failed(FailureClass::Other | FailureClass::Connection) => tally.other += 1,
        }
    }

    /// The run ended at `end_us`: every line that is left.
    pub fn finish(&mut self, end_us: u64, text: &mut Vec<u8>) {
        self.turn_to(end_us, text);
        if self.tally.total() > 0 {
            self.line(text);
            self.tally = Tally::default();
        }
    }

    fn turn_to(&mut self, now_us: u64, text: &mut Vec<u8>) {
        while self.begin_us + self.interval_us <= now_us {
            self.line(text);
            self.tally = Tally::default();
            self.begin_us += self.interval_us;
        }
    }

    fn line(&self, text: &mut Vec<u8>) {
        let Tally {
            latency,
            lag,
            skipped,
            retried,
            retries,
            serialization,
            deadlock,
            ..
        } = &self.tally;
        let begin_s = self.begin_us / US_PER_S;
        let _ = write!(text, "{begin_s} {}", self.tally.committed);
        for moments in [latency, lag] {
            let (sum, squares) = (moments.sum_us, moments.sum_squares_us2);
            let (min, max) = (moments.min_us, moments.max_us);
            let _ = write!(text, " {sum:.0} {squares:.0} {min:.0} {max:.0}");
        }
        let shown = |column, count: u64| if self.columns.has(column) { count } else { 0 };
        for count in [
            shown(Column::Skipped, *skipped),
            shown(Column::Retries, *retried),
            shown(Column::Retries, *retries),
            shown(Column::Failures, *serialization),
            shown(Column::Failures, *deadlock),
        ] {
            let _ = write!(text, " {count}");
        }
        if self.columns.has(Column::Other) {
            let _ = write!(text, " {}", shown(Column::Failures, self.tally.other));
        }
        text.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::emulation::Emulation;
    use super::super::test_options::options;
    use super::*;

    const START_US: u64 = 1_795_290_955_064_448;

    fn entry(fate: Fate, after_us: u64, tries: u32) -> Entry {
        Entry {
            client: 0,
            script: 0,
            fate,
            tries,
            end_us: START_US + after_us,
            latency_us: 100 + after_us % 7,
            lag_us: 10,
        }
    }

    fn lines(options: &Options, interval_s: u32, entries: &[Entry], end_after_us: u64) -> String {
        let mut aggregate = Aggregate::new(Columns::of(options), interval_s, START_US);
        let mut text = Vec::new();
        entries
            .iter()
            .for_each(|entry| aggregate.add(entry, &mut text));
        aggregate.finish(START_US + end_after_us, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn empty_intervals_and_the_last_one_are_told() {
        let entries = [
            entry(Fate::Committed, 7, 1),
            entry(Fate::Committed, 700_002, 1),
            // The first interval began with the second, 64 ms before the run.
            entry(Fate::Committed, 935_552, 1),
            entry(Fate::Committed, 3_500_001, 1),
        ];
        let options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        assert_eq!(
            "\
1795290955 2 202 20404 100 102 0 0 0 0 0 0 0 0 0
1795290956 1 102 10404 102 102 0 0 0 0 0 0 0 0 0
1795290957 0 0 0 0 0 0 0 0 0 0 0 0 0 0
1795290958 1 101 10201 101 101 0 0 0 0 0 0 0 0 0
",
            lines(&options, 1, &entries, 3_600_000)
        );
    }

    #[test]
    fn a_run_that_ends_with_an_interval_has_no_empty_line_after_it() {
        let entries = [entry(Fate::Committed, 7, 1)];
        let options = options(Emulation::V15, &[("a.sql", 1)], &[]);
        let text = lines(&options, 2, &entries, 1_935_552);
        assert_eq!("1795290955 1 100 10000 100 100 0 0 0 0 0 0 0 0 0\n", text);
    }

    #[test]
    fn columns_are_there_when_asked_for() {
        let entries = [
            entry(Fate::Committed, 7, 3),
            entry(Fate::Failed(FailureClass::Serialization), 8, 2),
            entry(Fate::Failed(FailureClass::Deadlock), 9, 1),
            entry(Fate::Failed(FailureClass::Other), 9, 1),
            entry(Fate::Skipped, 9, 1),
        ];
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        let told = |options: &Options| lines(options, 1, &entries, 10);
        assert_eq!(
            "1795290955 1 100 10000 100 100 0 0 0 0 0 0 0 0 0\n",
            told(&options)
        );
        options.rate_per_s = Some(10.0);
        options.latency_limit = Some(Duration::from_millis(1));
        options.max_tries = 3;
        options.switches.insert(Switch::FailuresDetailed);
        assert_eq!(
            "1795290955 1 100 10000 100 100 10 100 10 10 1 2 3 1 1\n",
            told(&options)
        );
        options.switches.insert(Switch::ContinueOnError);
        assert_eq!(
            "1795290955 1 100 10000 100 100 10 100 10 10 1 2 3 1 1 1\n",
            told(&options)
        );
    }
}
