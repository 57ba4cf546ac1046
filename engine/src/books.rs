//! What one worker writes down: recordings of both phases, closed and sent to the writer when an interval ends.
//!
//! Every entry carries its time and first closes the intervals that ended before it, so an interval holds exactly what
//! completed in it. Closing swaps a cleared recording in; nothing is allocated unless the writer lags far behind.

use std::sync::mpsc::{Receiver, Sender};

use crate::error_log::{ErrorLog, Place, Seen};
use crate::history::{
    Dropped, Ledger, Record, SkippedRecord, TransactionRecord, Try, TryEvent, Wanted,
};
use crate::outages::OutageRecorder;
use crate::outcome::TransactionOutcome;
use crate::process::{Usage, usage};
use crate::program::StatementId;
use crate::recorder::{Ended, Recording, Shape};
use crate::results::{ClientResult, Counters, Outage, Phase};
use crate::schedule::{Grid, SharedTimetable, Timetable};

/// One worker's part of one interval.
#[derive(Debug)]
pub struct IntervalPart {
    /// Which worker.
    pub worker: usize,
    /// Number of the interval: the same for all workers.
    pub index: u64,
    /// The phase it lies in.
    pub phase: Phase,
    /// First instant of it.
    pub begin_ns: u64,
    /// First instant after it.
    pub end_ns: u64,
    /// Transactions under way at its end, by the phase they were started in.
    pub in_flight: [u64; 2],
    /// Clients with a session at its end.
    pub clients_connected: usize,
    /// Nothing more comes from this worker.
    pub last: bool,
    /// By phase; None where nothing was started in that phase and ended here.
    pub recordings: [Option<Box<Recording>>; 2],
    /// Of the whole process, at its end.
    pub usage: Usage,
}

/// What the writer is told.
#[derive(Debug)]
pub enum ToWriter {
    /// The engine is in this state from now on.
    State(&'static str),
    /// The start was given.
    Started(Timetable),
    /// The warm-up was told to end.
    Retimed(Timetable),
    /// A worker closed an interval.
    Part(IntervalPart),
    /// A worker's records on request.
    Records(usize, Vec<Record>),
}

/// Where closed intervals go and cleared recordings come from.
pub struct Exchange {
    /// Which worker this is.
    pub worker: usize,
    /// Number of its first client.
    pub first_client: usize,
    /// Records the plan asks for.
    pub wanted: Wanted,
    /// To the writer.
    pub parts: Sender<ToWriter>,
    /// From the writer.
    pub cleared: Receiver<Box<Recording>>,
    /// From the writer: emptied buffers of records.
    pub cleared_records: Receiver<Vec<Record>>,
}

/// Recordings made for each worker: two in use, and two for each of them on their way.
pub const RECORDINGS_PER_WORKER: usize = 6;

/// Whether a client had a session before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is its first one.
    No,
    /// It had lost one.
    Yes,
}

/// See the module.
pub struct Books {
    shape: Shape,
    grid: Option<Grid>,
    /// When the current interval ends; u64::MAX before the start.
    boundary_ns: u64,
    recordings: [Box<Recording>; 2],
    exchange: Exchange,
    errors: ErrorLog,
    ledger: Ledger,
    outages: OutageRecorder,
    notices: u64,
    statement_timeouts: u64,
    clients_connected: usize,
    in_flight: [u64; 2],
    /// By client of this worker: its share of the measurement.
    clients: Vec<ClientResult>,
    /// Counted a second time, to be held against what the writer adds up.
    tallies: [Counters; 2],
}

/// What remains when a worker has ended.
#[derive(Debug)]
pub struct BooksTotal {
    /// Errors seen.
    pub errors: ErrorLog,
    /// By client of this worker.
    pub clients: Vec<ClientResult>,
    /// Transactions of both phases, counted apart from the recordings.
    pub tallies: [Counters; 2],
    /// Times in which connections were lost.
    pub outages: Vec<Outage>,
    /// Notices seen by clients at work.
    pub notices: u64,
    /// Requests cancelled for their time.
    pub statement_timeouts: u64,
    /// Records that could not be kept.
    pub dropped: Dropped,
}

