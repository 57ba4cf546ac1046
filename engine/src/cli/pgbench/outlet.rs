//! Where a run's results go while it runs: progress lines, logs, a histogram log. On the writer's thread.

use std::io;

use super::log::{Entry, Fate, Log};
use super::options::Options;
use super::progress::{Interval, progress_line};
use super::tally::Tally;
use crate::clock::NS_PER_S;
use crate::history::{Record, TransactionRecord};
use crate::outcome::TransactionOutcome;
use crate::output::{Outlet, Whole};
use crate::recorder::Shape;
use crate::results::{ClockAnchor, Phase};
use crate::schedule::Timetable;

/// Nanoseconds in a microsecond.
const NS_PER_US: u64 = 1_000;

/// See the module.
pub struct RunOutlet {
    options: Options,
    shape: Shape,
    log: Option<Log>,
    anchor: ClockAnchor,
    begin_ns: u64,
}

impl RunOutlet {
    /// Of a run with these options; `log` where one is asked for.
    pub fn new(options: Options, shape: Shape, log: Option<Log>) -> Self {
        Self {
            options,
            shape,
            log,
            anchor: ClockAnchor {
                monotonic_ns: 0,
                wall_unix_ns: 0,
            },
            begin_ns: 0,
        }
    }

    /// Nanoseconds since 1970.
    fn unix_ns(&self, at_ns: u64) -> u64 {
        unix_ns(self.anchor, at_ns)
    }
}

fn unix_ns(anchor: ClockAnchor, at_ns: u64) -> u64 {
    (anchor.wall_unix_ns + at_ns).saturating_sub(anchor.monotonic_ns)
}

/// A record as logs tell it; None: they do not.
fn entry(anchor: ClockAnchor, record: &Record) -> Option<Entry> {
    let end_us = |at_ns| unix_ns(anchor, at_ns) / NS_PER_US;
    match record {
        Record::History(_) => None,
        Record::Skipped(skipped) => Some(Entry {
            client: skipped.client,
            script: skipped.transaction_type,
            fate: Fate::Skipped,
            tries: 1,
            end_us: end_us(skipped.at_ns),
            latency_us: 0,
            lag_us: 0,
        }),
        Record::Transaction(record) => {
            let TransactionRecord {
                intended_start_ns,
                actual_start_ns,
                end_ns,
                ..
            } = *record;
            let fate = match record.outcome {
                TransactionOutcome::Committed => Fate::Committed,
                TransactionOutcome::Failed(class) => Fate::Failed(class),
                TransactionOutcome::Unknown => {
                    Fate::Failed(crate::outcome::FailureClass::Connection)
                }
                TransactionOutcome::InFlightAtEnd => return None,
            };
            Some(Entry {
                client: record.client,
                script: record.transaction_type,
                fate,
                tries: record.tries,
                end_us: end_us(end_ns),
                latency_us: end_ns.saturating_sub(intended_start_ns) / NS_PER_US,
                lag_us: actual_start_ns.saturating_sub(intended_start_ns) / NS_PER_US,
            })
        }
    }
}

impl Outlet for RunOutlet {
    fn started(&mut self, timetable: Timetable, anchor: ClockAnchor) -> io::Result<()> {
        self.anchor = anchor;
        self.begin_ns = timetable.measurement_begin_ns;
        let start_us = self.unix_ns(self.begin_ns) / NS_PER_US;
        if let Some(log) = &mut self.log {
            log.start(start_us);
        }
        Ok(())
    }

    fn interval(&mut self, whole: &Whole) -> io::Result<()> {
        let Some((_, recording)) = &whole.recordings[Phase::Measurement.index()] else {
            return Ok(());
        };
        if self.options.progress_s.is_none() {
            return Ok(());
        }
        let seconds = |ns: u64| ns as f64 / NS_PER_S as f64;
        let interval = Interval {
            length_s: seconds(whole.end_ns.saturating_sub(whole.begin_ns)),
            end_s: seconds(whole.end_ns.saturating_sub(self.begin_ns)),
            end_unix_s: seconds(self.unix_ns(whole.end_ns)),
        };
        let tally = Tally::of(&recording.counters(), &recording.times(self.shape));
        if let Some(line) = progress_line(&self.options, interval, &tally) {
            eprintln!("{line}");
        }
        Ok(())
    }

    fn records(&mut self, worker: usize, records: &[Record]) -> io::Result<()> {
        let anchor = self.anchor;
        match &mut self.log {
            Some(log) => log.write(worker, records.iter().filter_map(|r| entry(anchor, r))),
            None => Ok(()),
        }
    }

    fn finish(&mut self, end_ns: u64) -> io::Result<()> {
        let end_us = self.unix_ns(end_ns) / NS_PER_US;
        match &mut self.log {
            Some(log) => log.finish(end_us),
            None => Ok(()),
        }
    }
}
