//! What a worker records in one interval: counters that partition and times, by transaction type and by statement.
//!
//! A worker owns one [`Recording`] for each phase and hands it to the writer's thread when an interval ends, taking a
//! cleared one back: the totals are made there, and a worker never waits, allocates or clears a histogram.
//! (See `results_writer.rs` for the other end.)

use crate::outcome::TransactionOutcome;
use crate::program::StatementId;
use crate::results::{Counters, Times};
use crate::series::SeriesRecorder;

/// How many of what there is to record.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Transaction types of the plan.
    pub transaction_types: usize,
    /// Statements of all scripts.
    pub statements: usize,
    /// Whether starts are scheduled, so that lag and response time differ from service time.
    pub open_loop: bool,
    /// A committed transaction is late when its response took longer.
    pub response_time_limit_ns: u64,
}

/// Times of one transaction type's committed transactions.
#[derive(Clone, Debug)]
pub struct TimesRecorder {
    service: SeriesRecorder,
    /// Lag and response time.
    scheduled: Option<Box<[SeriesRecorder; 2]>>,
}

/// One transaction type.
#[derive(Clone, Debug)]
pub struct TypeRecording {
    /// How its transactions ended.
    pub counters: Counters,
    /// Commits the server acknowledged.
    pub server_commits: u64,
    /// Of the committed ones.
    pub times: TimesRecorder,
}

/// One statement.
#[derive(Clone, Debug, Default)]
pub struct StatementRecording {
    /// Of executions without an error.
    pub time: SeriesRecorder,
    /// Rows returned.
    pub rows: u64,
    /// Executions answered with an error.
    pub errors: u64,
    /// Errors after which the transaction was tried again.
    pub retries: u64,
    /// Errors that ended their transaction as failed.
    pub failures: u64,
    /// Bytes of COPY data.
    pub copy_bytes: u64,
}

/// Everything recorded for one phase, over an interval or in total.
#[derive(Clone, Debug)]
pub struct Recording {
    /// In the plan's order.
    pub types: Vec<TypeRecording>,
    /// In the order of `StatementId`.
    pub statements: Vec<StatementRecording>,
    response_time_limit_ns: u64,
}

/// One ended transaction.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Index of its type.
    pub transaction_type: usize,
    /// How.
    pub outcome: TransactionOutcome,
    /// When the schedule wanted it to start; in a closed loop when it started.
    pub intended_start_ns: u64,
    /// When it started.
    pub actual_start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// How often it was tried.
    pub tries: u32,
}

impl Ended {
    /// Count it, by its outcome, its tries and whether its response came in time.
    #[inline]
    pub fn count(&self, counters: &mut Counters, response_time_limit_ns: u64) {
        self.outcome.count(counters);
        let response_ns = self.end_ns.saturating_sub(self.intended_start_ns);
        let committed = self.outcome == TransactionOutcome::Committed;
        counters.retried += u64::from(self.tries > 1);
        counters.retries += u64::from(self.tries.saturating_sub(1));
        counters.late += u64::from(committed && response_ns > response_time_limit_ns);
    }
}

impl TimesRecorder {
    fn new(shape: Shape) -> Self {
        Self {
            service: SeriesRecorder::default(),
            scheduled: shape.open_loop.then(Box::default),
        }
    }

    fn record(&mut self, ended: &Ended) {
        self.service
            .record(ended.end_ns.saturating_sub(ended.actual_start_ns));
        if let Some(scheduled) = &mut self.scheduled {
            scheduled[0].record(
                ended
                    .actual_start_ns
                    .saturating_sub(ended.intended_start_ns),
            );
            scheduled[1].record(ended.end_ns.saturating_sub(ended.intended_start_ns));
        }
    }

    /// Take in everything another one recorded.
    pub fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        if let (Some(mine), Some(theirs)) = (&mut self.scheduled, &other.scheduled) {
            mine.iter_mut()
                .zip(theirs.iter())
                .for_each(|(mine, theirs)| mine.merge(theirs));
        }
    }

    fn clear(&mut self) {
        self.service.clear();
        self.scheduled
            .iter_mut()
            .flat_map(|both| both.iter_mut())
            .for_each(SeriesRecorder::clear);
    }

    /// What is written.
    pub fn summarize(&self) -> Times {
        let scheduled = self.scheduled.as_ref();
        Times {
            service: self.service.summarize(),
            lag: scheduled.map(|both| both[0].summarize()),
            response: scheduled.map(|both| both[1].summarize()),
        }
    }

    /// Each series with the name it has in logs.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &SeriesRecorder)> {
        let scheduled = self
            .scheduled
            .iter()
            .flat_map(|both| [("lag", &both[0]), ("response", &both[1])]);
        std::iter::once(("service", &self.service)).chain(scheduled)
    }
}

impl Recording {
    /// An empty one.
    pub fn new(shape: Shape) -> Self {
        // Made one by one: a clone would touch all the memory of every histogram.
        let of_type = |_| TypeRecording {
            counters: Counters::default(),
            server_commits: 0,
            times: TimesRecorder::new(shape),
        };
        Self {
            types: (0..shape.transaction_types).map(of_type).collect(),
            statements: (0..shape.statements)
                .map(|_| StatementRecording::default())
                .collect(),
            response_time_limit_ns: shape.response_time_limit_ns,
        }
    }

    /// Count one ended transaction, and its times where it committed.
    #[inline]
    pub fn transaction(&mut self, ended: &Ended) {
        let of_type = &mut self.types[ended.transaction_type];
        ended.count(&mut of_type.counters, self.response_time_limit_ns);
        if ended.outcome == TransactionOutcome::Committed {
            of_type.times.record(ended);
        }
    }

