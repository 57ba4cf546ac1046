//! A client without sockets: the test is the server, and time stands still unless it is moved.

mod aborting;
mod trouble;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use proptest::prelude::*;

use super::{Client, ClientLimits, Context, Next};
use crate::books::{Books, BooksTotal, Exchange, ToWriter};
use crate::clock::Clock;
use crate::destination::Destination;
use crate::history::Wanted;
use crate::plan::Plan;
use crate::program::Language;
use crate::recorder::Recording;
use crate::results::{Counters, Failed, Phase};
use crate::schedule::{Draws, Schedule, Share, SharedTimetable, Timetable};
use crate::script::language::ScriptLanguage;
use crate::statements::Statements;
use crate::wire::target::{Address, Target};

const READY: &[u8] = b"Z\0\0\0\x05I";
const IN_BLOCK: &[u8] = b"Z\0\0\0\x05T";
const FAILED_BLOCK: &[u8] = b"Z\0\0\0\x05E";
const DEADLOCK: &[u8] = b"E\0\0\0\x24SERROR\0VERROR\0C40P01\0Mdeadlock\0\0";

/// A client, what it shares with others, and the hands of its clock.
struct Stage {
    client: Client,
    context: Context,
    now_ns: Rc<Cell<u64>>,
    parts: Receiver<ToWriter>,
}

