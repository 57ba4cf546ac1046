//! What a client is about to send: hand-written encoding of queries, without allocation in the steady state.
//!
//! A program writes one statement with [`Outgoing::query`] (simple protocol: the whole text) or
//! [`Outgoing::bind`] (extended and prepared: the parameters); what else the protocol needs around it (Parse,
//! Describe, Execute, Sync) is added here. `expected` keeps what the server will answer to, in order.
//!
//! ```text
//! match outgoing.protocol() {
//!     Protocol::Simple => { let mut query = outgoing.query(statement); query.text(b"SELECT 1"); query.end(); }
//!     _ => { let mut bind = outgoing.bind(statement); bind.text(b"42"); bind.null(); bind.end(); }
//! }
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::Protocol;
use crate::program::{StatementDefinition, StatementId, StatementKind};

/// How statements are sent, the same for all clients: every Parse and Bind, as far as they never change.
#[derive(Debug)]
pub struct Encodings {
    protocol: Protocol,
    statements: Vec<Encoding>,
}

/// The constant bytes of one statement.
#[derive(Debug, Default)]
struct Encoding {
    /// Parse, and in the prepared protocol Describe where rows are wanted.
    parse: Vec<u8>,
    /// Bind up to the parameters' values.
    bind_head: Vec<u8>,
    /// Number of result formats (none), Describe where rows are wanted, Execute.
    bind_tail: Vec<u8>,
    parameters: u16,
}

/// What one thing sent will be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The results of a statement, up to its CommandComplete (extended) or ReadyForQuery (simple).
    Statement {
        /// Which.
        statement: StatementId,
        /// Whether a Parse goes before it that is not accepted yet: an error then means it is not prepared.
        parsed: bool,
    },
    /// ReadyForQuery.
    Ready,
}

/// Bytes to send, and what they will be answered with.
#[derive(Debug)]
pub struct Outgoing {
    encodings: Arc<Encodings>,
    bytes: Vec<u8>,
    expected: VecDeque<Expected>,
    prepared: Vec<bool>,
}

impl Encodings {
    /// Work out the constant bytes. `rows_wanted` says for each statement whether its columns must be known.
    pub fn new(
        protocol: Protocol,
        statements: &[StatementDefinition],
        rows_wanted: &[bool],
    ) -> Self {
        let mut numbers = 0..;
        let encode = |(index, statement): (usize, &StatementDefinition)| {
            if protocol == Protocol::Simple || statement.kind == StatementKind::Meta {
                return Encoding::default();
            }
            // As pgbench numbers them: SQL commands only, over all scripts.
            let name = match (protocol, numbers.next()) {
                (Protocol::Prepared, Some(number)) => format!("P_{number}"),
                _ => String::new(),
            };
            Encoding::new(&name, statement, rows_wanted[index])
        };
        Self {
            protocol,
            statements: statements.iter().enumerate().map(encode).collect(),
        }
    }
}

impl Encoding {
    fn new(name: &str, statement: &StatementDefinition, rows_wanted: bool) -> Self {
        let mut encoding = Self {
            parameters: statement.parameters,
            ..Self::default()
        };
        message(&mut encoding.parse, b'P', |body| {
            cstring(body, name);
            cstring(body, &statement.sql);
            body.extend_from_slice(&0_u16.to_be_bytes());
        });
        let named = !name.is_empty();
        if named && rows_wanted {
            message(&mut encoding.parse, b'D', |body| {
                body.push(b'S');
                cstring(body, name);
            });
        }
        encoding.bind_head.extend_from_slice(b"B\0\0\0\0\0");
        cstring(&mut encoding.bind_head, name);
        encoding.bind_head.extend_from_slice(&0_u16.to_be_bytes());
        encoding
            .bind_head
            .extend_from_slice(&statement.parameters.to_be_bytes());
        encoding.bind_tail.extend_from_slice(&0_u16.to_be_bytes());
        if !named && rows_wanted {
            message(&mut encoding.bind_tail, b'D', |body| {
                body.extend_from_slice(b"P\0")
            });
        }
        message(&mut encoding.bind_tail, b'E', |body| {
            body.extend_from_slice(&[0; 5])
        });
        encoding
    }
}