impl Books {
    /// Of a worker with this many clients.
    pub fn new(shape: Shape, clients: usize, exchange: Exchange) -> Self {
        let taken = || {
            exchange
                .cleared
                .try_recv()
                .unwrap_or_else(|_| Box::new(Recording::new(shape)))
        };
        Self {
            shape,
            grid: None,
            boundary_ns: u64::MAX,
            recordings: [taken(), taken()],
            ledger: Ledger::new(exchange.wanted, exchange.worker, exchange.first_client),
            outages: OutageRecorder::default(),
            notices: 0,
            statement_timeouts: 0,
            clients_connected: 0,
            exchange,
            errors: ErrorLog::default(),
            in_flight: [0; 2],
            clients: vec![ClientResult::default(); clients],
            tallies: [Counters::default(); 2],
        }
    }

    /// The timetable is known.
    pub fn begin(&mut self, timetable: SharedTimetable, interval_ns: u64) {
        let grid = Grid::new(timetable, interval_ns);
        self.boundary_ns = grid.end_ns();
        self.grid = Some(grid);
    }

    /// When the current interval ends.
    pub fn boundary_ns(&self) -> u64 {
        self.boundary_ns
    }

    /// Close the intervals that ended by `now_ns`.
    #[inline]
    pub fn turn_to(&mut self, now_ns: u64) {
        while now_ns >= self.boundary_ns {
            self.close_as(self.boundary_ns, false);
        }
    }

    /// A transaction was started.
    pub fn started(&mut self, phase: Phase) {
        self.in_flight[phase.index()] += 1;
    }

    /// A transaction that was started has ended.
    pub fn ended(&mut self, client: usize, phase: Phase, ended: &Ended) {
        self.turn_to(ended.end_ns);
        self.in_flight[phase.index()] -= 1;
        self.recordings[phase.index()].transaction(ended);
        ended.count(
            &mut self.tallies[phase.index()],
            self.shape.response_time_limit_ns,
        );
        if ended.outcome == TransactionOutcome::Committed {
            self.outages.committed(ended.end_ns);
        }
        if self.ledger.chosen() {
            self.log(client, phase, ended);
        }
        if phase == Phase::Measurement && ended.outcome == TransactionOutcome::Committed {
            self.clients[client].committed += 1;
            self.clients[client].sum_service_ns +=
                ended.end_ns.saturating_sub(ended.actual_start_ns);
        }
    }

    /// Note a transaction that belongs to the sample.
    fn log(&mut self, client: usize, phase: Phase, ended: &Ended) {
        let full = self.ledger.transaction(TransactionRecord {
            client,
            transaction_type: ended.transaction_type,
            phase,
            outcome: ended.outcome,
            tries: ended.tries,
            intended_start_ns: ended.intended_start_ns,
            actual_start_ns: ended.actual_start_ns,
            end_ns: ended.end_ns,
        });
        if full {
            self.send_records();
        }
    }

    /// A try of a transaction began or ended.
    #[inline]
    pub fn tried(&mut self, of: Try, event: TryEvent, at_ns: u64) {
        if self.ledger.wants_history() && self.ledger.happened(of, event, at_ns) {
            self.send_records();
        }
    }

    fn send_records(&mut self) {
        self.ledger
            .send(&self.exchange.parts, &self.exchange.cleared_records);
    }

    /// A client has a session. `again`: it had lost one.
    pub fn session_opened(&mut self, now_ns: u64, again: Again) {
        self.turn_to(now_ns);
        self.clients_connected += 1;
        if again == Again::Yes {
            self.outages.settled(now_ns);
        }
    }

    /// A client lost its session.
    pub fn session_lost(&mut self, now_ns: u64) {
        self.turn_to(now_ns);
        self.clients_connected -= 1;
        self.outages.lost(now_ns);
    }

    /// A client ended its session to have another.
    pub fn session_closed(&mut self, now_ns: u64) {
        self.turn_to(now_ns);
        self.clients_connected -= 1;
    }

    /// A client that lost its session tries to get one.
    pub fn attempt(&mut self) {
        self.outages.attempt();
    }

    /// The server told something that is no error.
    pub fn notice(&mut self) {
        self.notices += 1;
    }

