//! What a run tells while it goes on: progress lines, logs, and what `--json` and `--hdr` want of each interval.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::json::percentiles;
use super::log::{Entry, Fate, Log};
use super::options::Options;
use super::progress::{Interval, progress_line};
use super::results::{latency, percentile_us, total_times};
use super::tally::Tally;
use crate::clock::NS_PER_S;
use crate::history::{Record, TransactionRecord};
use crate::outcome::{FailureClass, TransactionOutcome};
use crate::output::{HdrLog, Outlet, Whole};
use crate::recorder::{Recording, Shape, TimesRecorder};
use crate::results::{ClockAnchor, Phase};
use crate::schedule::Timetable;

/// Nanoseconds in a microsecond.
const NS_PER_US: u64 = 1000;

/// One interval, for `--json`.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalResult {
    /// When, and how long.
    pub interval: Interval,
    /// What ended in it.
    pub tally: Tally,
    /// Latency in microseconds at each of `json::percentiles`.
    pub percentiles_us: Vec<f64>,
}

/// Intervals so far; the run's end reads what the writer's thread has put in.
pub type SharedIntervals = Arc<Mutex<Vec<IntervalResult>>>;

/// See the module.
pub struct RunOutlet {
    options: Options,
    shape: Shape,
    log: Option<Log>,
    hdr: Option<HdrLog>,
    intervals: SharedIntervals,
    started: Option<Started>,
}

/// The start, on both clocks.
#[derive(Clone, Copy, Debug)]
struct Started {
    begin_ns: u64,
    anchor: ClockAnchor,
}

impl Started {
    /// Microseconds since 1970.
    fn unix_us(&self, at_ns: u64) -> u64 {
        (self.anchor.wall_unix_ns + at_ns).saturating_sub(self.anchor.monotonic_ns) / NS_PER_US
    }
}

impl RunOutlet {
    /// For a run of these options; `log` is what `-l` writes to.
    pub fn new(options: Options, shape: Shape, log: Option<Log>) -> Self {
        Self {
            options,
            shape,
            log,
            hdr: None,
            intervals: SharedIntervals::default(),
            started: None,
        }
    }

    /// Where intervals are put, with `--json`.
    pub fn intervals(&self) -> SharedIntervals {
        self.intervals.clone()
    }

    /// Keep an interval for `--json`.
    fn keep(&self, interval: Interval, tally: Tally, times: &TimesRecorder) {
        let series = latency(times);
        let at = |percent| series.map_or(0.0, |series| percentile_us(series, percent));
        let result = IntervalResult {
            interval,
            tally,
            percentiles_us: percentiles(&self.options).into_iter().map(at).collect(),
        };
        let mut intervals = self
            .intervals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        intervals.push(result);
    }

    /// Add an interval's histograms to the log of `--hdr`.
    fn log_histograms(&mut self, span_ns: (u64, u64), recording: &Recording) -> io::Result<()> {
        let Some(hdr) = &mut self.hdr else {
            return Ok(());
        };
        for (number, of_type) in recording.types.iter().enumerate() {
            for (name, series) in of_type.times.named() {
                let tag = format!("script{}.{name}", number + 1);
                hdr.add(&tag, span_ns, series.histogram())?;
            }
        }
        hdr.flush()
    }
}

impl Outlet for RunOutlet {
    fn started(&mut self, timetable: Timetable, anchor: ClockAnchor) -> io::Result<()> {
        let started = Started {
            begin_ns: timetable.measurement_begin_ns,
            anchor,
        };
        self.started = Some(started);
        if let Some(log) = &mut self.log {
            log.start(started.unix_us(started.begin_ns));
        }
        if let Some(path) = &self.options.hdr {
            self.hdr = Some(
                HdrLog::create(path, anchor, "scripts in the order of the command line").map_err(
                    |error| io::Error::new(error.kind(), format!("{}: {error}", path.display())),
                )?,
            );
        }
        Ok(())
    }

    fn interval(&mut self, whole: &Whole) -> io::Result<()> {
        let recording = whole.recordings[Phase::Measurement.index()].as_ref();
        let (Some(started), Some((_, recording))) = (self.started, recording) else {
            return Ok(());
        };
        let seconds = |ns: u64| ns as f64 / NS_PER_S as f64;
        let interval = Interval {
            length_s: seconds(whole.end_ns - whole.begin_ns),
            end_s: seconds(whole.end_ns.saturating_sub(started.begin_ns)),
            end_unix_s: started.unix_us(whole.end_ns) as f64 / 1e6,
        };
        let tally = Tally::of(&recording.counters(), &recording.times(self.shape));
        if let Some(line) = progress_line(&self.options, interval, &tally) {
            eprintln!("{line}");
        }
        if self.options.json.is_some()
            && let Some(times) = total_times(recording)
        {
            self.keep(interval, tally, &times);
        }
        self.log_histograms((whole.begin_ns, whole.end_ns), recording)
    }

    fn records(&mut self, _worker: usize, records: &[Record]) -> io::Result<()> {
        let (Some(log), Some(started)) = (&mut self.log, self.started) else {
            return Ok(());
        };
        let entries = records.iter().filter_map(|record| entry(record, started));
        log.write(entries)
    }

    fn finish(&mut self, end_ns: u64) -> io::Result<()> {
        match (&mut self.log, self.started) {
            (Some(log), Some(started)) => log.finish(started.unix_us(end_ns)),
            _ => Ok(()),
        }
    }
}

