//! A connection that blocks, plain or encrypted: for what is not measured (loading, cancel requests).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::socket::{Opened, SocketAddress, check, connect_error};
use crate::clock::now_ns;
use crate::destination::Destination;
use crate::route::{Attempt, AttemptFailure};
use crate::wire::tls::{Channel, Encryption, Security, Step};

/// Bytes read at once.
const RECEIVE_BYTES: usize = 16 << 10;
/// How long to wait when a Unix socket's queue is full.
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// See the module.
pub struct BlockingConnection {
    socket: TcpStream,
    channel: Option<Box<Channel>>,
    received: Box<[u8]>,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    /// Whether another attempt can help.
    pub failure: AttemptFailure,
    /// One line.
    pub message: String,
}

fn unreachable(error: &io::Error) -> ConnectError {
    ConnectError {
        failure: AttemptFailure::Unreachable,
        message: super::reason(error),
    }
}

impl BlockingConnection {
    /// Connect, and secure the connection as the attempt says. `timeout` holds for each step; None waits without limit.
    pub fn open(
        destination: &Destination,
        attempt: Attempt,
        timeout: Option<Duration>,
    ) -> Result<(Self, Option<Security>), ConnectError> {
        let address = &destination.places[attempt.place].address;
        let socket = connect(address, timeout).map_err(|error| unreachable(&error))?;
        let mut connection = Self {
            socket,
            channel: None,
            received: vec![0; RECEIVE_BYTES].into(),
        };
        let security = match destination.setup(attempt.place) {
            Some(setup) if attempt.encryption != Encryption::Plain => {
                let channel = Channel::begin(setup, attempt.encryption);
                let channel = channel.map_err(|failure| ConnectError {
                    failure: AttemptFailure::Tls,
                    message: failure.0,
                })?;
                connection.secure(channel, timeout)?
            }
            _ => None,
        };
        Ok((connection, security))
    }

    /// Let the channel talk until it is secured or says that it need not be.
    fn secure(
        &mut self,
        mut channel: Channel,
        timeout: Option<Duration>,
    ) -> Result<Option<Security>, ConnectError> {
        let io = |error: io::Error| unreachable(&error);
        self.set_timeout(timeout).map_err(io)?;
        let security = loop {
            let sealed = std::mem::take(channel.sealed());
            self.socket.write_all(&sealed).map_err(io)?;
            let count = self.socket.read(&mut self.received).map_err(io)?;
            if count == 0 {
                let message = "the server closed the connection".into();
                return Err(ConnectError {
                    failure: AttemptFailure::Unreachable,
                    message,
                });
            }
            match channel.receive(&self.received[..count]) {
                Ok(Step::Wait | Step::Opened) => {}
                Ok(Step::Plain) => break None,
                Ok(Step::Secured(security)) => break Some(security),
                Err(failure) => {
                    let _ = self.socket.write_all(channel.sealed());
                    return Err(ConnectError {
                        failure: AttemptFailure::Tls,
                        message: failure.0,
                    });
                }
            }
        };
        self.set_timeout(None).map_err(io)?;
        if security.is_some() {
            let sealed = std::mem::take(channel.sealed());
            self.socket.write_all(&sealed).map_err(io)?;
            self.channel = Some(Box::new(channel));
        }
        Ok(security)
    }

    /// How long a read may take; None: without limit.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }
}

impl Read for BlockingConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(channel) = &mut self.channel else {
            return self.socket.read(buffer);
        };
        while channel.opened().is_empty() {
            let count = self.socket.read(&mut self.received)?;
            if count == 0 {
                return Ok(0);
            }
            let step = channel.receive(&self.received[..count]);
            step.map_err(|failure| io::Error::other(failure.0))?;
        }
        let opened = channel.opened();
        let count = opened.len().min(buffer.len());
        buffer[..count].copy_from_slice(&opened[..count]);
        opened.drain(..count);
        Ok(count)
    }
}

impl Write for BlockingConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(channel) = &mut self.channel else {
            return self.socket.write(bytes);
        };
        channel.seal(bytes);
        self.socket.write_all(channel.sealed())?;
        channel.sealed().clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connect within the timeout. The socket blocks afterwards.
fn connect(address: &SocketAddress, timeout: Option<Duration>) -> io::Result<TcpStream> {
    let begin_ns = now_ns();
    let passed = || Duration::from_nanos(now_ns() - begin_ns);
    let left = || timeout.map(|timeout| timeout.saturating_sub(passed()));
    let socket = loop {
        match address.open()? {
            Opened::Connected(socket) => break socket,
            Opened::InProgress(socket) => {
                wait_until_writable(&socket, left())?;
                match connect_error(&socket) {
                    Some(error) => return Err(error),
                    None => break socket,
                }
            }
            Opened::TryLater if left() == Some(Duration::ZERO) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Opened::TryLater => std::thread::sleep(TRY_AGAIN),
        }
    };
    // The standard library's stream sends and receives on any stream socket.
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn wait_until_writable(socket: &OwnedFd, timeout: Option<Duration>) -> io::Result<()> {
    let timeout_ms = timeout.map_or(-1, |timeout| {
        libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX)
    });
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    loop {
        // SAFETY: the pointer is to one variable of ours.
        match check(unsafe { libc::poll(&raw mut poll, 1, timeout_ms) }) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