    /// A request took too long.
    pub fn statement_timeout(&mut self) {
        self.statement_timeouts += 1;
    }

    /// A transaction was never started.
    pub fn skipped(&mut self, transaction_type: usize, phase: Phase, now_ns: u64) {
        self.turn_to(now_ns);
        for counters in [
            &mut self.recordings[phase.index()].types[transaction_type].counters,
            &mut self.tallies[phase.index()],
        ] {
            counters.scheduled += 1;
            counters.skipped += 1;
        }
    }

    /// A client skipped a start that came too late for it.
    pub fn skipped_by(&mut self, record: SkippedRecord, phase: Phase) {
        self.skipped(record.transaction_type, phase, record.at_ns);
        if self.ledger.wants_transactions() && self.ledger.skipped(record) {
            self.send_records();
        }
    }

    /// A try failed at this statement; `again`: it is not the last one.
    pub fn failed_try(&mut self, phase: Phase, statement: StatementId, again: bool) {
        let of_statement = &mut self.recordings[phase.index()].statements[statement.index()];
        of_statement.retries += u64::from(again);
        of_statement.failures += u64::from(!again);
    }

    /// A statement succeeded at `end_ns`.
    #[inline]
    pub fn statement(
        &mut self,
        phase: Phase,
        statement: StatementId,
        times_ns: (u64, u64),
        rows: u64,
    ) {
        let (begin_ns, end_ns) = times_ns;
        self.turn_to(end_ns);
        self.recordings[phase.index()].statement(statement, end_ns.saturating_sub(begin_ns), rows);
    }

    /// A statement returned rows that are not told with its time.
    pub fn rows(&mut self, phase: Phase, statement: StatementId, rows: u64) {
        self.recordings[phase.index()].statements[statement.index()].rows += rows;
    }

    /// A statement sent COPY data.
    pub fn copy_bytes(&mut self, phase: Phase, statement: StatementId, bytes: u64) {
        self.recordings[phase.index()].statements[statement.index()].copy_bytes += bytes;
    }

    /// A statement was answered with an error.
    pub fn statement_failed(&mut self, phase: Phase, statement: StatementId, now_ns: u64) {
        self.turn_to(now_ns);
        self.recordings[phase.index()].statements[statement.index()].errors += 1;
    }

    /// The server acknowledged commits.
    #[inline]
    pub fn server_commits(&mut self, phase: Phase, transaction_type: usize, commits: u64) {
        self.recordings[phase.index()].types[transaction_type].server_commits += commits;
    }

    /// An error was seen.
    pub fn error(&mut self, seen: Seen<'_>) {
        self.errors.note(seen);
    }

    /// An error of our own, not of the server.
    pub fn own_error(&mut self, message: &str, place: Place, at_ns: u64) {
        self.errors.note(Seen {
            sqlstate: None,
            message,
            place,
            at_ns,
        });
    }

    /// Close the last interval at `now_ns` and give away what remains.
    pub fn finish(mut self, now_ns: u64) -> BooksTotal {
        if self.grid.is_some() {
            self.turn_to(now_ns);
            self.close_as(now_ns, true);
        }
        let timetable = self.grid.as_ref().map(Grid::timetable);
        let end_ns = timetable.and_then(|timetable| timetable.measurement_end_ns);
        BooksTotal {
            errors: self.errors,
            clients: self.clients,
            tallies: self.tallies,
            outages: self.outages.finish(end_ns.unwrap_or(now_ns).min(now_ns)),
            notices: self.notices,
            statement_timeouts: self.statement_timeouts,
            dropped: self.ledger.finish(&self.exchange.parts),
        }
    }

