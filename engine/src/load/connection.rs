//! A blocking connection: loading is not measured, so it need not be clever.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::Arc;

use crate::wire::conninfo::{Address, Target};
use crate::wire::incoming::{Incoming, Message};
use crate::wire::outgoing::{cstring, message};
use crate::wire::startup::{Progress, Startup, TERMINATE, cancel_request};

/// Bytes read at once.
const RECEIVE_BYTES: usize = 16 << 10;

/// A socket of either kind.
trait Socket: Read + Write + Send {}
impl<S: Read + Write + Send> Socket for S {}

/// What a cancel request needs: process id and secret.
pub type CancelKey = (i32, Vec<u8>);

/// A session.
pub struct Connection {
    socket: Box<dyn Socket>,
    incoming: Incoming,
    received: Box<[u8]>,
    begin: usize,
    end: usize,
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
}

impl Failure {
    /// A failure that is not the server's answer.
    fn local(message: impl Into<String>) -> Self {
        Self {
            sqlstate: None,
            message: message.into(),
            hint: String::new(),
        }
    }

    fn lost(error: &io::Error) -> Self {
        Self::local(format!("connection lost: {error}"))
    }
}

/// What the server said, as far as loading cares.
enum Event {
    Ready,
    CopyIn,
    Error(Failure),
    Other,
}

/// Open a socket to a server.
fn open(address: &Address) -> io::Result<Box<dyn Socket>> {
    match address {
        Address::Tcp(host, port) => {
            let socket = TcpStream::connect((host.as_str(), *port))?;
            socket.set_nodelay(true)?;
            Ok(Box::new(socket))
        }
        Address::Unix(path) => match path.as_os_str().as_bytes() {
            [b'@', name @ ..] => Ok(Box::new(UnixStream::connect_addr(
                &SocketAddr::from_abstract_name(name)?,
            )?)),
            _ => Ok(Box::new(UnixStream::connect(path)?)),
        },
    }
}

/// A server's address in messages.
fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(host, port) => format!("{host}, port {port}"),
        Address::Unix(path) => format!("socket {}", path.display()),
    }
}

/// Ask the server to cancel what the session with this key is doing.
///
/// # Errors
/// The server cannot be reached.
pub fn cancel(target: &Target, (process_id, secret): &CancelKey) -> io::Result<()> {
    let mut socket = open(&target.address)?;
    socket.write_all(&cancel_request(*process_id, secret))?;
    // The server closes the connection when it has seen the request.
    socket.read(&mut [0; 1]).map(drop)
}

impl Connection {
    /// Open a session.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn open(target: &Arc<Target>) -> Result<Self, Failure> {
        let socket = open(&target.address).map_err(|error| {
            Failure::local(format!(
                "cannot connect to {}: {error}",
                shown(&target.address)
            ))
        })?;
        let mut connection = Self {
            socket,
            incoming: Incoming::default(),
            received: vec![0; RECEIVE_BYTES].into(),
            begin: 0,
            end: 0,
            cancel_key: None,
        };
        let mut bytes = Vec::new();
        let mut startup = Startup::begin(target.clone(), &mut bytes);
        loop {
            connection.send(&bytes)?;
            bytes.clear();
            let progress = connection.receive(|received| startup.receive(&received, &mut bytes))?;
            match progress {
                Ok(Progress::Wait) => {}
                Ok(Progress::Ready(learned)) => {
                    connection.cancel_key = learned.cancel_key;
                    return Ok(connection);
                }
                Err(error) => {
                    let hint = String::new();
                    return Err(Failure {
                        sqlstate: error.sqlstate,
                        message: error.message,
                        hint,
                    });
                }
            }
        }
    }

    /// Run statements of the simple protocol to their end; rows are passed over.
    ///
    /// # Errors
    /// The server's first error, or a lost connection.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), Failure> {
        self.send_query(sql)?;
        self.until_ready()
    }

    /// Begin a COPY … FROM STDIN.
    ///
    /// # Errors
    /// The server's error, a statement that wants no data, or a lost connection.
    pub fn begin_copy(&mut self, sql: &[u8]) -> Result<(), Failure> {
        self.send_query(sql)?;
        loop {
            match self.event()? {
                Event::CopyIn => return Ok(()),
                Event::Error(failure) => {
                    self.until_ready()?;
                    return Err(failure);
                }
                Event::Ready => {
                    return Err(Failure::local("the statement is no COPY … FROM STDIN"));
                }
                Event::Other => {}
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
        self.until_ready()
    }

    /// Give a COPY up.
    ///
    /// # Errors
    /// Always: at least that the COPY was given up.
    pub fn give_up_copy(&mut self, reason: &str) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        message(&mut bytes, b'f', |body| cstring(body, reason));
        self.send(&bytes)?;
        self.until_ready()
    }

    fn send_query(&mut self, sql: &[u8]) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(sql.len() + 6);
        message(&mut bytes, b'Q', |body| {
            body.extend_from_slice(sql);
            body.push(0);
        });
        self.send(&bytes)
    }

    fn until_ready(&mut self) -> Result<(), Failure> {
        let mut failure = None;
        loop {
            match self.event() {
                Ok(Event::Ready) => return failure.map_or(Ok(()), Err),
                Ok(Event::Error(error)) => failure = failure.or(Some(error)),
                Ok(Event::CopyIn) => {
                    failure = failure.or(Some(Failure::local("a COPY here has no rows")));
                    let mut bytes = Vec::new();
                    message(&mut bytes, b'f', |body| cstring(body, "no rows"));
                    self.send(&bytes)?;
                }
                Ok(Event::Other) => {}
                // After a FATAL error the connection is closed: the server's words say more.
                Err(lost) => return Err(failure.unwrap_or(lost)),
            }
        }
    }

    fn event(&mut self) -> Result<Event, Failure> {
        self.receive(|received| match received {
            Message::Ready(_) => Event::Ready,
            Message::CopyIn => Event::CopyIn,
            Message::Error(error) => Event::Error(Failure {
                sqlstate: Some(error.state()),
                message: error.text(),
                hint: String::from_utf8_lossy(error.hint).into_owned(),
            }),
            _ => Event::Other,
        })
    }

    /// Wait for the next message and look at it.
    fn receive<R>(&mut self, look: impl FnOnce(Message<'_>) -> R) -> Result<R, Failure> {
        loop {
            let mut input = &self.received[self.begin..self.end];
            match self.incoming.next(&mut input, false) {
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

impl Drop for Connection {
    fn drop(&mut self) {
        // A session that is lost cannot be ended in good order; nothing is lost by not knowing.
        let _ = self.socket.write_all(TERMINATE);
    }
}
