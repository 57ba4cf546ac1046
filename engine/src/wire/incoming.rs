//! From received bytes to messages, whatever pieces they come in; a broken server gives an error, never a panic.
//!
//! Whole messages are read where they lie. Only the torn end of what was received is copied, and rows nobody wants
//! are passed over without being kept, so that memory stays small however large a result is.

use super::message::{Columns, ProtocolError, Row, ServerError, take_cstring, take_i32};

/// Longest message that is put together in memory; longer ones are errors (rows nobody wants have no limit).
const LONGEST_KEPT_BYTES: usize = 64 << 20;
/// Longest message PostgreSQL can send.
const LONGEST_BYTES: usize = 1 << 30;
/// A buffer that grew beyond this for one long message is given back.
const KEPT_CAPACITY_BYTES: usize = 16 << 10;

/// One message of the server. See "Message Formats" in PostgreSQL's manual.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Authentication request: its code and what follows.
    Authentication(i32, &'a [u8]),
    /// What a cancel request needs.
    BackendKey {
        /// Process id of the backend.
        process_id: i32,
        /// Secret key: 4 bytes in protocol 3.0.
        secret: &'a [u8],
    },
    /// A setting the server tells of itself: name and value.
    Parameter(&'a [u8], &'a [u8]),
    /// It is the client's turn; `I` idle, `T` in a block, `E` in a failed block.
    Ready(u8),
    /// A command ended with this tag.
    Complete(&'a [u8]),
    /// Columns of the rows that follow.
    Columns(Columns<'a>),
    /// A row that is wanted.
    Row(Row<'a>),
    /// A row nobody asked for.
    RowPassed,
    /// A Parse was accepted.
    Parsed,
    /// The request failed.
    Error(ServerError<'a>),
    /// A warning or a note.
    Notice(ServerError<'a>),
    /// The server waits for COPY data.
    CopyIn,
    /// COPY data will follow.
    CopyOut,
    /// So many bytes of COPY data, not kept.
    CopyData(usize),
    /// Any message that carries nothing we need.
    Other(u8),
}

/// Puts messages together.
#[derive(Debug, Default)]
pub struct Incoming {
    /// The beginning of a message whose end has not come.
    partial: Vec<u8>,
    /// The message in `partial` was handed out and goes with the next call.
    spent: bool,
    /// Bytes to come that nobody wants.
    skip: usize,
}

const HEADER: usize = 5;

impl Incoming {
    /// The next whole message of `input`, which moves on behind it; None when more must be received first.
    pub fn next<'a, 'kept: 'a, 'input: 'a>(
        &'kept mut self,
        input: &mut &'input [u8],
        rows_wanted: bool,
    ) -> Result<Option<Message<'a>>, ProtocolError> {
        if self.spent {
            self.partial.clear();
            self.partial.shrink_to(KEPT_CAPACITY_BYTES);
            self.spent = false;
        }
        if self.skip > 0 {
            let skipped = self.skip.min(input.len());
            *input = &input[skipped..];
            self.skip -= skipped;
        }
        if !self.partial.is_empty() {
            return self.next_partial(input, rows_wanted);
        }
        let Some(&[kind, l0, l1, l2, l3]) = input.first_chunk::<HEADER>() else {
            self.partial.extend_from_slice(input);
            *input = &[];
            return Ok(None);
        };
        let length = body_length(kind, [l0, l1, l2, l3])?;
        if let Some(body) = input.get(HEADER..HEADER + length) {
            *input = &input[HEADER + length..];
            return decode(kind, body, rows_wanted).map(Some);
        }
        if passed_over(kind, rows_wanted) {
            self.skip = HEADER + length - input.len();
            *input = &[];
            return Ok(Some(passed(kind, length)));
        }
        self.keep(input, HEADER + length)
    }

    /// As `next`, where the message began in an earlier piece.
    fn next_partial(
        &mut self,
        input: &mut &[u8],
        rows_wanted: bool,
    ) -> Result<Option<Message<'_>>, ProtocolError> {
        self.take(input, HEADER);
        let Some(&[kind, l0, l1, l2, l3]) = self.partial.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let whole = HEADER + body_length(kind, [l0, l1, l2, l3])?;
        if self.partial.len() == HEADER && passed_over(kind, rows_wanted) {
            self.partial.clear();
            let present = input.len().min(whole - HEADER);
            *input = &input[present..];
            self.skip = whole - HEADER - present;
            return Ok(Some(passed(kind, whole - HEADER)));
        }
        if whole > LONGEST_KEPT_BYTES {
            return Err(too_long(kind, whole));
        }
        self.take(input, whole);
        if self.partial.len() < whole {
            return Ok(None);
        }
        self.spent = true;
        decode(kind, &self.partial[HEADER..], rows_wanted).map(Some)
    }

    /// Keep the beginning of a message of `whole` bytes.
    fn keep<'a>(
        &mut self,
        input: &mut &[u8],
        whole: usize,
    ) -> Result<Option<Message<'a>>, ProtocolError> {
        if whole > LONGEST_KEPT_BYTES {
            return Err(too_long(input[0], whole));
        }
        self.partial.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    /// Move bytes from the input until `partial` holds `wanted`.
    fn take(&mut self, input: &mut &[u8], wanted: usize) {
        let missing = wanted.saturating_sub(self.partial.len()).min(input.len());
        self.partial.extend_from_slice(&input[..missing]);
        *input = &input[missing..];
    }
}

/// Length of the body behind the header, checked.
fn body_length(kind: u8, length: [u8; 4]) -> Result<usize, ProtocolError> {
    let length = u32::from_be_bytes(length) as usize;
    if !(4..=LONGEST_BYTES).contains(&length) {
        let what = format!("message {} has length {length}", shown(kind));
        return Err(ProtocolError(what));
    }
    Ok(length - 4)
}

/// Whether a message is passed over without being kept.
fn passed_over(kind: u8, rows_wanted: bool) -> bool {
    kind == b'd' || (kind == b'D' && !rows_wanted)
}

/// What a message of `length` bytes tells that is not kept.
fn passed(kind: u8, length: usize) -> Message<'static> {
    if kind == b'D' {
        Message::RowPassed
    } else {
        Message::CopyData(length)
    }
}

