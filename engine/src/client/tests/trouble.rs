//! A client in trouble, without sockets: retries, lost connections, requests that take too long, COPY.

use super::*;
use crate::history::{Record, TryEvent};

const RETRY: &str = r#", "retry": {"max_tries": 3}, "history": true"#;
const SERIALIZATION: &[u8] = b"E\0\0\0\x20SERROR\0VERROR\0C40001\0Mlate\0\0";
const FATAL: &[u8] = b"E\0\0\0\x20SFATAL\0VFATAL\0C57P01\0Mgone\0\0";

impl Stage {
    /// What was written down, and the history.
    fn history(self) -> (Counters, BooksTotal, Vec<(u64, TryEvent)>) {
        let total = self.context.books.finish(self.now_ns.get());
        let mut counters = Counters::default();
        let mut events = Vec::new();
        for told in self.parts {
            match told {
                ToWriter::Part(part) => {
                    let recording = &part.recordings[Phase::Measurement.index()];
                    recording.iter().for_each(|r| counters += r.counters());
                }
                ToWriter::Records(_, records) => {
                    events.extend(records.iter().map(|record| match record {
                        Record::History(history) => (history.sequence, history.event),
                        Record::Skipped(_) | Record::Transaction(_) => panic!("{record:?}"),
                    }));
                }
                ToWriter::State(_) | ToWriter::Started(_) | ToWriter::Retimed(_) => {}
            }
        }
        (counters, total, events)
    }

    fn wake(&mut self, now_ns: u64) -> Next {
        self.now_ns.set(now_ns);
        self.client.wake(&mut self.context)
    }
}

#[test]
fn a_deadlock_is_tried_again_with_the_same_numbers_and_its_time_counts() {
    let script = "\\set k random(1, 1000000)\nUPDATE t SET n = :k;\n";
    let mut stage = Stage::with(script, "simple", RETRY);
    let first = stage.sent();
    stage.receive(&[DEADLOCK, READY].concat());
    let second = stage.sent();
    assert_eq!(first, second);
    stage.receive(&[&complete("UPDATE 1")[..], READY].concat());
    assert_ne!(first, stage.sent(), "the next transaction draws anew");
    stage.client.cut_off(&mut stage.context, 1_200);
    let (counters, total, events) = stage.history();
    assert_eq!(
        (2, 1, 0, 1, 1),
        (
            counters.scheduled,
            counters.committed,
            counters.failed.total(),
            counters.retried,
            counters.retries
        )
    );
    assert_eq!(
        300, total.clients[0].sum_service_ns,
        "both tries, from the start at 1000 to the second answer at 1300"
    );
    use TryEvent::*;
    // The last one was cut off when its UPDATE had been sent.
    let expected = [(1, Begin), (1, Failed), (2, Begin), (2, Acknowledged)];
    assert_eq!(
        [&expected[..], &[(3, Begin), (3, Unknown)]].concat(),
        events
    );
}

#[test]
fn tries_end_with_the_last_one_allowed() {
    let mut stage = Stage::with("UPDATE t SET n = 1;", "simple", RETRY);
    for _ in 0..3 {
        stage.receive(&[SERIALIZATION, READY].concat());
    }
    stage.client.cut_off(&mut stage.context, 1_400);
    let (counters, ..) = stage.history();
    assert_eq!(
        (1, 1, 2),
        (
            counters.failed.serialization,
            counters.retried,
            counters.retries
        )
    );
}

#[test]
fn a_retry_rolls_back_first_and_begins_the_block_anew() {
    let mut stage = Stage::with("BEGIN;\nUPDATE t SET n = 1;\nCOMMIT;\n", "simple", RETRY);
    let begin = stage.sent();
    stage.receive(&[&complete("BEGIN")[..], IN_BLOCK].concat());
    stage.sent();
    stage.receive(&[SERIALIZATION, FAILED_BLOCK].concat());
    assert_eq!(b"Q\0\0\0\x0dROLLBACK\0".to_vec(), stage.sent());
    stage.receive(&[&complete("ROLLBACK")[..], READY].concat());
    assert_eq!(begin, stage.sent());
}

#[test]
fn other_errors_and_times_past_are_not_tried_again() {
    let other = b"E\0\0\0\x20SERROR\0VERROR\0C22012\0Mzero\0\0";
    let limited = r#", "retry": {"max_tries": 0, "max_time_s": 0.0000001}"#;
    for (extra, error, at_ns) in [
        (RETRY, &other[..], 1_100),
        (limited, SERIALIZATION, 1_200),
        (RETRY, SERIALIZATION, 2_000_000),
    ] {
        let mut stage = Stage::with("SELECT 1;", "simple", extra);
        stage.now_ns.set(at_ns);
        stage.receive(&[error, READY].concat());
        stage.client.cut_off(&mut stage.context, at_ns + 200);
        let (counters, ..) = stage.history();
        assert_eq!(
            (1, 0),
            (counters.failed.total(), counters.retries),
            "{at_ns}"
        );
    }
}

