//! The log of `-l`: a file for each thread, a line for each transaction, or for each interval of them.
//!
//! Lines are made on the writer's thread from the workers' records. Times are whole microseconds.

use std::fs::File;
use std::io::{self, Write};

use super::aggregate::{Aggregate, Columns};
use super::options::{Options, Switch};
use crate::blocks::block_of;
use crate::outcome::FailureClass;
use crate::random::Generator;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It committed.
    Committed,
    /// It failed, and its client went on.
    Failed(FailureClass),
    /// It was never started.
    Skipped,
}

/// One transaction, as logs tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number over all threads.
    pub client: usize,
    /// Index of its script.
    pub script: usize,
    /// What became of it.
    pub fate: Fate,
    /// How often it was tried.
    pub tries: u32,
    /// When it ended, in microseconds since 1970.
    pub end_us: u64,
    /// Intended start to end, of a committed one.
    pub latency_us: u64,
    /// Intended to actual start, of a committed one.
    pub lag_us: u64,
}

/// What a line tells, by the options.
#[derive(Clone, Copy, Debug)]
struct Format {
    lag: bool,
    retries: bool,
    failures_detailed: bool,
}

/// One thread's file.
struct ThreadLog {
    file: File,
    text: Vec<u8>,
    sampling: Generator,
    aggregate: Option<Aggregate>,
}

/// See the module.
pub struct Log {
    format: Format,
    columns: Columns,
    sampling_rate: Option<f64>,
    aggregate_interval_s: Option<u32>,
    threads: Vec<ThreadLog>,
    /// By client: transactions so far, failed and skipped ones included.
    numbers: Vec<u64>,
}

impl Log {
    /// Create the files; `sampling` has a generator for each thread.
    ///
    /// # Errors
    /// A file that cannot be created, in pgbench's words.
    pub fn create(
        options: &Options,
        process_id: u32,
        sampling: &[Generator],
    ) -> Result<Self, String> {
        let thread_log = |(thread, &sampling): (usize, &Generator)| {
            let path = path(&options.log_prefix, process_id, thread);
            let opened = File::create(&path);
            let file = opened.map_err(|error| {
                format!(
                    "could not open logfile \"{path}\": {}",
                    crate::reactor::reason(&error)
                )
            })?;
            Ok(ThreadLog {
                file,
                text: Vec::new(),
                sampling,
                aggregate: None,
            })
        };
        let threads: Result<_, String> = sampling.iter().enumerate().map(thread_log).collect();
        Ok(Self {
            format: Format {
                lag: options.rate_per_s.is_some(),
                retries: options.max_tries != 1,
                failures_detailed: options.has(Switch::FailuresDetailed),
            },
            columns: Columns::of(options),
            sampling_rate: options.sampling_rate,
            aggregate_interval_s: options.aggregate_interval_s,
            threads: threads?,
            numbers: vec![0; options.clients],
        })
    }

    /// The run begins, at this time in microseconds since 1970.
    pub fn start(&mut self, start_us: u64) {
        if let Some(interval_s) = self.aggregate_interval_s {
            for thread in &mut self.threads {
                thread.aggregate = Some(Aggregate::new(self.columns.clone(), interval_s, start_us));
            }
        }
    }

    /// Write transactions, those of one thread in the order of their ends.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&mut self, entries: impl Iterator<Item = Entry>) -> io::Result<()> {
        let count = self.threads.len();
        for entry in entries {
            let log = &mut self.threads[block_of(self.numbers.len(), count, entry.client)];
            let number = &mut self.numbers[entry.client];
            *number += 1;
            let number = *number;
            if let Some(rate) = self.sampling_rate
                && log.sampling.unit() > rate
            {
                continue;
            }
            match &mut log.aggregate {
                Some(aggregate) => aggregate.add(&entry, &mut log.text),
                None => self.format.line(number, &entry, &mut log.text),
            }
        }
        self.threads.iter_mut().try_for_each(ThreadLog::flush)
    }

    /// The run ended, at this time in microseconds since 1970: write what is left.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&mut self, end_us: u64) -> io::Result<()> {
        for thread in &mut self.threads {
            if let Some(aggregate) = &mut thread.aggregate {
                aggregate.finish(end_us, &mut thread.text);
            }
            thread.flush()?;
        }
        Ok(())
    }
}

impl ThreadLog {
    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

impl Format {
    /// The line of a transaction, the `number`th of its client.
    fn line(self, number: u64, entry: &Entry, text: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let mut column = |value: u64, text: &mut Vec<u8>| {
            text.extend_from_slice(digits.format(value).as_bytes());
        };
        column(entry.client as u64, text);
        text.push(b' ');
        column(number, text);
        text.push(b' ');
        match self.fate(entry.fate) {
            None => column(entry.latency_us, text),
            Some(word) => text.extend_from_slice(word.as_bytes()),
        }
        let (end_s, end_us) = (entry.end_us / 1_000_000, entry.end_us % 1_000_000);
        let lag_us = match entry.fate {
            Fate::Committed => entry.lag_us,
            _ => 0,
        };
        let retries = u64::from(entry.tries.saturating_sub(1));
        let optional = [(lag_us, self.lag), (retries, self.retries)];
        let optional = optional.into_iter().filter(|(_, told)| *told);
        for value in [entry.script as u64, end_s, end_us]
            .into_iter()
            .chain(optional.map(|(value, _)| value))
        {
            text.push(b' ');
            column(value, text);
        }
        text.push(b'\n');
    }

