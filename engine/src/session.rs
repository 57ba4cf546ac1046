//! A session that blocks: for what is not measured (loading, what comes before and after a run), so it need not be
//! clever.

use std::io::{self, Read, Write};

use crate::destination::Destination;
use crate::reactor::{BlockingConnection, CancelKey, ConnectError};
use crate::route::{Attempt, AttemptFailure};
use crate::wire::incoming::{Incoming, Message};
use crate::wire::outgoing::{cstring, message};
use crate::wire::startup::{Particulars, Progress, Startup, StartupError, TERMINATE};
use crate::wire::target::Address;
use crate::wire::wording::{Told, wording};

/// Bytes read at once.
const RECEIVE_BYTES: usize = 16 << 10;

/// See the module.
pub struct Session {
    socket: BlockingConnection,
    incoming: Incoming,
    received: Box<[u8]>,
    begin: usize,
    end: usize,
    /// Rows are read while the session is being opened, and where somebody asked for them.
    rows_wanted: bool,
    /// Takes notices and warnings, as libpq words them.
    on_notice: fn(&str),
    /// What the server said of itself when the session was opened.
    pub server_version: Option<String>,
    /// What cancels its statements; absent behind some poolers.
    pub cancel_key: Option<CancelKey>,
}

/// Why a statement or session failed; one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The server's SQLSTATE, where it gave one.
    pub sqlstate: Option<String>,
    /// What happened.
    pub message: String,
    /// The server's own advice, or empty.
    pub hint: String,
    /// Everything the server said, as libpq words it (`ERROR:  …`, `DETAIL:  …`), or the message.
    pub wording: String,
}

impl Failure {
    /// A failure that is not the server's answer.
    pub fn local(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            sqlstate: None,
            wording: message.clone(),
            message,
            hint: String::new(),
        }
    }

    fn of(error: StartupError) -> Self {
        Self {
            sqlstate: error.sqlstate,
            ..Self::local(error.message)
        }
    }

    fn lost(error: &io::Error) -> Self {
        Self::local(format!("connection lost: {error}"))
    }
}

/// A server's address in messages.
fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(..) => address.to_string(),
        Address::Unix(path) => format!("socket {}", path.display()),
    }
}

/// A row in text; None is NULL.
pub type TextRow = Vec<Option<String>>;

/// What the server said, as far as anybody cares.
enum Event {
    Ready,
    CopyIn,
    Error(Failure),
    Row(TextRow),
    Notice(String),
    Other,
}

impl Session {
    /// Open a session with the first server that will do; `seed` shuffles where the conninfo wants it.
    ///
    /// # Errors
    /// No server can be reached, or one refuses.
    pub fn open(destination: &Destination, seed: u64) -> Result<Self, Failure> {
        let mut route = destination.route(seed);
        let mut told: Vec<String> = Vec::new();
        loop {
            let attempt = route.attempt(&destination.possibilities);
            let (failed, mut failure) = match Self::attempt(destination, attempt) {
                Ok(session) => return Ok(session),
                Err(failed) => failed,
            };
            let address = &destination.host(attempt.place).address;
            let message = match failure.sqlstate {
                Some(_) => failure.message.clone(),
                None => format!("cannot connect to {}: {}", shown(address), failure.message),
            };
            if !told.contains(&message) {
                told.push(message);
            }
            if !route.advance(&destination.possibilities, failed) {
                failure.message = told.join("; ");
                failure.wording.clone_from(&failure.message);
                return Err(failure);
            }
        }
    }

    /// Open a session by one attempt.
    ///
    /// # Errors
    /// Whether another attempt can help, and why there is no session.
    pub fn attempt(
        destination: &Destination,
        attempt: Attempt,
    ) -> Result<Self, (AttemptFailure, Failure)> {
        let timeout = destination.target.connect_timeout;
        let (socket, security) = BlockingConnection::open(destination, attempt, timeout)
            .map_err(|ConnectError { failure, message }| (failure, Failure::local(message)))?;
        let secured = security.is_some();
        let mut connection = Self {
            socket,
            incoming: Incoming::default(),
            received: vec![0; RECEIVE_BYTES].into(),
            begin: 0,
            end: 0,
            rows_wanted: true,
            on_notice: |_| {},
            server_version: None,
            cancel_key: None,
        };
        let particulars = Particulars {
            host: destination.places[attempt.place].host,
            wanted: attempt.wanted,
            security,
        };
        let away = |failure| (AttemptFailure::Unreachable, failure);
        connection
            .socket
            .set_timeout(timeout)
            .map_err(|error| away(Failure::lost(&error)))?;
        let mut bytes = Vec::new();
        let mut startup = Startup::begin(destination.target.clone(), particulars, &mut bytes);
        loop {
            connection.send(&bytes).map_err(away)?;
            bytes.clear();
            let progress = connection
                .receive(|received| startup.receive(&received, &mut bytes))
                .map_err(away)?;
            match progress {
                Ok(Progress::Wait) => {}
                Ok(Progress::Ready(learned)) => {
                    let key = learned.cancel_key;
                    connection.cancel_key = key.map(|(process_id, secret)| CancelKey {
                        attempt,
                        process_id,
                        secret,
                    });
                    connection.server_version = learned.server_version;
                    connection.rows_wanted = false;
                    let unlimited = connection.socket.set_timeout(None);
                    return unlimited
                        .map(|()| connection)
                        .map_err(|error| away(Failure::lost(&error)));
                }
                Err(error) => return Err((error.attempt_failure(secured), Failure::of(error))),
            }
        }
    }

