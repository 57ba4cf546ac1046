//! A client under pgbench's rules, without sockets: what ends it, what it tells, what is counted.

use std::sync::Mutex;

use super::*;
use crate::client::rules::{
    AfterAbort, AfterError, CommandTimes, Happening, Rules, SessionUse, Spot, Tried, Witness,
};

const RETRY: &str = r#", "retry": {"max_tries": 3}"#;
const SYNTAX: &[u8] = b"E\0\0\0\x21SERROR\0VERROR\0C42601\0Mwrong\0\0";
const FATAL: &[u8] = b"E\0\0\0\x20SFATAL\0VFATAL\0C57P01\0Mgone\0\0";

/// Writes down what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Witness for Notes {
    fn wants_steps(&self) -> bool {
        false
    }

    fn saw(&self, spot: Spot, happening: Happening<'_>) {
        let tries = |Tried { tries, .. }: Tried| tries;
        let what = match happening {
            Happening::Failed(error, sql) => format!("failed {} {sql:?}", error.text()),
            Happening::Repeats(tried) => format!("repeats after try {}", tries(tried)),
            Happening::GivesUp(tried) => format!("gives up after try {}", tries(tried)),
            Happening::EndedByError(error, sql) => format!("ended {} {sql:?}", error.text()),
            Happening::EndedByParse(error, sql) => format!("parse {} {sql}", error.text()),
            Happening::ConnectionLost(message) => format!("lost {message}"),
            Happening::NotConnected(message) => format!("not connected {message}"),
            Happening::CannotGoOn(abort) => format!("cannot go on {}", abort.message),
            Happening::Copy => "copy".into(),
            Happening::BlockOpen => "block open".into(),
            Happening::Notice(notice) => format!("notice {}", notice.text()),
            Happening::ScriptBegins
            | Happening::Sending(_)
            | Happening::Receiving
            | Happening::Executed => panic!("a step was told"),
        };
        let told = format!("{}: {what}", spot.statement.0);
        self.0.lock().unwrap().push(told);
    }
}

fn ruled(
    script: &str,
    protocol: &str,
    extra: &str,
    change: impl Fn(&mut Rules),
) -> (Stage, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let mut rules = Rules {
        sessions: SessionUse::Kept,
        after_error: AfterError::EndClient,
        after_abort: AfterAbort::OthersGoOn,
        command_times: CommandTimes::Unwanted,
        witness: notes.clone(),
    };
    change(&mut rules);
    let mut stage = Stage::with(script, protocol, extra);
    stage.context.rules = Some(rules);
    (stage, notes)
}

/// Scheduled, committed, failed, in flight at the end, retried, retries.
fn counted(stage: Stage) -> (u64, u64, u64, u64, u64, u64) {
    let counters = stage.counters();
    (
        counters.scheduled,
        counters.committed,
        counters.failed.total(),
        counters.in_flight_at_end,
        counters.retried,
        counters.retries,
    )
}

