//! What a hostile or broken server sends: never a panic, a hang or unbounded memory, and the same messages however
//! the bytes are cut into pieces.
//!
//! The input's first byte says whether rows are wanted and how long the pieces are; the rest is what the server sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The engine's own files: it is a program, not a library.
#[allow(dead_code, reason = "only a part of it is used here")]
#[path = "../../src/wire/incoming.rs"]
mod incoming;
#[allow(dead_code, reason = "only a part of it is used here")]
#[path = "../../src/wire/message.rs"]
mod message;

use incoming::{Incoming, Message};

/// What a decoder makes of bytes that come in pieces of this length.
fn decode(bytes: &[u8], piece: usize, rows_wanted: bool) -> (Vec<String>, bool) {
    let mut incoming = Incoming::default();
    let mut seen = Vec::new();
    for chunk in bytes.chunks(piece) {
        let mut input = chunk;
        loop {
            let before = input.len();
            match incoming.next(&mut input, rows_wanted) {
                Ok(Some(message)) => seen.push(shown(&message)),
                Ok(None) => break,
                Err(_) => return (seen, true),
            }
            // A message takes bytes, or was put together from bytes that were taken before.
            assert!(input.len() <= before);
            assert!(seen.len() <= bytes.len(), "more messages than bytes");
        }
        assert!(input.is_empty(), "bytes were left behind");
    }
    (seen, false)
}

/// Everything a reader of the message may look at.
fn shown(message: &Message<'_>) -> String {
    match message {
        Message::Row(row) => format!(
            "row {:?} {:?}",
            row.values().collect::<Vec<_>>(),
            row.get(3)
        ),
        Message::Columns(columns) => format!("columns {:?}", columns.names().collect::<Vec<_>>()),
        Message::Error(error) | Message::Notice(error) => {
            format!("{error:?} {} {}", error.text(), error.state())
        }
        other => format!("{other:?}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let rows_wanted = first & 1 == 1;
    let piece = usize::from(first >> 1).max(1);
    let in_pieces = decode(bytes, piece, rows_wanted);
    let at_once = decode(bytes, bytes.len().max(1), rows_wanted);
    assert_eq!(at_once, in_pieces);
});