    /// Tell notices and warnings from now on, as libpq words them.
    pub fn tell_notices(&mut self, to: fn(&str)) {
        self.on_notice = to;
    }

    /// Run statements of the simple protocol to their end; the rows of all of them.
    ///
    /// # Errors
    /// The server's first error, or a lost connection.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<TextRow>, Failure> {
        self.send_query(sql.as_bytes())?;
        self.rows_wanted = true;
        let mut rows = Vec::new();
        let ended = self.until_ready(Some(sql), &mut rows);
        self.rows_wanted = false;
        ended.map(|()| rows)
    }

    /// Run statements of the simple protocol to their end; rows are passed over.
    ///
    /// # Errors
    /// The server's first error, or a lost connection.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), Failure> {
        self.send_query(sql)?;
        let text = std::str::from_utf8(sql).ok();
        self.until_ready(text, &mut Vec::new())
    }

    /// Begin a COPY … FROM STDIN.
    ///
    /// # Errors
    /// The server's error, a statement that wants no data, or a lost connection.
    pub fn begin_copy(&mut self, sql: &[u8]) -> Result<(), Failure> {
        self.send_query(sql)?;
        let text = std::str::from_utf8(sql).ok();
        loop {
            match self.event(text)? {
                Event::CopyIn => return Ok(()),
                Event::Error(failure) => {
                    self.until_ready(text, &mut Vec::new())?;
                    return Err(failure);
                }
                Event::Ready => {
                    return Err(Failure::local("the statement is no COPY … FROM STDIN"));
                }
                Event::Notice(words) => (self.on_notice)(&words),
                Event::Row(_) | Event::Other => {}
            }
        }
    }

    /// Send bytes as they are: whole CopyData messages, for one.
    ///
    /// # Errors
    /// A lost connection.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.socket
            .write_all(bytes)
            .map_err(|error| Failure::lost(&error))
    }

    /// End a COPY; all rows were sent.
    ///
    /// # Errors
    /// The server's error, or a lost connection.
    pub fn end_copy(&mut self) -> Result<(), Failure> {
        self.send(b"c\0\0\0\x04")?;
        self.until_ready(None, &mut Vec::new())
    }

    /// Give a COPY up.
    ///
    /// # Errors
    /// Always: at least that the COPY was given up.
    pub fn give_up_copy(&mut self, reason: &str) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        message(&mut bytes, b'f', |body| cstring(body, reason));
        self.send(&bytes)?;
        self.until_ready(None, &mut Vec::new())
    }

    fn send_query(&mut self, sql: &[u8]) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(sql.len() + 6);
        message(&mut bytes, b'Q', |body| {
            body.extend_from_slice(sql);
            body.push(0);
        });
        self.send(&bytes)
    }

    /// Take what the server says until it is ready; `sql` is what was asked, for the places of errors in it.
    fn until_ready(&mut self, sql: Option<&str>, rows: &mut Vec<TextRow>) -> Result<(), Failure> {
        let mut failure = None;
        loop {
            match self.event(sql) {
                Ok(Event::Ready) => return failure.map_or(Ok(()), Err),
                Ok(Event::Error(error)) => failure = failure.or(Some(error)),
                Ok(Event::CopyIn) => {
                    failure = failure.or(Some(Failure::local("a COPY here has no rows")));
                    let mut bytes = Vec::new();
                    message(&mut bytes, b'f', |body| cstring(body, "no rows"));
                    self.send(&bytes)?;
                }
                Ok(Event::Row(row)) => rows.push(row),
                Ok(Event::Notice(words)) => (self.on_notice)(&words),
                Ok(Event::Other) => {}
                // After a FATAL error the connection is closed: the server's words say more.
                Err(lost) => return Err(failure.unwrap_or(lost)),
            }
        }
    }

    fn event(&mut self, sql: Option<&str>) -> Result<Event, Failure> {
        self.receive(|received| match received {
            Message::Ready(_) => Event::Ready,
            Message::CopyIn => Event::CopyIn,
            Message::Error(error) => Event::Error(Failure {
                sqlstate: Some(error.state()),
                message: error.text(),
                hint: String::from_utf8_lossy(error.hint).into_owned(),
                wording: wording(&error, sql, Told::Error),
            }),
            Message::Row(row) => {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                Event::Row(row.values().map(|value| value.map(text)).collect())
            }
            Message::Notice(notice) => Event::Notice(wording(&notice, sql, Told::Notice)),
            _ => Event::Other,
        })
    }

    /// Wait for the next message and look at it.
    fn receive<R>(&mut self, look: impl FnOnce(Message<'_>) -> R) -> Result<R, Failure> {
        loop {
            let mut input = &self.received[self.begin..self.end];
            match self.incoming.next(&mut input, self.rows_wanted) {
                Ok(Some(found)) => {
                    let result = look(found);
                    self.begin = self.end - input.len();
                    return Ok(result);
                }
                Ok(None) => {}
                Err(error) => return Err(Failure::local(error.to_string())),
            }
            let count = match self.socket.read(&mut self.received) {
                Ok(0) => return Err(Failure::local("the server closed the connection")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(Failure::lost(&error)),
            };
            (self.begin, self.end) = (0, count);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A session that is lost cannot be ended in good order; nothing is lost by not knowing.
        let _ = self.socket.write_all(TERMINATE);
    }
}