fn plan(script: &str, protocol: &str, extra: &str) -> Plan {
    let script = serde_json::to_string(script).unwrap();
    let text = format!(
        r#"{{"name": "x", "conninfo": "", "clients": 1, "seed": 1, "output_dir": "/o", "duration_s": 100,
            "protocol": "{protocol}", "session_settings": [],
            "transaction_types": [{{"name": "t", "weight": 1, "source": "t.sql", "script": {script},
                                    "failure": {{"column": "ret", "success": "0"}}}}]{extra}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// A message of the server.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

impl Stage {
    /// A client whose session is open and whose measurement begins now, at 1000 ns.
    fn new(script: &str, protocol: &str) -> Self {
        Self::with(script, protocol, "")
    }

    /// The same with more fields of the plan.
    fn with(script: &str, protocol: &str, extra: &str) -> Self {
        let plan = plan(script, protocol, extra);
        let language = ScriptLanguage::new(&plan).unwrap();
        let statements = Arc::new(Statements::new(&plan, language.statements()));
        let now_ns = Rc::new(Cell::new(1_000));
        let (to_writer, parts) = channel();
        let (_, cleared) = channel();
        let exchange = Exchange {
            worker: 0,
            first_client: 0,
            wanted: Wanted::by(&plan),
            parts: to_writer,
            cleared,
            cleared_records: channel().1,
        };
        let mut context = Context {
            clock: Clock::simulated(now_ns.clone()),
            mix: language.mix(),
            schedule: None,
            books: Books::new(statements.shape(), 1, exchange),
            statements,
            limits: ClientLimits::of(&plan),
            session_settings: Vec::new().into(),
            rules: None,
        };
        let client = Client::new(0, 0, language.program(0), &context);
        let timetable = Timetable {
            warmup_begin_ns: 1_000,
            measurement_begin_ns: 1_000,
            measurement_end_ns: Some(1_000_000),
        };
        let share = Share {
            first_client: 0,
            clients: 1,
            all_clients: 1,
        };
        let draws = Draws {
            arrivals: language.arrival_draws(0),
            thinking: language.arrival_draws(0),
        };
        let timetable = SharedTimetable::from(timetable);
        context.schedule = Some(Schedule::new(&plan.load, timetable.clone(), share, draws));
        context.books.begin(timetable, u64::MAX / 2);
        let mut stage = Self {
            client,
            context,
            now_ns,
            parts,
        };
        stage.open();
        stage
    }

    fn open(&mut self) {
        let target = Target::plain(Address::Tcp("127.0.0.1".into(), 1), None);
        let destination = Destination::new(target).unwrap().look_up().unwrap();
        let attempt = destination.route(0).attempt(&destination.possibilities);
        assert_eq!(Next::Wait, self.client.connected(&destination, attempt));
        assert!(!self.sent().is_empty());
        let next = self.receive(&[&message(b'R', &[0; 4]), READY].concat());
        assert_eq!((Next::Ready, true), (next, self.client.is_connected()));
        let next = self.client.start(&mut self.context, 1_000);
        assert_ne!(Next::Close, next);
    }

    /// Bytes of the server, 100 ns after the last ones.
    fn receive(&mut self, bytes: &[u8]) -> Next {
        self.now_ns.set(self.now_ns.get() + 100);
        self.client.receive(bytes, &mut self.context)
    }

    /// What the client has sent since last asked.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(self.client.bytes_to_send())
    }

    fn close(&mut self) -> Next {
        self.client.connection_closed(None, &mut self.context)
    }

    /// What was written down of the measurement.
    fn books(self) -> (Counters, BooksTotal, Recording) {
        let Self {
            context,
            now_ns,
            parts,
            ..
        } = self;
        let total = context.books.finish(now_ns.get());
        let mut recordings = parts.into_iter().filter_map(|told| match told {
            ToWriter::Part(mut part) => part.recordings[Phase::Measurement.index()].take(),
            _ => None,
        });
        let mut recording = *recordings.next().unwrap();
        recordings.for_each(|later| recording.merge(&later));
        (recording.counters(), total, recording)
    }

    fn counters(self) -> Counters {
        self.books().0
    }
}

fn failed(failed: Failed) -> Counters {
    Counters {
        scheduled: failed.total(),
        failed,
        ..Counters::default()
    }
}

/// What answers a prepared statement the first time: it is parsed, has no columns, and is done.
fn first_answer(tag: &str, status: &[u8]) -> Vec<u8> {
    [
        &message(b'1', b""),
        &message(b't', &[0, 0]),
        &message(b'n', b""),
        &message(b'2', b""),
        &complete(tag),
        status,
    ]
    .concat()
}

#[test]
fn a_transaction_is_committed_when_the_server_is_ready_for_the_next() {
    let mut stage = Stage::new("UPDATE t SET n = 1;", "simple");
    assert_eq!(b"Q\0\0\0\x18UPDATE t SET n = 1;\0".to_vec(), stage.sent());
    assert_eq!(Next::Wait, stage.receive(&complete("UPDATE 1")));
    assert!(stage.sent().is_empty());
    stage.receive(READY);
    assert!(!stage.sent().is_empty(), "the next one has begun");
    stage.client.cut_off(&mut stage.context, 1_200);
    let (counters, total, recording) = stage.books();
    assert_eq!(
        (2, 1, 1),
        (
            counters.scheduled,
            counters.committed,
            counters.in_flight_at_end
        )
    );
    assert_eq!(
        (1, 300),
        (total.clients[0].committed, total.clients[0].sum_service_ns)
    );
    assert_eq!(
        (1, 1),
        (
            recording.server_commits(),
            recording.statements[0].time.summarize().count
        )
    );
}

#[test]
fn without_the_last_answer_the_outcome_is_unknown() {
    let mut stage = Stage::new("UPDATE t SET n = 1;", "simple");
    stage.receive(&complete("UPDATE 1"));
    assert_eq!(Next::Close, stage.close());
    assert_eq!(
        Counters {
            scheduled: 1,
            unknown: 1,
            ..Counters::default()
        },
        stage.counters()
    );
}

#[test]
fn inside_a_block_only_its_end_can_commit() {
    let script = "BEGIN;\nUPDATE t SET n = 1;\nCOMMIT;\n";
    for (answers, expected) in [
        (
            0,
            failed(Failed {
                connection: 1,
                ..Failed::default()
            }),
        ),
        (
            1,
            failed(Failed {
                connection: 1,
                ..Failed::default()
            }),
        ),
        (
            2,
            Counters {
                scheduled: 1,
                unknown: 1,
                ..Counters::default()
            },
        ),
    ] {
        let mut stage = Stage::new(script, "prepared");
        for tag in ["BEGIN", "UPDATE 1"].into_iter().take(answers) {
            stage.receive(&first_answer(tag, IN_BLOCK));
        }
        stage.close();
        assert_eq!(expected, stage.counters(), "after {answers} answers");
    }
}

#[test]
fn an_error_in_a_block_is_rolled_back_and_what_was_prepared_stays() {
    let mut stage = Stage::new("BEGIN;\nUPDATE t SET n = 1;\nCOMMIT;\n", "prepared");
    stage.receive(&first_answer("BEGIN", IN_BLOCK));
    assert!(stage.sent().windows(4).any(|bytes| bytes == b"P_1\0"));
    stage.receive(
        &[
            &message(b'1', b"")[..],
            &message(b'2', b""),
            DEADLOCK,
            FAILED_BLOCK,
        ]
        .concat(),
    );
    assert_eq!(b"Q\0\0\0\x0dROLLBACK\0".to_vec(), stage.sent());
    stage.receive(&[&complete("ROLLBACK")[..], READY].concat());
    let sent = stage.sent();
    assert_eq!(b'B', sent[0], "BEGIN is still prepared");
    stage.receive(&[&message(b'2', b"")[..], &complete("BEGIN"), IN_BLOCK].concat());
    assert_eq!(
        b'B',
        stage.sent()[0],
        "so is the UPDATE, which failed after it was parsed"
    );
    stage.close();
    let (counters, _, recording) = stage.books();
    assert_eq!(
        (1, 1),
        (counters.failed.deadlock, counters.failed.connection)
    );
    assert_eq!(
        (0, 1),
        (recording.server_commits(), recording.statements[1].errors)
    );
}

#[test]
fn a_statement_that_was_never_parsed_is_parsed_again() {
    let mut stage = Stage::new("SELECT nothing;", "prepared");
    assert_eq!(b'P', stage.sent()[0]);
    stage.receive(&[DEADLOCK, READY].concat());
    assert_eq!(b'P', stage.sent()[0]);
}

#[test]
fn a_failure_column_makes_failed() {
    let column = [&[0, 1][..], b"ret\0", &[0; 18]].concat();
    let row = |value: u8| message(b'D', &[0, 1, 0, 0, 0, 1, value]);
    let mut stage = Stage::new("SELECT f();", "prepared");
    let first = [
        message(b'1', b""),
        message(b't', &[0, 0]),
        message(b'T', &column),
        message(b'2', b""),
    ]
    .concat();
    stage.receive(&[&first, &row(b'0'), &complete("SELECT 1"), READY].concat());
    stage.receive(
        &[
            &message(b'2', b"")[..],
            &row(b'1'),
            &complete("SELECT 1"),
            READY,
        ]
        .concat(),
    );
    stage.client.cut_off(&mut stage.context, 1_200);
    let (counters, _, recording) = stage.books();
    assert_eq!(
        (1, 1, 2),
        (
            counters.committed,
            counters.failed.other,
            recording.statements[0].rows
        )
    );
    assert_eq!(2, recording.server_commits());
}

#[test]
fn a_block_left_open_fails() {
    let mut stage = Stage::new("BEGIN;", "simple");
    stage.sent();
    stage.receive(&[&complete("BEGIN")[..], IN_BLOCK].concat());
    assert_eq!(b"Q\0\0\0\x0dROLLBACK\0".to_vec(), stage.sent());
    stage.receive(&[&complete("ROLLBACK")[..], READY].concat());
    stage.client.cut_off(&mut stage.context, 1_300);
    let counters = stage.counters();
    assert_eq!((1, 1), (counters.failed.other, counters.in_flight_at_end));
}

#[test]
fn sleeping_counts_as_the_commands_time() {
    let mut stage = Stage::new("\\sleep 5 us\nSELECT 1;", "simple");
    assert!(stage.sent().is_empty());
    stage.now_ns.set(6_050);
    stage.client.wake(&mut stage.context);
    assert!(!stage.sent().is_empty());
    stage.receive(&[&complete("SELECT 1")[..], READY].concat());
    let (_, _, recording) = stage.books();
    let times = recording
        .statements
        .iter()
        .map(|s| s.time.summarize().sum_ns)
        .collect::<Vec<_>>();
    assert_eq!(
        (vec![5_050, 100], 5_150),
        (times, recording.types[0].times.summarize().service.sum_ns)
    );
}

#[test]
fn nothing_starts_after_the_end() {
    let mut stage = Stage::new("SELECT 1;", "simple");
    stage.sent();
    stage.now_ns.set(2_000_000);
    stage.receive(&[&complete("SELECT 1")[..], READY].concat());
    assert!(stage.sent().is_empty() && stage.client.is_done());
    assert_eq!(1, stage.counters().committed);
}

#[test]
fn a_pipeline_is_sent_as_one() {
    let script = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n";
    let mut stage = Stage::new(script, "extended");
    let kinds: Vec<u8> = kinds(&stage.sent());
    assert_eq!(b"PBDEPBDES".to_vec(), kinds);
    let one = [
        message(b'1', b""),
        message(b'2', b""),
        message(b'n', b""),
        complete("SELECT 1"),
    ]
    .concat();
    stage.receive(&[&one[..], &one, READY].concat());
    stage.client.cut_off(&mut stage.context, 1_200);
    let (counters, _, recording) = stage.books();
    assert_eq!((1, 1), (counters.committed, recording.server_commits()));
}

/// The types of the messages in `bytes`.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [kind, l0, l1, l2, l3, ..] = bytes {
        kinds.push(*kind);
        bytes = &bytes[1 + u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize..];
    }
    kinds
}