#[test]
fn most_errors_end_the_client_and_its_transaction_is_not_counted() {
    let (mut stage, notes) = ruled("SELEC 1;", "simple", "", |_| {});
    assert_eq!(Next::Close, stage.receive(&[SYNTAX, READY].concat()));
    assert_eq!(vec!["0: ended wrong Some(\"SELEC 1;\")"], notes.taken());
    assert!(stage.client.is_done());
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn or_they_fail_the_transaction_where_the_person_wants_to_go_on() {
    let (mut stage, notes) = ruled("SELEC 1;", "simple", "", |rules| {
        rules.after_error = AfterError::FailTransaction;
    });
    assert_eq!(Next::Wait, stage.receive(&[SYNTAX, READY].concat()));
    assert_eq!(
        vec![
            "0: failed wrong Some(\"SELEC 1;\")",
            "0: gives up after try 1"
        ],
        notes.taken()
    );
    stage.client.cut_off(&mut stage.context, 1_200);
    assert_eq!((2, 0, 1, 1, 0, 0), counted(stage));
}

#[test]
fn what_cannot_be_prepared_is_told_with_its_text() {
    let (mut stage, notes) = ruled("SELEC 1;", "prepared", "", |_| {});
    assert_eq!(Next::Close, stage.receive(&[SYNTAX, READY].concat()));
    assert_eq!(vec!["0: parse wrong SELEC 1;"], notes.taken());
}

#[test]
fn tries_of_a_client_that_ends_are_not_counted() {
    let (mut stage, notes) = ruled("UPDATE t SET n = 1;", "simple", RETRY, |_| {});
    stage.receive(&[DEADLOCK, READY].concat());
    assert_eq!(Next::Close, stage.receive(&[SYNTAX, READY].concat()));
    assert_eq!(
        vec![
            "0: failed deadlock Some(\"UPDATE t SET n = 1;\")",
            "0: repeats after try 1",
            "0: ended wrong Some(\"UPDATE t SET n = 1;\")"
        ],
        notes.taken()
    );
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn a_rollback_that_fails_ends_the_client() {
    let (mut stage, notes) = ruled("BEGIN;\nUPDATE t SET n = 1;", "simple", RETRY, |_| {});
    stage.receive(&[&complete("BEGIN")[..], IN_BLOCK].concat());
    stage.sent();
    stage.receive(&[DEADLOCK, FAILED_BLOCK].concat());
    assert!(stage.sent().windows(8).any(|bytes| bytes == b"ROLLBACK"));
    notes.taken();
    assert_eq!(Next::Close, stage.receive(&[SYNTAX, READY].concat()));
    let told = notes.taken();
    assert!(told[0].starts_with("1: ended wrong"), "{told:?}");
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn a_connection_lost_in_a_transaction_is_told_once() {
    let (mut stage, notes) = ruled("SELECT 1;", "simple", "", |_| {});
    assert_eq!(Next::Close, stage.close());
    assert_eq!(
        vec!["0: lost the server closed the connection"],
        notes.taken()
    );
    assert_eq!(Next::Close, stage.close());
    assert!(notes.taken().is_empty());
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn a_server_that_goes_away_ends_the_client_with_its_words() {
    let (mut stage, notes) = ruled("SELECT 1;", "simple", "", |rules| {
        rules.after_error = AfterError::FailTransaction;
    });
    assert_eq!(Next::Close, stage.receive(FATAL));
    assert_eq!(vec!["0: ended gone Some(\"SELECT 1;\")"], notes.taken());
}

#[test]
fn a_script_that_leaves_a_block_open_counts_and_ends_the_client() {
    let (mut stage, notes) = ruled("BEGIN;", "simple", "", |_| {});
    let next = stage.receive(&[&complete("BEGIN")[..], IN_BLOCK].concat());
    assert_eq!(Next::Close, next);
    assert_eq!(vec!["0: block open"], notes.taken());
    assert_eq!((1, 1, 0, 0, 0, 0), counted(stage));
}

#[test]
fn copy_ends_the_client() {
    let (mut stage, notes) = ruled("COPY t FROM STDIN;", "simple", "", |_| {});
    assert_eq!(Next::Close, stage.receive(&message(b'G', &[0; 3])));
    assert_eq!(vec!["0: copy"], notes.taken());
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn each_transaction_may_have_a_session_of_its_own() {
    let (mut stage, notes) = ruled("SELECT 1;", "simple", "", |rules| {
        rules.sessions = SessionUse::PerTransaction;
    });
    let next = stage.receive(&[&complete("SELECT 1")[..], READY].concat());
    assert_eq!(Next::Renew, next);
    stage.client.not_renewed("refused", &stage.context);
    assert_eq!(vec!["0: not connected refused"], notes.taken());
    assert!(stage.client.is_done());
    assert_eq!((1, 1, 0, 0, 0, 0), counted(stage));
}

#[test]
fn what_comes_after_the_end_is_not_tried_again() {
    let (mut stage, notes) = ruled("UPDATE t SET n = 1;", "simple", RETRY, |_| {});
    stage.now_ns.set(2_000_000);
    stage.receive(&[DEADLOCK, READY].concat());
    assert_eq!(1, notes.taken().len(), "the error, and nothing of tries");
    assert!(stage.client.is_done());
    assert_eq!((1, 0, 0, 1, 0, 0), counted(stage));
}

#[test]
fn scripts_that_send_nothing_let_others_have_their_turn() {
    let (mut stage, notes) = ruled("\\set a 1\n", "simple", "", |_| {});
    // The first one was started with the client; time stands still, so only their number ends a turn.
    let next = stage.client.wake(&mut stage.context);
    assert_eq!(Next::WakeAt(1_100), next);
    stage.now_ns.set(1_000_000);
    let next = stage.client.wake(&mut stage.context);
    assert_eq!((Next::Wait, true), (next, stage.client.is_done()));
    assert!(notes.taken().is_empty());
    assert_eq!((257, 257, 0, 0, 0, 0), counted(stage));
}