impl Outgoing {
    /// An empty one for a connection on which nothing is prepared.
    pub fn new(encodings: Arc<Encodings>) -> Self {
        let prepared = vec![false; encodings.statements.len()];
        Self {
            encodings,
            bytes: Vec::with_capacity(1024),
            expected: VecDeque::with_capacity(8),
            prepared,
        }
    }

    /// The protocol of the plan.
    pub fn protocol(&self) -> Protocol {
        self.encodings.protocol
    }

    /// Write a statement's text; simple protocol only.
    pub fn query(&mut self, statement: StatementId) -> Query<'_> {
        debug_assert_eq!(Protocol::Simple, self.protocol());
        self.expected.push_back(Expected::Statement {
            statement,
            parsed: false,
        });
        Query::new(&mut self.bytes)
    }

    /// Write a statement's parameters; extended and prepared protocol only.
    pub fn bind(&mut self, statement: StatementId) -> Bind<'_> {
        debug_assert_ne!(Protocol::Simple, self.protocol());
        let encoding = &self.encodings.statements[statement.index()];
        let parsed =
            self.encodings.protocol == Protocol::Extended || !self.prepared[statement.index()];
        if parsed {
            self.bytes.extend_from_slice(&encoding.parse);
            self.prepared[statement.index()] = true;
        }
        self.expected
            .push_back(Expected::Statement { statement, parsed });
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&encoding.bind_head);
        Bind {
            bytes: &mut self.bytes,
            tail: &encoding.bind_tail,
            begin,
            missing: encoding.parameters,
        }
    }

    /// End a request: ReadyForQuery will come. The simple protocol needs no bytes for it.
    pub fn sync(&mut self) {
        if self.protocol() != Protocol::Simple {
            self.bytes.extend_from_slice(b"S\0\0\0\x04");
        }
        self.expected.push_back(Expected::Ready);
    }

    /// A query of the engine's own (ROLLBACK, SHOW): always the simple protocol.
    pub fn own_query(&mut self, sql: &str) {
        let mut query = Query::new(&mut self.bytes);
        query.text(sql.as_bytes());
        query.end();
        self.expected.push_back(Expected::Ready);
    }

    /// Refuse to send COPY data; the statement then fails with this text in its message.
    pub fn copy_fail(&mut self, reason: &str) {
        message(&mut self.bytes, b'f', |body| cstring(body, reason));
        if self.protocol() != Protocol::Simple {
            // The Sync that was sent already is lost: a server in COPY mode reads over it.
            self.bytes.extend_from_slice(b"S\0\0\0\x04");
        }
    }

    /// What the next answer belongs to.
    pub fn expects(&self) -> Option<Expected> {
        self.expected.front().copied()
    }

    /// The next answer is complete.
    pub fn answered(&mut self) -> Option<Expected> {
        self.expected.pop_front()
    }

    /// The server accepted the Parse of the statement that is answered next: it stays prepared, come what may.
    pub fn parse_accepted(&mut self) {
        if let Some(Expected::Statement { parsed, .. }) = self.expected.front_mut() {
            *parsed = false;
        }
    }

    /// Whether nothing but the end of the request follows the statement that is answered next.
    pub fn is_last_expected(&self) -> bool {
        matches!(
            self.expected.get(1),
            None | Some(Expected::Ready) if self.expected.len() <= 2
        )
    }

    /// The statement must be parsed again before its next use.
    pub fn forget(&mut self, statement: StatementId) {
        self.prepared[statement.index()] = false;
    }

    /// The connection is another one: nothing is prepared there, nothing awaited.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.expected.clear();
        self.prepared.fill(false);
    }

    /// The bytes to send; whoever sends them swaps an empty buffer in.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A Query message being written. Dropped without `end`, the message is malformed: always call it.
#[must_use]
pub struct Query<'a> {
    bytes: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> Query<'a> {
    fn new(bytes: &'a mut Vec<u8>) -> Self {
        let begin = bytes.len();
        bytes.extend_from_slice(b"Q\0\0\0\0");
        Self { bytes, begin }
    }

    /// Add text; a zero byte would end the statement, so none may be in it.
    pub fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
    }

    /// Finish the message.
    pub fn end(self) {
        self.bytes.push(0);
        set_length(self.bytes, self.begin);
    }
}

