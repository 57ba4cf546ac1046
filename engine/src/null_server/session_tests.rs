//! The null server's side of the protocol, without sockets: bytes in, messages out.

use proptest::prelude::*;

use super::answers::{Answers, Shape};
use super::misbehaviour::{Misbehaviour, Moment};
use super::session::{MESSAGE_BYTES_MAX, REPLY_BYTES, Reply, Session, Stop};

const SHAPE: Shape = Shape {
    rows: 2,
    row_bytes: 3,
};

fn reply(answers: &Answers) -> Reply<'_> {
    Reply {
        answers,
        bytes: Vec::new(),
        statements: 0,
        ready: 0,
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn startup(version: u32) -> Vec<u8> {
    let body = b"user\0me\0\0";
    let length = (body.len() as u32 + 8).to_be_bytes();
    [&length[..], &version.to_be_bytes(), body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(
        b'P',
        &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat(),
    )
}

fn bind(name: &str) -> Vec<u8> {
    message(b'B', &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat())
}

fn execute(limit: i32) -> Vec<u8> {
    message(b'E', &[&b"\0"[..], &limit.to_be_bytes()].concat())
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// Kinds of the messages in a reply; ReadyForQuery with its status, CommandComplete with its tag, errors with their state.
fn shown(mut bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let body = &bytes[5..=length];
        let text = String::from_utf8_lossy(body);
        all.push(match bytes[0] {
            b'Z' => format!("Z{text}"),
            b'C' => format!("C {}", text.trim_end_matches('\0')),
            b'E' => text
                .split('\0')
                .find(|field| field.starts_with('C'))
                .unwrap()
                .replacen('C', "E ", 1),
            kind => char::from(kind).to_string(),
        });
        bytes = &bytes[length + 1..];
    }
    all
}

/// A session that has started.
fn started(misbehaviour: Option<Misbehaviour>, answers: &Answers) -> Session {
    let mut session = Session::new(7, misbehaviour);
    session.receive(&startup(196_608), &mut reply(answers));
    session
}

/// What a started session answers to `input`.
fn answer(input: &[u8]) -> Vec<String> {
    let answers = Answers::new(SHAPE);
    let mut out = reply(&answers);
    let progress = started(None, &answers).receive(input, &mut out);
    assert_eq!(input.len(), progress.consumed);
    shown(&out.bytes)
}

#[test]
fn encryption_is_declined_and_anybody_let_in() {
    let answers = Answers::new(SHAPE);
    let mut out = reply(&answers);
    let mut session = Session::new(7, None);
    for request in [80_877_103_u32, 80_877_104] {
        let bytes = [&8_u32.to_be_bytes()[..], &request.to_be_bytes()].concat();
        assert_eq!(8, session.receive(&bytes, &mut out).consumed);
    }
    assert_eq!(b"NN", &out.bytes[..]);
    out.bytes.clear();
    session.receive(&startup(196_608), &mut out);
    let kinds = shown(&out.bytes);
    assert_eq!(
        ("R", "K", "ZI"),
        (
            &*kinds[0],
            &*kinds[kinds.len() - 2],
            &*kinds[kinds.len() - 1]
        )
    );
}

#[test]
fn a_newer_minor_version_is_negotiated_down() {
    let answers = Answers::new(SHAPE);
    let mut out = reply(&answers);
    Session::new(7, None).receive(&startup(196_610), &mut out);
    assert_eq!("v", shown(&out.bytes)[0]);
}

#[test]
fn a_cancel_request_and_an_unknown_version_end_the_session() {
    let answers = Answers::new(SHAPE);
    let mut out = reply(&answers);
    let cancel = [
        &16_u32.to_be_bytes()[..],
        &80_877_102_u32.to_be_bytes(),
        &[0; 8],
    ]
    .concat();
    assert_eq!(
        Stop::Ended,
        Session::new(7, None).receive(&cancel, &mut out).stop
    );
    assert!(out.bytes.is_empty());
    assert_eq!(
        Stop::Ended,
        Session::new(7, None)
            .receive(&startup(2 << 16), &mut out)
            .stop
    );
    assert_eq!(["E 08P01"], &shown(&out.bytes)[..]);
}

#[test]
fn simple_queries_have_rows_tags_and_a_transaction_status() {
    let cases: &[(&str, &[&str])] = &[
        ("select 1", &["T", "D", "D", "C SELECT 2", "ZI"]),
        (
            "select 1; select 2;",
            &[
                "T",
                "D",
                "D",
                "C SELECT 2",
                "T",
                "D",
                "D",
                "C SELECT 2",
                "ZI",
            ],
        ),
        ("", &["I", "ZI"]),
        (" ; ", &["I", "ZI"]),
        ("begin", &["C BEGIN", "ZT"]),
        (
            "begin; update t set a = 1; end",
            &["C BEGIN", "C UPDATE 1", "C COMMIT", "ZI"],
        ),
        ("show synchronous_commit", &["T", "D", "C SHOW", "ZI"]),
        ("copy t from stdin; select 1", &["E 0A000", "ZI"]),
    ];
    for (text, expected) in cases {
        assert_eq!(*expected, &answer(&query(text))[..], "{text}");
    }
}

#[test]
fn a_failed_transaction_ends_as_rolled_back() {
    let input = [
        query("begin"),
        query("copy t to stdout"),
        query("select 1"),
        query("commit"),
    ]
    .concat();
    let expected = [
        "C BEGIN",
        "ZT",
        "E 0A000",
        "ZE",
        "E 25P02",
        "ZE",
        "C ROLLBACK",
        "ZI",
    ];
    assert_eq!(expected, &answer(&input)[..]);
}

#[test]
fn a_prepared_statement_is_bound_described_and_executed() {
    let input = [
        parse("s", "select a from t where b = $1 and c = $2"),
        message(b'D', b"Ss\0"),
        bind("s"),
        message(b'D', b"P\0"),
        execute(0),
        message(b'H', b""),
        sync(),
        message(b'C', b"Ss\0"),
        sync(),
    ]
    .concat();
    let expected = [
        "1",
        "t",
        "T",
        "2",
        "T",
        "D",
        "D",
        "C SELECT 2",
        "ZI",
        "3",
        "ZI",
    ];
    assert_eq!(expected, &answer(&input)[..]);
}

#[test]
fn rows_come_in_portions() {
    let input = [
        parse("", "select 1"),
        bind(""),
        execute(1),
        execute(0),
        execute(0),
        sync(),
    ]
    .concat();
    let expected = ["1", "2", "D", "s", "D", "C SELECT 1", "C SELECT 0", "ZI"];
    assert_eq!(expected, &answer(&input)[..]);
}

#[test]
fn after_an_error_everything_up_to_sync_is_passed_over() {
    let input = [
        bind("missing"),
        execute(0),
        parse("", "select 1"),
        sync(),
        parse("", "end"),
        sync(),
    ]
    .concat();
    assert_eq!(["E 26000", "ZI", "1", "ZI"], &answer(&input)[..]);
}

#[test]
fn names_cannot_be_taken_twice_nor_be_endless() {
    let twice = [parse("a", "select 1"), parse("a", "select 1"), sync()].concat();
    assert_eq!(["1", "E 42P05", "ZI"], &answer(&twice)[..]);
    let endless = [parse(&"a".repeat(2000), "select 1"), sync()].concat();
    assert_eq!(["E 53000", "ZI"], &answer(&endless)[..]);
}

#[test]
fn a_long_reply_is_given_in_parts() {
    let answers = Answers::new(Shape {
        rows: 1000,
        row_bytes: 1000,
    });
    let mut session = started(None, &answers);
    let input = query("select 1").repeat(3);
    let mut consumed = 0;
    for _ in 0..3 {
        let mut out = reply(&answers);
        let progress = session.receive(&input[consumed..], &mut out);
        assert_eq!(Stop::Full, progress.stop);
        assert!((REPLY_BYTES..2 * 1000 * 1012).contains(&out.bytes.len()));
        consumed += progress.consumed;
    }
    assert_eq!(input.len(), consumed);
}

#[test]
fn impossible_messages_end_the_session_with_an_error() {
    let too_long = [&b"Q"[..], &(MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes()].concat();
    for input in [
        &b"Q\0\0\0\x03"[..],
        &too_long,
        &message(b'y', b""),
        &message(b'Q', b"select"),
        &message(b'B', b"a"),
    ] {
        let answers = Answers::new(SHAPE);
        let mut out = reply(&answers);
        assert_eq!(
            Stop::Ended,
            started(None, &answers).receive(input, &mut out).stop
        );
        assert_eq!(["E 08P01"], &shown(&out.bytes)[..]);
    }
}

#[test]
fn a_bad_server_closes_where_it_should() {
    use Moment::{
        Authentication, Bind, Commit, Complete, Execute, Parse, Query, Ready, Row, Startup, Sync,
    };
    let extended = [parse("", "select 1"), bind(""), execute(0), sync()].concat();
    let commit = query("begin; commit");
    let cases: &[(Moment, &[u8], &[&str])] = &[
        (Parse, &extended, &[]),
        (Bind, &extended, &["1"]),
        (Execute, &extended, &["1", "2"]),
        (Row, &extended, &["1", "2", "D"]),
        (Complete, &extended, &["1", "2", "D", "D", "C SELECT 2"]),
        (Sync, &extended, &["1", "2", "D", "D", "C SELECT 2"]),
        (Query, &commit, &[]),
        (Commit, &commit, &["C BEGIN"]),
    ];
    let answers = Answers::new(SHAPE);
    for (moment, input, expected) in cases {
        let mut out = reply(&answers);
        let mut session = started(Some(Misbehaviour::CloseAt(*moment)), &answers);
        assert_eq!(
            Stop::Ended,
            session.receive(input, &mut out).stop,
            "{moment:?}"
        );
        assert_eq!(*expected, &shown(&out.bytes)[..], "{moment:?}");
    }
    for (moment, expected) in [(Startup, 0), (Authentication, 1), (Ready, 12)] {
        let mut out = reply(&answers);
        let mut session = Session::new(7, Some(Misbehaviour::CloseAt(moment)));
        assert_eq!(
            Stop::Ended,
            session.receive(&startup(196_608), &mut out).stop,
            "{moment:?}"
        );
        assert_eq!(expected, shown(&out.bytes).len(), "{moment:?}");
    }
}

#[test]
fn a_frozen_server_swallows_everything() {
    let answers = Answers::new(SHAPE);
    let mut session = started(Some(Misbehaviour::FreezeAfter(1)), &answers);
    let mut out = reply(&answers);
    let input = query("select 1").repeat(3);
    let progress = session.receive(&input, &mut out);
    assert_eq!(
        (input.len(), Stop::Starved),
        (progress.consumed, progress.stop)
    );
    assert_eq!(5, shown(&out.bytes).len());
    assert!(session.is_frozen());
}

proptest! {
    /// However a client's bytes are cut into pieces, the reply is the same.
    #[test]
    fn pieces_make_no_difference(cuts in proptest::collection::vec(1_usize..20, 1..60)) {
        let input = [
            startup(196_608), query("begin; select 1"), parse("s", "select $1"), bind("s"), execute(0), sync(), query("end"),
        ].concat();
        let answers = Answers::new(SHAPE);
        let (mut whole, mut pieces) = (reply(&answers), reply(&answers));
        Session::new(7, None).receive(&input, &mut whole);
        let mut session = Session::new(7, None);
        let (mut pending, mut rest) = (Vec::new(), &input[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pending.extend_from_slice(piece);
            rest = after;
            let consumed = session.receive(&pending, &mut pieces).consumed;
            pending.drain(..consumed);
        }
        prop_assert_eq!(whole.bytes, pieces.bytes);
    }

    /// Whatever a hostile client sends, the session neither panics nor takes more than there is.
    #[test]
    fn anything_may_come(input in proptest::collection::vec(any::<u8>(), 0..400), has_started: bool) {
        let answers = Answers::new(SHAPE);
        let mut session = if has_started { started(None, &answers) } else { Session::new(7, None) };
        let progress = session.receive(&input, &mut reply(&answers));
        prop_assert!(progress.consumed <= input.len());
        prop_assert!(progress.stop != Stop::Full);
    }

    /// Messages of every known kind with any body.
    #[test]
    fn any_body_may_come(kind in proptest::sample::select(b"QPBDECSHFdcfp".to_vec()), body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let answers = Answers::new(SHAPE);
        let input = [message(kind, &body), sync()].concat();
        let progress = started(None, &answers).receive(&input, &mut reply(&answers));
        prop_assert!(progress.consumed <= input.len());
    }
}
