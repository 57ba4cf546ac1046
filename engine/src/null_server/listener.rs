//! The addresses of the null server: opening them, waiting for connections and signals, removing them in the end.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::arguments::Listen;
use crate::reactor::check;

/// Connections that may wait to be accepted; the kernel lowers it to its own limit (somaxconn).
const BACKLOG: libc::c_int = 65_535;
/// Accepted in one go, before they are handed out.
const BATCH: usize = 256;
/// How long to leave waiting connections alone when no file descriptor is free.
const PAUSE_MS: libc::c_int = 100;

/// What ended a wait.
pub enum Woken {
    /// Sockets that have been accepted; none after a pause.
    Connections(Vec<OwnedFd>),
    /// SIGUSR1.
    ReportWanted,
    /// SIGINT or SIGTERM.
    EndWanted,
}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

/// All listening sockets and the signals of this process. Dropping it removes the Unix sockets' files.
pub struct Listeners {
    all: Vec<Listener>,
    signals: OwnedFd,
    is_paused: bool,
}

impl Listeners {
    /// Open them all. The signals are blocked in this thread and all it starts, and read here.
    pub fn open(addresses: &[Listen]) -> io::Result<Self> {
        let mut opened = Self {
            all: Vec::new(),
            signals: signal_descriptor()?,
            is_paused: false,
        };
        for address in addresses {
            let listener = Listener::open(address).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot listen on {}: {error}", shown(address)),
                )
            })?;
            opened.all.push(listener);
        }
        Ok(opened)
    }

    /// Each as host and port of a conninfo. A Unix socket of an unusual name has its whole path and no port.
    pub fn addresses(&self) -> Vec<(String, Option<u16>)> {
        self.all.iter().map(Listener::address).collect()
    }

    /// Wait for connections or a signal.
    pub fn wait(&mut self) -> io::Result<Woken> {
        let mut waited = vec![poll_entry(self.signals.as_raw_fd())];
        if !self.is_paused {
            waited.extend(self.all.iter().map(|each| poll_entry(each.descriptor())));
        }
        let timeout_ms = if self.is_paused { PAUSE_MS } else { -1 };
        // SAFETY: pointer and length describe the vector.
        let status = unsafe {
            libc::poll(
                waited.as_mut_ptr(),
                waited.len() as libc::nfds_t,
                timeout_ms,
            )
        };
        if status < 0 {
            let error = io::Error::last_os_error();
            let is_nothing = error.kind() == io::ErrorKind::Interrupted;
            return if is_nothing {
                Ok(Woken::Connections(Vec::new()))
            } else {
                Err(error)
            };
        }
        if waited[0].revents != 0 {
            return self.signal();
        }
        self.is_paused = false;
        let mut accepted = Vec::new();
        for (listener, _) in self
            .all
            .iter()
            .zip(&waited[1..])
            .filter(|(_, entry)| entry.revents != 0)
        {
            if let Err(error) = listener.accept(&mut accepted) {
                match error.raw_os_error() {
                    // Without a free descriptor the queue stays readable: wait instead of turning in circles.
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        self.is_paused = true
                    }
                    Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => {}
                    _ => return Err(error),
                }
            }
        }
        Ok(Woken::Connections(accepted))
    }

    fn signal(&self) -> io::Result<Woken> {
        // SAFETY: signalfd_siginfo is plain data for which zero is valid.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let length = size_of::<libc::signalfd_siginfo>();
        // SAFETY: pointer and length describe a variable of ours.
        let count = unsafe { libc::read(self.signals.as_raw_fd(), (&raw mut info).cast(), length) };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let is_report = info.ssi_signo == libc::SIGUSR1 as u32;
        Ok(if is_report {
            Woken::ReportWanted
        } else {
            Woken::EndWanted
        })
    }
}

impl Listener {
    fn open(address: &Listen) -> io::Result<Self> {
        let listener = match address {
            Listen::Unix(path) => {
                remove_left_over(path)?;
                Self::Unix(UnixListener::bind(path)?, path.clone())
            }
            Listen::Tcp(address) => Self::Tcp(TcpListener::bind(address)?),
        };
        // std listens with a short queue; asking again lengthens it.
        // SAFETY: no pointers.
        check(unsafe { libc::listen(listener.descriptor(), BACKLOG) })?;
        match &listener {
            Self::Unix(socket, _) => socket.set_nonblocking(true)?,
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    fn descriptor(&self) -> RawFd {
        match self {
            Self::Unix(socket, _) => socket.as_raw_fd(),
            Self::Tcp(socket) => socket.as_raw_fd(),
        }
    }

    /// Accept what waits, up to a batch.
    fn accept(&self, accepted: &mut Vec<OwnedFd>) -> io::Result<()> {
        for _ in 0..BATCH {
            accepted.push(match self {
                Self::Unix(socket, _) => {
                    let (stream, _) = socket.accept()?;
                    stream.set_nonblocking(true)?;
                    stream.into()
                }
                Self::Tcp(socket) => {
                    let (stream, _) = socket.accept()?;
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    stream.into()
                }
            });
        }
        Ok(())
    }

    fn address(&self) -> (String, Option<u16>) {
        match self {
            Self::Unix(_, path) => {
                let port = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .and_then(|name| name.strip_prefix(".s.PGSQL."))
                    .and_then(|port| port.parse().ok());
                let host = if port.is_some() {
                    path.parent().unwrap_or(path)
                } else {
                    path
                };
                (host.display().to_string(), port)
            }
            Self::Tcp(socket) => match socket.local_addr() {
                Ok(address) => (address.ip().to_string(), Some(address.port())),
                Err(_) => ("unknown".into(), None),
            },
        }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for listener in &self.all {
            if let Listener::Unix(_, path) = listener {
                // Nothing is lost when it is gone already.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// Remove the socket file of a server that is gone. Anything else at this path is left alone.
fn remove_left_over(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is not a socket",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "a server is listening there",
        )),
    }
}

fn signal_descriptor() -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data that sigemptyset makes valid; the pointers are to variables of ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
            libc::sigaddset(&raw mut set, signal);
        }
        check(libc::pthread_sigmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        ))?;
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(descriptor)?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

fn poll_entry(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    }
}

fn shown(address: &Listen) -> String {
    match address {
        Listen::Unix(path) => path.display().to_string(),
        Listen::Tcp(address) => address.to_string(),
    }
}