    /// Record one execution of a statement that succeeded.
    #[inline]
    pub fn statement(&mut self, statement: StatementId, time_ns: u64, rows: u64) {
        let of_statement = &mut self.statements[statement.index()];
        of_statement.time.record(time_ns);
        of_statement.rows += rows;
    }

    /// Take in everything another one recorded.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.types.iter_mut().zip(&other.types) {
            mine.counters += theirs.counters;
            mine.server_commits += theirs.server_commits;
            mine.times.merge(&theirs.times);
        }
        for (mine, theirs) in self.statements.iter_mut().zip(&other.statements) {
            mine.time.merge(&theirs.time);
            mine.rows += theirs.rows;
            mine.errors += theirs.errors;
            mine.retries += theirs.retries;
            mine.failures += theirs.failures;
            mine.copy_bytes += theirs.copy_bytes;
        }
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        for of_type in &mut self.types {
            (of_type.counters, of_type.server_commits) = (Counters::default(), 0);
            of_type.times.clear();
        }
        for of_statement in &mut self.statements {
            (of_statement.rows, of_statement.errors) = (0, 0);
            of_statement.copy_bytes = 0;
            (of_statement.retries, of_statement.failures) = (0, 0);
            of_statement.time.clear();
        }
    }

    /// Counters of all types together.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.types
            .iter()
            .for_each(|of_type| all += of_type.counters);
        all
    }

    /// Acknowledged commits of all types together.
    pub fn server_commits(&self) -> u64 {
        self.types
            .iter()
            .map(|of_type| of_type.server_commits)
            .sum()
    }

    /// Times of all types together: from merged histograms, never from averages.
    pub fn times(&self, shape: Shape) -> Times {
        match self.types.as_slice() {
            [only] => only.times.summarize(),
            types => {
                let mut all = TimesRecorder::new(shape);
                types.iter().for_each(|of_type| all.merge(&of_type.times));
                all.summarize()
            }
        }
    }

    /// Whether nothing ended in it.
    pub fn is_empty(&self) -> bool {
        self.types
            .iter()
            .all(|of_type| of_type.counters.scheduled == 0 && of_type.server_commits == 0)
            && self
                .statements
                .iter()
                .all(|s| s.time.is_empty() && s.errors == 0 && s.rows == 0 && s.copy_bytes == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::FailureClass;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape {
        transaction_types: 2,
        statements: 3,
        open_loop: true,
        response_time_limit_ns: 105,
    };

    fn ended(transaction_type: usize, outcome: TransactionOutcome, start_ns: u64) -> Ended {
        Ended {
            transaction_type,
            outcome,
            intended_start_ns: start_ns,
            actual_start_ns: start_ns + 10,
            end_ns: start_ns + 110,
            tries: 1,
        }
    }

    #[test]
    fn response_time_is_lag_plus_service_time() {
        let mut recording = Recording::new(SHAPE);
        recording.transaction(&ended(1, TransactionOutcome::Committed, 5));
        let times = recording.times(SHAPE);
        // 110 ns are above the limit of 105; a failed one is never late.
        assert_eq!(
            (1, 1),
            (recording.counters().committed, recording.counters().late)
        );
        recording.transaction(&ended(1, TransactionOutcome::Unknown, 5));
        assert_eq!(1, recording.counters().late);
        assert_eq!(
            (100, 10, 110),
            (
                times.service.sum_ns,
                times.lag.unwrap().sum_ns,
                times.response.unwrap().sum_ns
            )
        );
    }

    #[test]
    fn tries_beyond_the_first_are_retries() {
        let mut recording = Recording::new(SHAPE);
        for tries in [1, 4, 2] {
            let outcome = TransactionOutcome::Failed(FailureClass::Deadlock);
            recording.transaction(&Ended {
                tries,
                ..ended(0, outcome, 5)
            });
        }
        let counters = recording.counters();
        assert_eq!(
            (3, 2, 4),
            (counters.scheduled, counters.retried, counters.retries)
        );
    }

    #[test]
    fn failed_transactions_have_no_times() {
        let mut recording = Recording::new(SHAPE);
        recording.transaction(&ended(
            0,
            TransactionOutcome::Failed(FailureClass::Other),
            5,
        ));
        assert_eq!(
            (1, 0),
            (
                recording.counters().failed.other,
                recording.times(SHAPE).service.count
            )
        );
        assert!(!recording.is_empty());
        recording.clear();
        assert!(recording.is_empty());
    }

    proptest! {
        // Every case clears and merges histograms of 270 kB.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn intervals_add_up_to_the_total(events in proptest::collection::vec((0_usize..2, 0_usize..4, 0_u64..1 << 30), 0..200), cuts in 1_usize..7) {
            use TransactionOutcome::*;
            let outcomes = [Committed, Unknown, Failed(FailureClass::Deadlock), InFlightAtEnd];
            let mut whole = Recording::new(SHAPE);
            let mut total = Recording::new(SHAPE);
            let mut interval = Recording::new(SHAPE);
            for (number, &(transaction_type, outcome, start_ns)) in events.iter().enumerate() {
                for recording in [&mut whole, &mut interval] {
                    recording.transaction(&ended(transaction_type, outcomes[outcome], start_ns));
                    recording.statement(StatementId(1), start_ns, 2);
                }
                if number % cuts == 0 {
                    total.merge(&interval);
                    interval.clear();
                }
            }
            total.merge(&interval);
            prop_assert_eq!(whole.counters(), total.counters());
            prop_assert_eq!(whole.times(SHAPE).response, total.times(SHAPE).response);
            prop_assert_eq!(whole.statements[1].time.summarize(), total.statements[1].time.summarize());
            prop_assert_eq!(events.len() as u64, total.counters().scheduled);
        }
    }
}