    /// Send the current interval, ended at `end_ns`, to the writer.
    fn close_as(&mut self, end_ns: u64, last: bool) {
        let Some(grid) = &mut self.grid else { return };
        let phase = grid.phase();
        let mut part = IntervalPart {
            worker: self.exchange.worker,
            index: grid.index(),
            phase,
            begin_ns: grid.begin_ns(),
            end_ns,
            in_flight: self.in_flight,
            clients_connected: self.clients_connected,
            last,
            recordings: [None, None],
            usage: usage(),
        };
        grid.advance();
        self.boundary_ns = grid.end_ns();
        for of_phase in Phase::ALL {
            let recording = &mut self.recordings[of_phase.index()];
            if of_phase == phase || !recording.is_empty() {
                let cleared = self.exchange.cleared.try_recv();
                let cleared = cleared.unwrap_or_else(|_| Box::new(Recording::new(self.shape)));
                part.recordings[of_phase.index()] = Some(std::mem::replace(recording, cleared));
            }
        }
        // A writer that is gone has failed; its error ends the engine.
        let _ = self.exchange.parts.send(ToWriter::Part(part));
        self.send_records();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::mpsc::channel;

    const SHAPE: Shape = Shape {
        transaction_types: 1,
        statements: 1,
        open_loop: false,
        response_time_limit_ns: u64::MAX,
    };
    const TIMETABLE: Timetable = Timetable {
        warmup_begin_ns: 0,
        measurement_begin_ns: 100,
        measurement_end_ns: Some(300),
    };

    fn books() -> (Books, Receiver<ToWriter>) {
        let (parts, received) = channel();
        let (_, cleared) = channel();
        let mut books = Books::new(
            SHAPE,
            1,
            Exchange {
                worker: 0,
                first_client: 0,
                wanted: Wanted::default(),
                parts,
                cleared,
                cleared_records: channel().1,
            },
        );
        books.begin(TIMETABLE.into(), 50);
        (books, received)
    }

    fn parts(received: Receiver<ToWriter>) -> impl Iterator<Item = IntervalPart> {
        received.into_iter().filter_map(|told| match told {
            ToWriter::Part(part) => Some(part),
            _ => None,
        })
    }

    fn transaction(books: &mut Books, start_ns: u64, end_ns: u64) {
        books.started(TIMETABLE.phase_at(start_ns).unwrap());
        let outcome = TransactionOutcome::Committed;
        let ended = Ended {
            transaction_type: 0,
            outcome,
            intended_start_ns: start_ns,
            actual_start_ns: start_ns,
            end_ns,
            tries: 1,
        };
        books.ended(0, TIMETABLE.phase_at(start_ns).unwrap(), &ended);
    }

    #[test]
    fn a_straggler_of_the_warm_up_has_its_own_recording() {
        let (mut books, received) = books();
        transaction(&mut books, 90, 110);
        transaction(&mut books, 110, 120);
        let total = books.finish(130);
        let parts: Vec<_> = parts(received).collect();
        assert_eq!(
            vec![(0, 50), (50, 100), (100, 130)],
            parts
                .iter()
                .map(|p| (p.begin_ns, p.end_ns))
                .collect::<Vec<_>>()
        );
        let committed = |part: &IntervalPart, phase: Phase| {
            part.recordings[phase.index()]
                .as_ref()
                .map(|recording| recording.counters().committed)
        };
        assert_eq!(
            (Some(0), None),
            (
                committed(&parts[1], Phase::Warmup),
                committed(&parts[1], Phase::Measurement)
            )
        );
        assert_eq!(
            (Some(1), Some(1)),
            (
                committed(&parts[2], Phase::Warmup),
                committed(&parts[2], Phase::Measurement)
            )
        );
        assert_eq!(
            (1, 10),
            (total.clients[0].committed, total.clients[0].sum_service_ns)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn intervals_hold_what_completed_in_them_and_add_up(mut starts in proptest::collection::vec(0_u64..300, 1..30)) {
            let (mut books, received) = books();
            starts.sort_unstable();
            for &start_ns in &starts {
                transaction(&mut books, start_ns, start_ns + 10);
            }
            let tallies = books.finish(400).tallies;
            let mut sums = [Counters::default(); 2];
            for part in parts(received) {
                let ended = starts.iter().filter(|&&s| (part.begin_ns..part.end_ns).contains(&(s + 10))).count() as u64;
                let recordings = part.recordings.iter().enumerate();
                let counted = recordings.filter_map(|(phase, recording)| {
                    let counters = recording.as_ref()?.counters();
                    sums[phase] += counters;
                    Some(counters.committed)
                });
                prop_assert_eq!(ended, counted.sum::<u64>());
            }
            prop_assert_eq!(tallies, sums);
        }
    }
}
