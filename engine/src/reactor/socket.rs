//! Opening sockets that never block, on Unix and TCP addresses; shared by both reactors.

use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use crate::wire::target::{Address, SocketOptions};

/// An address as the kernel takes it.
#[derive(Clone)]
pub struct SocketAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
    options: SocketOptions,
    required_peer: Option<libc::uid_t>,
}

/// How opening a socket went.
pub enum Opened {
    /// The connection is there.
    Connected(OwnedFd),
    /// It becomes writable when it is there or has failed.
    InProgress(OwnedFd),
    /// The listener's queue is full (Unix sockets only).
    TryLater,
}

impl SocketAddress {
    /// All addresses of a target, in the order to try them. Looking up a name may take its time.
    pub fn resolve(address: &Address) -> io::Result<Vec<Self>> {
        match address {
            Address::Unix(path) => Ok(vec![Self::unix(path.as_os_str().as_bytes())?]),
            Address::Tcp(host, port) => {
                let found: Vec<_> = (host.as_str(), *port)
                    .to_socket_addrs()?
                    .map(Self::tcp)
                    .collect();
                if found.is_empty() {
                    return Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        "the name has no address",
                    ));
                }
                Ok(found)
            }
        }
    }

    fn unix(path: &[u8]) -> io::Result<Self> {
        let mut name = libc::sockaddr_un {
            sun_family: libc::AF_UNIX as libc::sa_family_t,
            sun_path: [0; 108],
        };
        if path.len() >= name.sun_path.len() {
            let message = format!(
                "the socket's path is longer than {} bytes",
                name.sun_path.len() - 1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for (to, &from) in name.sun_path.iter_mut().zip(path) {
            *to = from as libc::c_char;
        }
        let abstract_name = path.first() == Some(&b'@');
        if abstract_name {
            name.sun_path[0] = 0;
        }
        let length = size_of::<libc::sa_family_t>() + path.len() + usize::from(!abstract_name);
        Ok(Self::from_raw(&name, length))
    }

    fn tcp(address: std::net::SocketAddr) -> Self {
        match address {
            std::net::SocketAddr::V4(v4) => {
                // SAFETY: sockaddr_in is plain data for which zero is valid.
                let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                Self::from_raw(&raw, size_of::<libc::sockaddr_in>())
            }
            std::net::SocketAddr::V6(v6) => {
                // SAFETY: sockaddr_in6 is plain data for which zero is valid.
                let mut raw: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                raw.sin6_scope_id = v6.scope_id();
                Self::from_raw(&raw, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    fn from_raw<T>(raw: &T, length: usize) -> Self {
        // SAFETY: sockaddr_storage is plain data, and at least as large and as aligned as every sockaddr.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: both are plain data; `T` is a sockaddr, which fits.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(raw).cast::<u8>(),
                (&raw mut storage).cast(),
                size_of::<T>(),
            )
        };
        Self {
            storage,
            length: length as libc::socklen_t,
            options: SocketOptions::default(),
            required_peer: None,
        }
    }

    /// The same address, with these options for its TCP connections, and for a Unix socket the user who must own the
    /// server.
    pub fn with(self, options: SocketOptions, required_peer: Option<libc::uid_t>) -> Self {
        Self {
            options,
            required_peer,
            ..self
        }
    }

    /// Options before a connect, as far as the family has them.
    fn prepare(&self, socket: &OwnedFd) -> io::Result<()> {
        if self.family() == libc::AF_UNIX {
            return Ok(());
        }
        // Small messages must leave at once.
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        let SocketOptions {
            keepalives,
            keepalives_idle_s,
            keepalives_interval_s,
            keepalives_count,
            user_timeout_ms,
        } = self.options;
        if keepalives {
            set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
            for (name, value) in [
                (libc::TCP_KEEPIDLE, keepalives_idle_s),
                (libc::TCP_KEEPINTVL, keepalives_interval_s),
                (libc::TCP_KEEPCNT, keepalives_count),
            ] {
                value.map_or(Ok(()), |value| {
                    set_option(socket, libc::IPPROTO_TCP, name, value)
                })?;
            }
        }
        user_timeout_ms.map_or(Ok(()), |value| {
            set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, value)
        })
    }

    /// Whether the process at the other end is the required user's.
    fn check_peer(&self, socket: &OwnedFd) -> io::Result<()> {
        let Some(required) = self
            .required_peer
            .filter(|_| self.family() == libc::AF_UNIX)
        else {
            return Ok(());
        };
        let mut peer = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: both pointers are to variables of ours of the given length.
        check(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut length,
            )
        })?;
        if peer.uid == required {
            return Ok(());
        }
        Err(io::Error::other(
            "the socket's server belongs to another user than requirepeer",
        ))
    }

    fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    /// Open a socket and begin to connect it.
    pub fn open(&self) -> io::Result<Opened> {
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let raw = check(unsafe { libc::socket(self.family(), kind, 0) })?;
        // SAFETY: the descriptor is new and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        self.prepare(&socket)?;
        // SAFETY: the pointer and length describe our own address.
        let status = unsafe { libc::connect(raw, (&raw const self.storage).cast(), self.length) };
        match check(status) {
            Ok(_) => self.check_peer(&socket).map(|()| Opened::Connected(socket)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINPROGRESS | libc::EINTR) => Ok(Opened::InProgress(socket)),
                Some(libc::EAGAIN) => Ok(Opened::TryLater),
                _ => Err(error),
            },
        }
    }
}

