//! One session of the null server, without I/O: bytes of a client in, bytes of a reply out.
//!
//! ```text
//! Starting ──start-up message──▶ Serving ──Terminate, protocol violation, close-at──▶ ended
//!    ╰─ SSLRequest, GSSENCRequest: 'N', and wait on
//! ```
//!
//! A client is never believed: messages have a largest length, a reply stops growing when it is large enough and goes on
//! when that part is out, and what has been prepared is limited in number.

use std::collections::HashMap;

use super::answers::{
    AUTHENTICATION_OK, Answers, BIND_COMPLETE, CLOSE_COMPLETE, EMPTY_QUERY, NEGOTIATE_VERSION,
    NO_DATA, PARSE_COMPLETE, PORTAL_SUSPENDED, put_complete, put_error, put_key,
    put_parameter_types, put_ready, put_selected,
};
use super::misbehaviour::{Misbehaviour, Moment};
use super::statement::{Statement, parameter_count, split_statement};
use crate::wire::message::take_cstring;

/// Largest start-up message, as PostgreSQL has it.
const STARTUP_BYTES_MAX: usize = 10_000;
/// Largest other message.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// A reply that is longer than this is sent before more is added to it.
pub const REPLY_BYTES: usize = 256 << 10;
/// Most statements, and most portals, that a session may have prepared.
const PREPARED_MAX: usize = 10_000;

/// Longest name of either.
const NAME_BYTES_MAX: usize = 1024;

const SSL_REQUEST: u32 = 80_877_103;
const GSSENC_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;
const PROTOCOL_VIOLATION: &str = "08P01";
const FEATURE_NOT_SUPPORTED: &str = "0A000";

/// What a session writes to; shared by all sessions of a thread.
pub struct Reply<'a> {
    /// The constant pieces.
    pub answers: &'a Answers,
    /// Bytes for the client.
    pub bytes: Vec<u8>,
    /// Statements answered so far.
    pub statements: u64,
    /// ReadyForQuery sent so far, those of starts not counted.
    pub ready: u64,
}

/// How far a session came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// What stopped it.
    pub stop: Stop,
}

/// Why a session stopped reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no whole message any more.
    Starved,
    /// The reply is long enough: send it, then go on.
    Full,
    /// The connection is to be closed once the reply is out.
    Ended,
}