#[test]
fn a_lost_connection_is_replaced_and_everything_is_prepared_again() {
    let extra = r#", "on_connection_loss": "reconnect", "history": true"#;
    let mut stage = Stage::with("UPDATE t SET n = 1;", "prepared", extra);
    assert_eq!(b"PDBES".to_vec(), kinds(&stage.sent()));
    stage.receive(&first_answer("UPDATE 1", READY));
    assert_eq!(b"BES".to_vec(), kinds(&stage.sent()));
    // Half a message came before the end: it must not be taken for the beginning of the next session.
    stage.receive(b"Z\0\0");
    assert_eq!(Next::Reconnect, stage.close());
    assert!(!stage.client.is_done());
    stage.open();
    assert_eq!(
        b"PDBES".to_vec(),
        kinds(&stage.sent()),
        "it is parsed again"
    );
    stage.receive(&first_answer("UPDATE 1", READY));
    stage.client.cut_off(&mut stage.context, stage.now_ns.get());
    let (counters, total, events) = stage.history();
    assert_eq!(
        (2, 1, 1),
        (
            counters.committed,
            counters.unknown,
            counters.in_flight_at_end
        )
    );
    assert_eq!(1, total.outages.len());
    assert!(events.contains(&(2, TryEvent::Unknown)), "{events:?}");
}

#[test]
fn a_fatal_error_instead_of_an_answer_leaves_a_commit_unknown() {
    let mut stage = Stage::new("UPDATE t SET n = 1;", "extended");
    stage.receive(FATAL);
    assert_eq!(Next::Close, stage.close());
    let counters = stage.counters();
    assert_eq!((1, 0), (counters.unknown, counters.failed.total()));
    let mut block = Stage::new("BEGIN;\nUPDATE t SET n = 1;\nCOMMIT;\n", "extended");
    block.receive(&first_answer("BEGIN", IN_BLOCK));
    block.receive(FATAL);
    block.close();
    assert_eq!(1, block.counters().failed.connection);
}

#[test]
fn a_request_that_takes_too_long_is_cancelled_and_then_cut() {
    let extra = r#", "statement_timeout_s": 0.000001"#;
    let mut stage = Stage::with("SELECT 1;", "simple", extra);
    // Asked at 1000 and answered at 1200: the timer set for it goes off while the second one runs.
    stage.receive(&[&complete("SELECT 1")[..], READY].concat());
    assert_eq!(Next::Watch(2_200), stage.wake(2_000));
    assert_eq!(Next::Cancel(3_200), stage.wake(2_200));
    let cancelled = b"E\0\0\0\x20SERROR\0VERROR\0C57014\0Mlong\0\0";
    stage.receive(&[cancelled, READY].concat());
    // The third one: its server answers neither it nor the cancel request.
    assert_eq!(Next::Watch(3_300), stage.wake(3_200));
    assert_eq!(Next::Cancel(4_300), stage.wake(3_300));
    assert_eq!(Next::Close, stage.wake(4_300));
    let (counters, total, _) = stage.books();
    assert_eq!(
        (1, 1, 1, 2),
        (
            counters.committed,
            counters.failed.other,
            counters.unknown,
            total.statement_timeouts
        )
    );
}

#[test]
fn copy_out_is_counted_and_copy_in_refused() {
    let mut stage = Stage::new("COPY t TO STDOUT;", "simple");
    let data = message(b'd', b"1\tone\n");
    let answer = [
        &message(b'H', &[0, 0, 0])[..],
        &data,
        &data,
        &message(b'c', b""),
        &complete("COPY 2"),
        READY,
    ];
    stage.receive(&answer.concat());
    stage.sent();
    stage.receive(&message(b'G', &[0, 0, 0]));
    assert_eq!(b'f', stage.sent()[0]);
    stage.client.cut_off(&mut stage.context, 1_400);
    let (counters, _, recording) = stage.books();
    let statement = &recording.statements[0];
    assert_eq!(
        (1, 2, 12),
        (counters.committed, statement.rows, statement.copy_bytes)
    );
}

#[test]
fn copy_in_within_a_pipeline_ends_the_session() {
    let script = "\\startpipeline\nCOPY t FROM STDIN;\nSELECT 2;\n\\endpipeline\n";
    let mut stage = Stage::new(script, "extended");
    assert_eq!(Next::Close, stage.receive(&message(b'G', &[0, 0, 0])));
    let counters = stage.counters();
    assert_eq!((1, 1), (counters.failed.other, counters.scheduled));
}

#[test]
fn a_sync_within_a_pipeline_has_an_answer_of_its_own() {
    let script = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\n";
    let mut stage = Stage::new(script, "extended");
    assert_eq!(b"PBDESPBDES".to_vec(), kinds(&stage.sent()));
    let one = [message(b'1', b""), message(b'2', b""), complete("SELECT 1")].concat();
    stage.receive(&[&one[..], READY].concat());
    assert!(stage.sent().is_empty(), "the second half is still to come");
    stage.receive(&[&one[..], READY].concat());
    stage.receive(&[DEADLOCK, READY].concat());
    assert!(stage.sent().len() > 8);
    stage.receive(&[&one[..], READY].concat());
    stage.client.cut_off(&mut stage.context, 1_600);
    let (counters, _, recording) = stage.books();
    // An error in the first half does not keep the second from committing; the transaction failed as a whole.
    assert_eq!(
        (1, 1, 3),
        (
            counters.committed,
            counters.failed.deadlock,
            recording.server_commits()
        )
    );
}

#[test]
fn records_allocate_nothing() {
    let extra = r#", "history": true, "transaction_log": {"rate": 0.5}, "retry": {"max_tries": 2},
        "statement_timeout_s": 100"#;
    let mut stage = Stage::with("UPDATE t SET n = 1;", "prepared", extra);
    stage.receive(&first_answer("UPDATE 1", READY));
    let answer = [&message(b'2', b"")[..], &complete("UPDATE 1"), READY].concat();
    let before = crate::allocations::on_this_thread();
    for _ in 0..1_000 {
        stage.receive(&answer);
        stage.client.bytes_to_send().clear();
    }
    assert_eq!(before, crate::allocations::on_this_thread());
    assert_eq!(1_001, stage.counters().committed);
}
