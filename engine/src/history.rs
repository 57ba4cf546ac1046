//! Records on request, one worker's: the history of acknowledged commits, and a sample of transactions.
//!
//! Records gather in a buffer that was made before the start; a full one goes to the writer's thread and a cleared
//! one takes its place, so that nothing is allocated or formatted between intended start and record. A writer that
//! lags is given more buffers, up to a limit; beyond it records are dropped and counted, and a history with a gap
//! ends the measurement as aborted: an audit must never be silent about that. A log that must hold everything, as that
//! of pgbench, waits for the writer instead.

use std::sync::mpsc::{Receiver, Sender};

use crate::books::ToWriter;
use crate::outcome::TransactionOutcome;
use crate::plan::Plan;
use crate::results::Phase;

/// Records in one buffer.
const RECORDS_PER_BUFFER: usize = 4096;
/// Buffers made before the start, for each worker.
pub const RECORD_BUFFERS: usize = 4;
/// The most buffers of one worker, on their way or in use: about 20 MB.
const MOST_BUFFERS: usize = 64;

/// What happened to a try of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryEvent {
    /// It begins.
    Begin,
    /// The server acknowledged everything.
    Acknowledged,
    /// It did not commit, or not as a whole.
    Failed,
    /// A message that could commit was sent, and no answer came.
    Unknown,
}

/// Which try of which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// Number of the client within its worker.
    pub slot: usize,
    /// Tries of this client so far, this one included.
    pub sequence: u64,
    /// Index of its transaction type.
    pub transaction_type: usize,
}

/// One line of `history.jsonl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    /// Number over all workers.
    pub client: usize,
    /// Of the client's tries, from 1.
    pub sequence: u64,
    /// What happened.
    pub event: TryEvent,
    /// Index of its transaction type.
    pub transaction_type: usize,
    /// When.
    pub at_ns: u64,
}

/// One line of the sampled log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionRecord {
    /// Number over all workers.
    pub client: usize,
    /// Index of its transaction type.
    pub transaction_type: usize,
    /// In which it was started.
    pub phase: Phase,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// How often it was tried.
    pub tries: u32,
    /// When it was to start.
    pub intended_start_ns: u64,
    /// When it started.
    pub actual_start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// A transaction that never started because it was too late for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedRecord {
    /// Number over all workers of the client that was free when it was skipped.
    pub client: usize,
    /// Index of its transaction type.
    pub transaction_type: usize,
    /// When it was skipped.
    pub at_ns: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// For `history.jsonl`.
    History(HistoryRecord),
    /// For logs that tell of every start.
    Skipped(SkippedRecord),
    /// For the sampled log.
    Transaction(TransactionRecord),
}

/// What happens to records that the writer has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// They are dropped and counted: the load must not be held up.
    #[default]
    Drop,
    /// The worker waits.
    Wait,
}

/// What a plan wants recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Every try.
    pub history: bool,
    /// Transactions whose hash is below this; 0: none.
    pub sample_below: u64,
    /// What a writer that lags costs.
    pub when_full: WhenFull,
}

impl Wanted {
    /// Of a plan.
    pub fn by(plan: &Plan) -> Self {
        let share = |rate: f64| {
            // A float as large as 2^64 saturates, so that a rate of 1 takes all.
            (rate * 2.0_f64.powi(64)) as u64
        };
        Self {
            history: plan.history,
            sample_below: plan
                .transaction_log
                .as_ref()
                .map_or(0, |log| share(log.rate)),
            when_full: WhenFull::Drop,
        }
    }

    /// Whether anything is.
    pub fn any(self) -> bool {
        self.history || self.sample_below > 0
    }
}

/// Records that could not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Of the history.
    pub history: u64,
    /// Of the sampled log.
    pub transactions: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    wanted: Wanted,
    worker: usize,
    first_client: usize,
    buffer: Vec<Record>,
    /// Buffers made so far.
    made: usize,
    /// Transactions seen, for the sample.
    seen: u64,
    dropped: Dropped,
}

/// An empty buffer.
pub fn buffer() -> Vec<Record> {
    Vec::with_capacity(RECORDS_PER_BUFFER)
}

impl Ledger {
    /// Of a worker whose first client has this number.
    pub fn new(wanted: Wanted, worker: usize, first_client: usize) -> Self {
        Self {
            wanted,
            worker,
            first_client,
            buffer: if wanted.any() { buffer() } else { Vec::new() },
            made: RECORD_BUFFERS + 1,
            seen: 0,
            dropped: Dropped::default(),
        }
    }

    /// Whether tries are recorded.
    #[inline]
    pub fn wants_history(&self) -> bool {
        self.wanted.history
    }

    /// Whether transactions are recorded, all or a sample.
    pub fn wants_transactions(&self) -> bool {
        self.wanted.sample_below > 0
    }

    /// Something happened to a try. True: the buffer is full, send it.
    pub fn happened(&mut self, of: Try, event: TryEvent, at_ns: u64) -> bool {
        self.keep(Record::History(HistoryRecord {
            client: self.first_client + of.slot,
            sequence: of.sequence,
            event,
            transaction_type: of.transaction_type,
            at_ns,
        }))
    }