/// A message broken enough to end the session.
struct Violation(&'static str);

#[derive(Clone, Copy)]
struct Prepared {
    statement: Statement,
    parameters: u16,
}

#[derive(Clone, Copy)]
struct Portal {
    statement: Statement,
    rows_sent: usize,
}

/// The state of one session.
pub struct Session {
    number: u32,
    started: bool,
    ended: bool,
    /// Status of the transaction: `I`, `T` or `E`, as ReadyForQuery says it.
    transaction: u8,
    /// After an error in the extended protocol everything up to Sync is passed over.
    skipping: bool,
    unnamed_statement: Option<Prepared>,
    statements: HashMap<Box<[u8]>, Prepared>,
    unnamed_portal: Option<Portal>,
    portals: HashMap<Box<[u8]>, Portal>,
    misbehaviour: Option<Misbehaviour>,
    /// ReadyForQuery sent since the start.
    ready: u64,
}

impl Session {
    /// A session that waits for its start-up message. `number` is told as its process number.
    pub fn new(number: u32, misbehaviour: Option<Misbehaviour>) -> Self {
        Self {
            number,
            started: false,
            ended: false,
            transaction: b'I',
            skipping: false,
            unnamed_statement: None,
            statements: HashMap::new(),
            unnamed_portal: None,
            portals: HashMap::new(),
            misbehaviour,
            ready: 0,
        }
    }

    /// Whether the client has been told that it may begin.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Whether this session has fallen silent (`freeze-after`).
    pub fn is_frozen(&self) -> bool {
        matches!(self.misbehaviour, Some(Misbehaviour::FreezeAfter(count)) if self.started && self.ready >= count)
    }

    /// Answer what there is of `input`. Bytes that are not consumed must come again, with more behind them.
    pub fn receive(&mut self, input: &[u8], reply: &mut Reply<'_>) -> Progress {
        let mut consumed = 0;
        let stop = loop {
            if self.ended {
                break Stop::Ended;
            }
            if self.is_frozen() {
                consumed = input.len();
                break Stop::Starved;
            }
            if reply.bytes.len() >= REPLY_BYTES {
                break Stop::Full;
            }
            match self.next(&input[consumed..], reply) {
                Ok(0) => break Stop::Starved,
                Ok(length) => consumed += length,
                Err(Violation(message)) => {
                    put_error(&mut reply.bytes, "FATAL", PROTOCOL_VIOLATION, message);
                    self.ended = true;
                }
            }
        };
        Progress { consumed, stop }
    }

    /// Answer one message; its length, or 0 when it is not all there.
    #[inline]
    fn next(&mut self, input: &[u8], reply: &mut Reply<'_>) -> Result<usize, Violation> {
        if !self.started {
            return self.start(input, reply);
        }
        let Some((head, rest)) = input.split_first_chunk::<5>() else {
            return Ok(0);
        };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Violation("invalid message length"));
        }
        let Some(body) = rest.get(..length - 4) else {
            return Ok(0);
        };
        self.message(head[0], body, reply)?;
        Ok(length + 1)
    }

    fn start(&mut self, input: &[u8], reply: &mut Reply<'_>) -> Result<usize, Violation> {
        let Some((head, _)) = input.split_first_chunk::<4>() else {
            return Ok(0);
        };
        let length = u32::from_be_bytes(*head) as usize;
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(Violation("invalid length of startup packet"));
        }
        let Some(message) = input.get(..length) else {
            return Ok(0);
        };
        let code = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
        match code {
            SSL_REQUEST | GSSENC_REQUEST if length == 8 => reply.bytes.push(b'N'),
            CANCEL_REQUEST => self.ended = true,
            _ if code >> 16 == 3 => self.welcome(code & 0xffff, reply),
            _ => return Err(Violation("unsupported frontend protocol")),
        }
        Ok(length)
    }

    fn welcome(&mut self, minor_version: u32, reply: &mut Reply<'_>) {
        if self.closes_at(Moment::Startup) {
            return;
        }
        if minor_version > 0 {
            reply.bytes.extend_from_slice(NEGOTIATE_VERSION);
        }
        if self.closes_at(Moment::Authentication) {
            reply.bytes.extend_from_slice(AUTHENTICATION_OK);
            return;
        }
        reply.bytes.extend_from_slice(&reply.answers.parameters);
        put_key(&mut reply.bytes, self.number);
        put_ready(&mut reply.bytes, b'I');
        self.started = true;
        self.closes_at(Moment::Ready);
    }

    #[inline]
    fn message(&mut self, kind: u8, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        match kind {
            b'S' => self.sync(reply),
            b'X' => self.ended = true,
            // Rows of a COPY that was refused are passed over, as are messages after an error.
            b'H' | b'd' | b'c' | b'f' => {}
            b'B' | b'E' | b'D' | b'P' | b'C' if self.skipping => {}
            b'B' => self.bind(body, reply)?,
            b'E' => self.execute_portal(body, reply)?,
            b'D' => self.describe(body, reply)?,
            b'Q' => self.query(body, reply)?,
            b'P' => self.parse(body, reply)?,
            b'C' => self.close(body, reply)?,
            b'F' => {
                self.refuse(
                    reply,
                    FEATURE_NOT_SUPPORTED,
                    "the null server has no functions",
                );
                self.skipping = false;
                self.be_ready(reply);
            }
            _ => return Err(Violation("invalid frontend message type")),
        }
        Ok(())
    }

    fn sync(&mut self, reply: &mut Reply<'_>) {
        if self.closes_at(Moment::Sync) {
            return;
        }
        self.skipping = false;
        self.be_ready(reply);
    }

    #[inline]
    fn be_ready(&mut self, reply: &mut Reply<'_>) {
        if self.transaction == b'I' {
            self.unnamed_portal = None;
            if !self.portals.is_empty() {
                self.portals.clear();
            }
        }
        put_ready(&mut reply.bytes, self.transaction);
        self.ready += 1;
        reply.ready += 1;
    }

    fn query(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        if self.closes_at(Moment::Query) {
            return Ok(());
        }
        let (mut text, _) = take_cstring(body).ok_or(Violation("query without its end"))?;
        self.unnamed_statement = None;
        self.unnamed_portal = None;
        self.skipping = false;
        let mut is_alone = true;
        loop {
            let (first, rest) = split_statement(text);
            let statement = Statement::read(first);
            let is_last = rest.is_none();
            if statement != Statement::Empty || (is_last && is_alone) {
                is_alone = false;
                self.put_columns(statement, reply);
                self.execute(statement, &mut 0, 0, reply);
            }
            if self.ended {
                return Ok(());
            }
            if self.skipping || is_last {
                break;
            }
            text = rest.unwrap_or_default();
        }
        self.skipping = false;
        self.be_ready(reply);
        Ok(())
    }

    fn parse(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        if self.closes_at(Moment::Parse) {
            return Ok(());
        }
        let (name, rest) = take_cstring(body).ok_or(Violation("malformed Parse"))?;
        let (text, _) = take_cstring(rest).ok_or(Violation("malformed Parse"))?;
        let (first, rest) = split_statement(text);
        if rest.is_some_and(|rest| Statement::read(rest) != Statement::Empty) {
            let message = "cannot insert multiple commands into a prepared statement";
            self.refuse(reply, "42601", message);
            return Ok(());
        }
        let prepared = Prepared {
            statement: Statement::read(first),
            parameters: parameter_count(first),
        };
        if name.is_empty() {
            self.unnamed_statement = Some(prepared);
        } else if self.statements.contains_key(name) {
            self.refuse(reply, "42P05", "prepared statement already exists");
            return Ok(());
        } else if is_too_much(name, self.statements.len()) {
            self.refuse(
                reply,
                "53000",
                "too many prepared statements, or too long a name",
            );
            return Ok(());
        } else {
            self.statements.insert(name.into(), prepared);
        }
        reply.bytes.extend_from_slice(PARSE_COMPLETE);
        Ok(())
    }

    fn bind(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        if self.closes_at(Moment::Bind) {
            return Ok(());
        }
        let (portal_name, rest) = take_cstring(body).ok_or(Violation("malformed Bind"))?;
        let (name, _) = take_cstring(rest).ok_or(Violation("malformed Bind"))?;
        let Some(prepared) = self.prepared(name) else {
            self.refuse(reply, "26000", "prepared statement does not exist");
            return Ok(());
        };
        let portal = Portal {
            statement: prepared.statement,
            rows_sent: 0,
        };
        if portal_name.is_empty() {
            self.unnamed_portal = Some(portal);
        } else if is_too_much(portal_name, self.portals.len()) {
            self.refuse(reply, "53000", "too many portals, or too long a name");
            return Ok(());
        } else {
            self.portals.insert(portal_name.into(), portal);
        }
        reply.bytes.extend_from_slice(BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        if self.closes_at(Moment::Describe) {
            return Ok(());
        }
        let (is_statement, name) = statement_or_portal(body)?;
        if is_statement {
            let Some(prepared) = self.prepared(name) else {
                self.refuse(reply, "26000", "prepared statement does not exist");
                return Ok(());
            };
            put_parameter_types(&mut reply.bytes, prepared.parameters);
            self.put_columns_or_none(prepared.statement, reply);
        } else if let Some(portal) = self.portal(name).copied() {
            self.put_columns_or_none(portal.statement, reply);
        } else {
            self.refuse(reply, "34000", "portal does not exist");
        }
        Ok(())
    }

    fn execute_portal(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        if self.closes_at(Moment::Execute) {
            return Ok(());
        }
        let (name, rest) = take_cstring(body).ok_or(Violation("malformed Execute"))?;
        let limit = rest.first_chunk().ok_or(Violation("malformed Execute"))?;
        let Some(mut portal) = self.portal(name).copied() else {
            self.refuse(reply, "34000", "portal does not exist");
            return Ok(());
        };
        let limit = usize::try_from(i32::from_be_bytes(*limit)).unwrap_or(0);
        self.execute(portal.statement, &mut portal.rows_sent, limit, reply);
        if let Some(kept) = self.portal(name) {
            *kept = portal;
        }
        Ok(())
    }

    fn close(&mut self, body: &[u8], reply: &mut Reply<'_>) -> Result<(), Violation> {
        match statement_or_portal(body)? {
            (true, b"") => self.unnamed_statement = None,
            (true, name) => drop(self.statements.remove(name)),
            (false, b"") => self.unnamed_portal = None,
            (false, name) => drop(self.portals.remove(name)),
        }
        reply.bytes.extend_from_slice(CLOSE_COMPLETE);
        Ok(())
    }

    #[inline]
    fn prepared(&self, name: &[u8]) -> Option<Prepared> {
        if name.is_empty() {
            self.unnamed_statement
        } else {
            self.statements.get(name).copied()
        }
    }

    #[inline]
    fn portal(&mut self, name: &[u8]) -> Option<&mut Portal> {
        if name.is_empty() {
            self.unnamed_portal.as_mut()
        } else {
            self.portals.get_mut(name)
        }
    }

    /// Answer a statement: its rows and its tag. `limit` 0: all rows.
    #[inline]
    fn execute(
        &mut self,
        statement: Statement,
        rows_sent: &mut usize,
        limit: usize,
        reply: &mut Reply<'_>,
    ) {
        reply.statements += 1;
        let ends_block = matches!(
            statement,
            Statement::Commit | Statement::Rollback | Statement::RollbackTo | Statement::Empty
        );
        if self.transaction == b'E' && !ends_block {
            let message = "current transaction is aborted, commands ignored until end of block";
            self.refuse(reply, "25P02", message);
            return;
        }
        match statement {
            Statement::Empty => reply.bytes.extend_from_slice(EMPTY_QUERY),
            Statement::Select | Statement::Returning(_) => {
                self.put_rows(statement, rows_sent, limit, reply);
            }
            Statement::Show(setting) => {
                let (_, row) = &reply.answers.settings[setting];
                reply.bytes.extend_from_slice(row);
                put_complete(&mut reply.bytes, "SHOW");
            }
            Statement::Branches => {
                reply.bytes.extend_from_slice(&reply.answers.branches.1);
                put_selected(&mut reply.bytes, 1);
            }
            Statement::Begin => self.change(b'T', "BEGIN", reply),
            Statement::Commit => {
                if self.closes_at(Moment::Commit) {
                    return;
                }
                let tag = if self.transaction == b'E' {
                    "ROLLBACK"
                } else {
                    "COMMIT"
                };
                self.change(b'I', tag, reply);
            }
            Statement::Rollback => self.change(b'I', "ROLLBACK", reply),
            Statement::RollbackTo => self.change(b'T', "ROLLBACK", reply),
            Statement::Command(tag) => put_complete(&mut reply.bytes, tag),
            Statement::Refused => {
                self.refuse(
                    reply,
                    FEATURE_NOT_SUPPORTED,
                    "the null server cannot do this",
                );
                return;
            }
        }
        self.closes_at(Moment::Complete);
    }

    #[inline]
    fn change(&mut self, status: u8, tag: &str, reply: &mut Reply<'_>) {
        self.transaction = status;
        put_complete(&mut reply.bytes, tag);
    }

    #[inline]
    fn put_rows(
        &mut self,
        statement: Statement,
        rows_sent: &mut usize,
        limit: usize,
        reply: &mut Reply<'_>,
    ) {
        let left = reply.answers.shape.rows - *rows_sent;
        if self.closes_at(Moment::Row) {
            reply.bytes.extend_from_slice(&reply.answers.row);
            return;
        }
        let is_limited = limit > 0 && limit <= left;
        let count = if is_limited { limit } else { left };
        let length = count * reply.answers.row.len();
        reply.bytes.extend_from_slice(&reply.answers.rows[..length]);
        *rows_sent += count;
        match statement {
            _ if is_limited => reply.bytes.extend_from_slice(PORTAL_SUSPENDED),
            Statement::Returning(tag) => put_complete(&mut reply.bytes, tag),
            _ => put_selected(&mut reply.bytes, count),
        }
    }

    /// RowDescription, where there are rows.
    #[inline]
    fn put_columns(&self, statement: Statement, reply: &mut Reply<'_>) {
        if self.transaction == b'E' || !statement.has_rows() {
            return;
        }
        let columns = match statement {
            Statement::Show(setting) => &reply.answers.settings[setting].0,
            Statement::Branches => &reply.answers.branches.0,
            _ => &reply.answers.columns,
        };
        reply.bytes.extend_from_slice(columns);
    }

    #[inline]
    fn put_columns_or_none(&self, statement: Statement, reply: &mut Reply<'_>) {
        if statement.has_rows() {
            self.put_columns(statement, reply);
        } else {
            reply.bytes.extend_from_slice(NO_DATA);
        }
    }

    /// Answer with an error; what follows is passed over up to Sync, and an open transaction has failed.
    fn refuse(&mut self, reply: &mut Reply<'_>, sqlstate: &str, message: &str) {
        put_error(&mut reply.bytes, "ERROR", sqlstate, message);
        self.skipping = true;
        if self.transaction == b'T' {
            self.transaction = b'E';
        }
    }

    /// Whether this server is one that closes here; then the session has ended.
    #[inline]
    fn closes_at(&mut self, moment: Moment) -> bool {
        let closes = self.misbehaviour == Some(Misbehaviour::CloseAt(moment));
        self.ended |= closes;
        closes
    }
}

/// Whether one more of this name would be more than a session may keep.
fn is_too_much(name: &[u8], kept: usize) -> bool {
    name.len() > NAME_BYTES_MAX || kept >= PREPARED_MAX
}

fn statement_or_portal(body: &[u8]) -> Result<(bool, &[u8]), Violation> {
    let (kind, rest) = body.split_first().ok_or(Violation("malformed message"))?;
    let (name, _) = take_cstring(rest).ok_or(Violation("malformed message"))?;
    match kind {
        b'S' => Ok((true, name)),
        b'P' => Ok((false, name)),
        _ => Err(Violation("neither a statement nor a portal")),
    }
}