    /// What stands in place of the time.
    fn fate(self, fate: Fate) -> Option<&'static str> {
        match fate {
            Fate::Committed => None,
            Fate::Skipped => Some("skipped"),
            Fate::Failed(_) if !self.failures_detailed => Some("failed"),
            Fate::Failed(FailureClass::Serialization) => Some("serialization"),
            Fate::Failed(FailureClass::Deadlock) => Some("deadlock"),
            Fate::Failed(FailureClass::Other | FailureClass::Connection) => Some("other"),
        }
    }
}

/// `PREFIX.PID` of the first thread, `PREFIX.PID.THREAD` of the others.
fn path(prefix: &str, process_id: u32, thread: usize) -> String {
    match thread {
        0 => format!("{prefix}.{process_id}"),
        _ => format!("{prefix}.{process_id}.{thread}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulation::Emulation;
    use super::super::test_options::options;
    use super::*;

    fn entry(client: usize, fate: Fate) -> Entry {
        Entry {
            client,
            script: 1,
            fate,
            tries: 1,
            end_us: 1_795_290_955_064_448,
            latency_us: 1284,
            lag_us: 60,
        }
    }

    /// Write entries of two threads; both files' text.
    fn written(change: impl Fn(&mut Options), entries: [&[Entry]; 2]) -> [String; 2] {
        let folder = std::env::temp_dir().join(format!(
            "pgdyno-log-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir(&folder).unwrap();
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        options.clients = 3;
        options.log_prefix = folder.join("log").display().to_string();
        change(&mut options);
        let generators = [Generator::from_seed(1), Generator::from_seed(2)];
        let mut log = Log::create(&options, 77, &generators).unwrap();
        log.start(1_795_290_955_000_000);
        for entries in entries {
            log.write(entries.iter().copied()).unwrap();
        }
        log.finish(1_795_290_955_900_000).unwrap();
        let texts =
            ["log.77", "log.77.1"].map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        texts
    }

    #[test]
    fn a_line_for_each_transaction_of_each_thread() {
        let first = [
            entry(0, Fate::Committed),
            entry(1, Fate::Committed),
            entry(0, Fate::Failed(FailureClass::Deadlock)),
        ];
        let second = [entry(2, Fate::Skipped)];
        assert_eq!(
            [
                "0 1 1284 1 1795290955 64448\n1 1 1284 1 1795290955 64448\n0 2 failed 1 1795290955 64448\n",
                "2 1 skipped 1 1795290955 64448\n",
            ],
            written(|_| {}, [&first, &second])
        );
    }

    #[test]
    fn options_add_columns_and_classes() {
        let retried = Entry {
            tries: 3,
            ..entry(0, Fate::Committed)
        };
        let first = [
            retried,
            entry(0, Fate::Failed(FailureClass::Serialization)),
            entry(0, Fate::Failed(FailureClass::Deadlock)),
            entry(0, Fate::Failed(FailureClass::Other)),
        ];
        let change = |options: &mut Options| {
            options.rate_per_s = Some(1.0);
            options.max_tries = 2;
            options.switches.insert(Switch::FailuresDetailed);
        };
        assert_eq!(
            [
                "\
0 1 1284 1 1795290955 64448 60 2
0 2 serialization 1 1795290955 64448 0 0
0 3 deadlock 1 1795290955 64448 0 0
0 4 other 1 1795290955 64448 0 0
",
                "",
            ],
            written(change, [&first, &[]])
        );
    }

    #[test]
    fn a_sample_keeps_the_numbers_of_all() {
        let entries = [entry(0, Fate::Committed); 1000];
        let [text, _] = written(|options| options.sampling_rate = Some(0.1), [&entries, &[]]);
        let numbers: Vec<u64> = text
            .lines()
            .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        assert!((60..140).contains(&numbers.len()), "{}", numbers.len());
        assert!(numbers.last() > Some(&900) && numbers.is_sorted());
    }

    #[test]
    fn intervals_are_written_by_thread() {
        let first = [entry(0, Fate::Committed), entry(1, Fate::Committed)];
        let change = |options: &mut Options| options.aggregate_interval_s = Some(1);
        assert_eq!(
            [
                "1795290955 2 2568 3297312 1284 1284 0 0 0 0 0 0 0 0 0\n",
                "",
            ],
            written(change, [&first, &[]])
        );
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let mut options = options(Emulation::V18, &[("a.sql", 1)], &[]);
        options.log_prefix = "/nowhere/log".into();
        let error = Log::create(&options, 5, &[Generator::from_seed(1)]).err();
        assert_eq!(
            Some("could not open logfile \"/nowhere/log.5\": No such file or directory".into()),
            error
        );
    }
}