fn too_long(kind: u8, bytes: usize) -> ProtocolError {
    ProtocolError(format!(
        "message {} of {bytes} bytes is too long",
        shown(kind)
    ))
}

/// A message type as it is shown.
fn shown(kind: u8) -> String {
    if kind.is_ascii_graphic() {
        format!("'{}'", kind as char)
    } else {
        format!("0x{kind:02x}")
    }
}

/// Read one whole message.
fn decode(kind: u8, body: &[u8], rows_wanted: bool) -> Result<Message<'_>, ProtocolError> {
    let malformed = || ProtocolError(format!("malformed message {}", shown(kind)));
    Ok(match kind {
        b'D' if rows_wanted => Message::Row(Row::new(body)?),
        b'D' => Message::RowPassed,
        b'C' => Message::Complete(take_cstring(body).ok_or_else(malformed)?.0),
        b'Z' => Message::Ready(*body.first().ok_or_else(malformed)?),
        b'T' => Message::Columns(Columns::new(body)?),
        b'1' => Message::Parsed,
        b'E' => Message::Error(ServerError::new(body)),
        b'N' => Message::Notice(ServerError::new(body)),
        b'S' => {
            let (name, rest) = take_cstring(body).ok_or_else(malformed)?;
            Message::Parameter(name, take_cstring(rest).ok_or_else(malformed)?.0)
        }
        b'K' => {
            let (process_id, secret) = take_i32(body).ok_or_else(malformed)?;
            Message::BackendKey { process_id, secret }
        }
        b'R' => {
            let (code, rest) = take_i32(body).ok_or_else(malformed)?;
            Message::Authentication(code, rest)
        }
        b'G' | b'W' => Message::CopyIn,
        b'H' => Message::CopyOut,
        b'd' => Message::CopyData(body.len()),
        other => Message::Other(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANSWER: &[u8] =
        b"2\0\0\0\x04D\0\0\0\x0c\0\x01\0\0\0\x0242C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

    /// What a decoder makes of bytes that come in these pieces.
    fn read(pieces: &[&[u8]], rows_wanted: bool) -> Result<Vec<String>, ProtocolError> {
        let mut incoming = Incoming::default();
        let mut seen = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(message) = incoming.next(&mut input, rows_wanted)? {
                seen.push(match message {
                    Message::Row(row) => format!("row {:?}", row.values().collect::<Vec<_>>()),
                    other => format!("{other:?}"),
                });
            }
            assert!(input.is_empty());
        }
        Ok(seen)
    }

    #[test]
    fn an_answer_is_read() {
        let expected = [
            "Other(50)",
            "row [Some([52, 50])]",
            "Complete([83, 69, 76, 69, 67, 84, 32, 49])",
            "Ready(73)",
        ];
        assert_eq!(expected.to_vec(), read(&[ANSWER], true).unwrap());
    }

    #[test]
    fn a_large_unwanted_row_is_not_kept() {
        let mut incoming = Incoming::default();
        let mut header: &[u8] = &[b'D', 0x30, 0, 0, 0, 0, 1];
        assert!(matches!(
            incoming.next(&mut header, false),
            Ok(Some(Message::RowPassed))
        ));
        let chunk = vec![0; 1 << 20];
        for _ in 0..(0x3000_0000 - 6) / chunk.len() {
            assert!(incoming.next(&mut &chunk[..], false).unwrap().is_none());
        }
        assert!(incoming.partial.capacity() < 1024);
    }

    #[test]
    fn broken_lengths_are_errors() {
        assert!(read(&[b"Z\0\0\0\x03I"], false).is_err());
        assert!(read(&[b"Z\xff\xff\xff\xffI"], false).is_err());
        assert!(
            read(&[b"T\x30\0\0\0"], false)
                .unwrap_err()
                .0
                .contains("too long")
        );
        assert!(
            read(&[b"T", b"\x30\0\0\0"], false)
                .unwrap_err()
                .0
                .contains("too long")
        );
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in proptest::collection::vec(0..ANSWER.len(), 0..6), rows_wanted: bool) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut begin = 0;
            for cut in cuts {
                pieces.push(&ANSWER[begin..cut]);
                begin = cut;
            }
            pieces.push(&ANSWER[begin..]);
            prop_assert_eq!(read(&[ANSWER], rows_wanted).unwrap(), read(&pieces, rows_wanted).unwrap());
        }

        /// What `engine/fuzz` does for longer: messages of any kind, whole, cut off or garbled, in pieces of any size.
        #[test]
        fn hostile_messages_are_read_alike_in_any_pieces(
            messages in proptest::collection::vec(
                (
                    prop_oneof![proptest::sample::select(b"DCZT1ENSKRGHdcI".to_vec()), any::<u8>()],
                    -6_i32..6,
                    proptest::collection::vec(any::<u8>(), 0..40),
                ),
                0..12,
            ),
            piece in 1_usize..70,
            rows_wanted: bool,
        ) {
            let mut bytes = Vec::new();
            for (kind, wrong_by, body) in messages {
                // Most lengths are right.
                let wrong_by = if wrong_by.abs() > 4 { wrong_by } else { 0 };
                bytes.push(kind);
                bytes.extend_from_slice(&(body.len() as i32 + 4 + wrong_by).to_be_bytes());
                bytes.extend_from_slice(&body);
            }
            let pieces: Vec<_> = bytes.chunks(piece).collect();
            let (whole, cut) = (read(&[&bytes], rows_wanted), read(&pieces, rows_wanted));
            prop_assert_eq!(whole, cut);
        }

        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let _ = read(&[first, second], true);
            let _ = read(&[first, second], false);
        }
    }
}