/// A Bind message being written: exactly as many values as the statement has parameters, then `end`.
#[must_use]
pub struct Bind<'a> {
    bytes: &'a mut Vec<u8>,
    tail: &'a [u8],
    begin: usize,
    missing: u16,
}

impl Bind<'_> {
    /// A value in text format.
    pub fn text(&mut self, value: &[u8]) {
        self.count();
        self.bytes
            .extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// NULL.
    pub fn null(&mut self) {
        self.count();
        self.bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// Finish: result formats, Describe where needed, Execute.
    pub fn end(self) {
        debug_assert_eq!(0, self.missing, "a parameter is missing");
        let end_of_bind = self.bytes.len() + 2;
        self.bytes.extend_from_slice(self.tail);
        let length = (end_of_bind - self.begin - 1) as u32;
        self.bytes[self.begin + 1..self.begin + 5].copy_from_slice(&length.to_be_bytes());
    }

    fn count(&mut self) {
        debug_assert_ne!(0, self.missing, "more values than parameters");
        self.missing = self.missing.wrapping_sub(1);
    }
}

/// Append a whole message: type, length, body.
pub fn message(bytes: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
    body(bytes);
    set_length(bytes, begin);
}

/// Append text and its closing zero byte.
pub fn cstring(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

/// Fill in the length of the message that begins at `begin`; the type byte does not count.
fn set_length(bytes: &mut [u8], begin: usize) {
    let length = (bytes.len() - begin - 1) as u32;
    bytes[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(protocol: Protocol, rows_wanted: bool) -> Outgoing {
        let statement = StatementDefinition {
            transaction_type: 0,
            number: 1,
            kind: StatementKind::Sql,
            label: "SELECT :a".into(),
            sql: "SELECT $1".into(),
            parameters: 1,
            wants_rows: rows_wanted,
        };
        Outgoing::new(Arc::new(Encodings::new(
            protocol,
            &[statement],
            &[rows_wanted],
        )))
    }

    fn send(outgoing: &mut Outgoing) -> Vec<u8> {
        let mut bind = outgoing.bind(StatementId(0));
        bind.text(b"-7");
        bind.end();
        outgoing.sync();
        std::mem::take(outgoing.bytes_mut())
    }

    const PARSE: &[u8] = b"P\0\0\0\x14P_0\0SELECT $1\0\0\0";
    const DESCRIBE: &[u8] = b"D\0\0\0\x09SP_0\0";
    const BIND: &[u8] =
        b"B\0\0\0\x15\0P_0\0\0\0\0\x01\0\0\0\x02-7\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";

    #[test]
    fn prepared_parses_once() {
        let mut outgoing = outgoing(Protocol::Prepared, false);
        assert_eq!([PARSE, BIND].concat(), send(&mut outgoing));
        assert_eq!(BIND, send(&mut outgoing));
        outgoing.forget(StatementId(0));
        assert_eq!([PARSE, BIND].concat(), send(&mut outgoing));
        let expected = Expected::Statement {
            statement: StatementId(0),
            parsed: true,
        };
        assert_eq!(Some(expected), outgoing.answered());
        assert_eq!(Some(Expected::Ready), outgoing.answered());
    }

    #[test]
    fn prepared_describes_where_rows_are_wanted() {
        assert_eq!(
            [PARSE, DESCRIBE, BIND].concat(),
            send(&mut outgoing(Protocol::Prepared, true))
        );
    }

    #[test]
    fn extended_parses_always_and_describes_the_portal() {
        let mut outgoing = outgoing(Protocol::Extended, true);
        let expected: &[u8] = b"P\0\0\0\x11\0SELECT $1\0\0\0B\0\0\0\x12\0\0\0\0\0\x01\0\0\0\x02-7\0\0D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(expected, send(&mut outgoing));
        assert_eq!(expected, send(&mut outgoing));
    }

    #[test]
    fn simple_sends_text() {
        let mut outgoing = outgoing(Protocol::Simple, false);
        let mut query = outgoing.query(StatementId(0));
        query.text(b"SELECT ");
        query.text(b"5");
        query.end();
        outgoing.sync();
        assert_eq!(
            &b"Q\0\0\0\x0dSELECT 5\0"[..],
            outgoing.bytes_mut().as_slice()
        );
    }
}