/// A record as logs tell it; None for a transaction that ended its client.
fn entry(record: &Record, started: Started) -> Option<Entry> {
    match record {
        Record::History(_) => None,
        Record::Skipped(skipped) => Some(Entry {
            client: skipped.client,
            script: skipped.transaction_type,
            fate: Fate::Skipped,
            tries: 1,
            end_us: started.unix_us(skipped.at_ns),
            latency_us: 0,
            lag_us: 0,
        }),
        Record::Transaction(transaction) => {
            let TransactionRecord {
                intended_start_ns,
                actual_start_ns,
                end_ns,
                ..
            } = *transaction;
            let fate = match transaction.outcome {
                TransactionOutcome::Committed => Fate::Committed,
                TransactionOutcome::Failed(class) => Fate::Failed(class),
                TransactionOutcome::Unknown => Fate::Failed(FailureClass::Connection),
                TransactionOutcome::InFlightAtEnd => return None,
            };
            // Differences of whole microseconds, as pgbench takes them.
            let since = |later_ns: u64, earlier_ns: u64| {
                (later_ns / NS_PER_US).saturating_sub(earlier_ns / NS_PER_US)
            };
            Some(Entry {
                client: transaction.client,
                script: transaction.transaction_type,
                fate,
                tries: transaction.tries,
                end_us: started.unix_us(end_ns),
                latency_us: since(end_ns, intended_start_ns),
                lag_us: since(actual_start_ns, intended_start_ns),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulation::Emulation;
    use super::super::test_options::options;
    use super::*;
    use crate::history::SkippedRecord;
    use crate::process::Usage;
    use crate::recorder::Ended;

    const STARTED: Started = Started {
        begin_ns: 2_000,
        anchor: ClockAnchor {
            monotonic_ns: 1_000,
            wall_unix_ns: 1_700_000_000_000_001_000,
        },
    };

    fn record(outcome: TransactionOutcome) -> Record {
        Record::Transaction(TransactionRecord {
            client: 0,
            transaction_type: 0,
            phase: Phase::Measurement,
            outcome,
            tries: 2,
            intended_start_ns: 5_900,
            actual_start_ns: 8_100,
            end_ns: 4_000_000,
        })
    }

    #[test]
    fn logs_tell_what_pgbench_counts() {
        let committed = entry(&record(TransactionOutcome::Committed), STARTED).unwrap();
        assert_eq!(
            (1_700_000_000_004_000, 3_995, 3),
            (committed.end_us, committed.latency_us, committed.lag_us)
        );
        let fate = |outcome| entry(&record(outcome), STARTED).map(|entry| entry.fate);
        let other = TransactionOutcome::Failed(FailureClass::Other);
        assert_eq!(Some(Fate::Failed(FailureClass::Other)), fate(other));
        assert_eq!(None, fate(TransactionOutcome::InFlightAtEnd));
        let skipped = Record::Skipped(SkippedRecord {
            client: 3,
            transaction_type: 1,
            at_ns: 1_001_000,
        });
        let skipped = entry(&skipped, STARTED).unwrap();
        assert_eq!(
            (3, 1, Fate::Skipped, 1_700_000_000_001_001),
            (skipped.client, skipped.script, skipped.fate, skipped.end_us)
        );
    }

    #[test]
    fn intervals_are_kept_and_logged_as_histograms() {
        let folder = std::env::temp_dir().join(format!("pgdyno-outlet-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        options.json = Some(folder.join("json"));
        options.hdr = Some(folder.join("hdr"));
        options.percentiles = vec![50.0];
        let shape = Shape {
            transaction_types: 1,
            statements: 0,
            open_loop: false,
            response_time_limit_ns: u64::MAX,
        };
        let mut outlet = RunOutlet::new(options, shape, None);
        let mut recording = Box::new(Recording::new(shape));
        recording.transaction(&Ended {
            transaction_type: 0,
            outcome: TransactionOutcome::Committed,
            intended_start_ns: 0,
            actual_start_ns: 0,
            end_ns: 1_000_000,
            tries: 1,
        });
        let whole = Whole {
            phase: Phase::Measurement,
            begin_ns: 2_000,
            end_ns: 1_000_002_000,
            in_flight: [0; 2],
            clients_connected: 1,
            recordings: [None, Some((0, recording))],
            usage: Usage::default(),
        };
        let timetable = Timetable {
            warmup_begin_ns: 2_000,
            measurement_begin_ns: 2_000,
            measurement_end_ns: None,
        };
        outlet.started(timetable, STARTED.anchor).unwrap();
        outlet.interval(&whole).unwrap();
        outlet.finish(1_000_002_000).unwrap();
        let kept = outlet.intervals().lock().unwrap().clone();
        let log = std::fs::read_to_string(folder.join("hdr")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let [
            IntervalResult {
                interval,
                tally,
                percentiles_us,
            },
        ] = kept.as_slice()
        else {
            panic!("{kept:?}")
        };
        assert_eq!((1.0, 1.0), (interval.length_s, interval.end_s));
        assert_eq!((1, &vec![1_000.0]), (tally.committed, percentiles_us),);
        assert!(log.contains("\nTag=script1.service,0.000,1.000,"), "{log}");
    }
}