/// Set one option that is a number.
fn set_option(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: u32,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer and length describe `value`.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(status).map(drop)
}

/// The error a connect in progress ended with; None: it is connected.
pub fn connect_error(socket: &OwnedFd) -> Option<io::Error> {
    let mut code: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are to variables of ours of the given length.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut code).cast(),
            &raw mut length,
        )
    };
    match check(status) {
        Err(error) => Some(error),
        Ok(_) => (code != 0).then(|| io::Error::from_raw_os_error(code)),
    }
}

/// Send what the socket takes now, without waiting and without a signal when it is closed.
pub fn send_now(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the pointer and length describe `bytes`.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            flags,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receive what is there, without waiting; 0: the other side closed.
pub fn receive_now(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `buffer`.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// What an error of the system means, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error")
        .map_or(text.clone(), |(words, _)| words.to_string())
}

/// -1 becomes the error it stands for.
pub fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_unix_socket_connects_at_once() {
        let path = std::env::temp_dir().join(format!("pgdyno-socket-test-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let address = &SocketAddress::resolve(&Address::Unix(path.clone())).unwrap()[0];
        assert!(matches!(address.open(), Ok(Opened::Connected(_))));
        drop(listener);
        assert_eq!(
            io::ErrorKind::ConnectionRefused,
            address.open().err().unwrap().kind()
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            io::ErrorKind::NotFound,
            address.open().err().unwrap().kind()
        );
    }

    #[test]
    fn a_refused_tcp_connection_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = &SocketAddress::resolve(&Address::Tcp("127.0.0.1".into(), port)).unwrap()[0];
        assert!(matches!(
            address.open(),
            Ok(Opened::InProgress(_) | Opened::Connected(_))
        ));
    }

    #[test]
    fn a_reason_has_no_number() {
        assert_eq!(
            "Connection refused",
            reason(&io::Error::from_raw_os_error(libc::ECONNREFUSED))
        );
        assert_eq!("own words", reason(&io::Error::other("own words")));
    }

    #[test]
    fn a_path_that_is_too_long_is_refused() {
        let path = Address::Unix(format!("/{}", "x".repeat(200)).into());
        assert_eq!(
            io::ErrorKind::InvalidInput,
            SocketAddress::resolve(&path).err().unwrap().kind()
        );
    }
}