    /// A transaction of the client in `slot` ended: whether it belongs to the sample. The choice follows from worker
    /// and count alone, so that it draws nothing from the generators of the load.
    #[inline]
    pub fn chosen(&mut self) -> bool {
        if self.wanted.sample_below == 0 {
            return false;
        }
        self.seen += 1;
        mixed(self.seen ^ ((self.worker as u64) << 48)) < self.wanted.sample_below
            || self.wanted.sample_below == u64::MAX
    }

    /// Note a transaction that was skipped; `client` is still its slot. True: the buffer is full, send it.
    pub fn skipped(&mut self, record: SkippedRecord) -> bool {
        self.keep(Record::Skipped(SkippedRecord {
            client: self.first_client + record.client,
            ..record
        }))
    }

    /// Note a chosen transaction; `client` is still its slot. True: the buffer is full, send it.
    pub fn transaction(&mut self, record: TransactionRecord) -> bool {
        self.keep(Record::Transaction(TransactionRecord {
            client: self.first_client + record.client,
            ..record
        }))
    }

    /// Keep a record where there is room. True: there is no more.
    fn keep(&mut self, record: Record) -> bool {
        if self.buffer.len() < self.buffer.capacity() {
            self.buffer.push(record);
        } else {
            match record {
                Record::History(_) => self.dropped.history += 1,
                Record::Skipped(_) | Record::Transaction(_) => self.dropped.transactions += 1,
            }
        }
        self.buffer.len() == self.buffer.capacity()
    }

    /// Send what there is, if another buffer can take its place, or as soon as one can.
    pub fn send(&mut self, writer: &Sender<ToWriter>, cleared: &Receiver<Vec<Record>>) {
        if self.buffer.is_empty() {
            return;
        }
        let next = cleared.try_recv().ok().or_else(|| {
            let room = self.made < MOST_BUFFERS;
            self.made += usize::from(room);
            room.then(buffer)
        });
        let next = match self.wanted.when_full {
            WhenFull::Drop => next,
            WhenFull::Wait => next.or_else(|| cleared.recv().ok()),
        };
        if let Some(next) = next {
            let records = std::mem::replace(&mut self.buffer, next);
            // A writer that is gone has failed; its error ends the engine.
            let _ = writer.send(ToWriter::Records(self.worker, records));
        }
    }

    /// Send the last ones, whatever the limit; what could not be kept until then.
    pub fn finish(self, writer: &Sender<ToWriter>) -> Dropped {
        if !self.buffer.is_empty() {
            let _ = writer.send(ToWriter::Records(self.worker, self.buffer));
        }
        self.dropped
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): spreads a counter evenly over 64 bits.
fn mixed(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const TRY: Try = Try {
        slot: 1,
        sequence: 7,
        transaction_type: 0,
    };

    #[test]
    fn a_sample_has_its_share() {
        for (rate, least, most) in [(1.0, 10_000, 10_000), (0.1, 900, 1_100), (0.001, 1, 30)] {
            let wanted = Wanted {
                history: false,
                sample_below: (rate * 2.0_f64.powi(64)) as u64,
                ..Wanted::default()
            };
            let mut ledger = Ledger::new(wanted, 3, 0);
            let chosen = (0..10_000).filter(|_| ledger.chosen()).count();
            assert!((least..=most).contains(&chosen), "{rate}: {chosen}");
        }
    }

    #[test]
    fn a_writer_that_never_comes_back_costs_bounded_memory_and_is_told() {
        let wanted = Wanted {
            history: true,
            ..Wanted::default()
        };
        let mut ledger = Ledger::new(wanted, 0, 10);
        let (to_writer, received) = channel();
        let (_give_back, cleared) = channel();
        let all = (MOST_BUFFERS + 10) * RECORDS_PER_BUFFER;
        for _ in 0..all {
            if ledger.happened(TRY, TryEvent::Begin, 5) {
                ledger.send(&to_writer, &cleared);
            }
        }
        let dropped = ledger.finish(&to_writer).history;
        drop(to_writer);
        let mut kept = 0;
        for told in received {
            let ToWriter::Records(0, records) = told else {
                panic!("{told:?}")
            };
            let Record::History(first) = records[0] else {
                panic!("{:?}", records[0])
            };
            assert_eq!((11, 7), (first.client, first.sequence));
            kept += records.len() as u64;
        }
        assert_eq!(all as u64, kept + dropped);
        assert!(dropped > 0 && kept <= (MOST_BUFFERS * RECORDS_PER_BUFFER) as u64);
    }

    #[test]
    fn a_log_that_must_hold_everything_waits_for_the_writer() {
        let wanted = Wanted {
            history: true,
            when_full: WhenFull::Wait,
            ..Wanted::default()
        };
        let (to_writer, received) = channel();
        let (give_back, cleared) = channel();
        let writer = std::thread::spawn(move || {
            let mut kept = 0;
            for told in received {
                let ToWriter::Records(_, mut records) = told else {
                    panic!("{told:?}")
                };
                kept += records.len();
                records.clear();
                // The last ones come when nobody wants buffers any more.
                let _ = give_back.send(records);
            }
            kept
        });
        let mut ledger = Ledger::new(wanted, 0, 0);
        let all = 3 * MOST_BUFFERS * RECORDS_PER_BUFFER + 1;
        for _ in 0..all {
            if ledger.happened(TRY, TryEvent::Begin, 5) {
                ledger.send(&to_writer, &cleared);
            }
        }
        assert_eq!(0, ledger.finish(&to_writer).history);
        drop(to_writer);
        assert_eq!(all, writer.join().unwrap());
    }
}