#[test]
fn a_transaction_allocates_nothing() {
    let script = "\\set k random(1, 1000)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE k = :k;\nCOMMIT;\n";
    let bound = message(b'2', b"");
    let answers: Vec<Vec<u8>> = [
        ("BEGIN", IN_BLOCK),
        ("UPDATE 1", IN_BLOCK),
        ("COMMIT", READY),
    ]
    .into_iter()
    .map(|(tag, status)| [&bound[..], &complete(tag), status].concat())
    .collect();
    let mut stage = Stage::new(script, "prepared");
    for (tag, status) in [
        ("BEGIN", IN_BLOCK),
        ("UPDATE 1", IN_BLOCK),
        ("COMMIT", READY),
    ] {
        stage.receive(&first_answer(tag, status));
    }
    let round = |stage: &mut Stage| {
        for answer in &answers {
            stage.receive(answer);
            stage.client.bytes_to_send().clear();
        }
    };
    round(&mut stage);
    let before = crate::allocations::on_this_thread();
    for _ in 0..1_000 {
        round(&mut stage);
    }
    assert_eq!(before, crate::allocations::on_this_thread());
    assert_eq!(1_002, stage.counters().committed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a server sends, and wherever it stops: no panic, and the counters add up.
    #[test]
    fn a_hostile_server_is_survived(
        choices in proptest::collection::vec((0_usize..12, proptest::collection::vec(any::<u8>(), 0..12)), 0..40),
        protocol in prop_oneof![Just("simple"), Just("extended"), Just("prepared")],
    ) {
        let mut stage = Stage::new("SELECT 1 \\gset\nBEGIN;\nSELECT 2;\nCOMMIT;\n", protocol);
        for (choice, bytes) in choices {
            let kind = b"ZCDTE1nRSGI\xff"[choice];
            let body = if kind == b'Z' { vec![b"ITE?"[bytes.len() % 4]] } else { bytes };
            if stage.receive(&message(kind, &body)) == Next::Close {
                break;
            }
            stage.sent();
        }
        stage.close();
        prop_assert!(stage.client.is_done());
        prop_assert!(stage.counters().add_up());
    }
}
