//! Asks the server to give up what it is still doing for clients that were cut off.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::wire::conninfo::Address;
use crate::wire::startup::cancel_request;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long all of them may take.
const PATIENCE_FOR_ALL_NS: u64 = 5 * crate::clock::NS_PER_S;

/// Send a cancel request for each key (process id and secret). Best effort: what fails is left to the server, which
/// notices that its client is gone when it answers.
pub fn cancel_all(address: &Address, keys: &[(i32, Vec<u8>)]) {
    let begin_ns = crate::clock::now_ns();
    for (process_id, secret) in keys {
        if crate::clock::now_ns() - begin_ns > PATIENCE_FOR_ALL_NS {
            return;
        }
        let _ = cancel(address, &cancel_request(*process_id, secret));
    }
}

fn cancel(address: &Address, request: &[u8]) -> io::Result<()> {
    match address {
        Address::Unix(path) => {
            let stream = connect_unix(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            ask(stream, request)
        }
        Address::Tcp(host, port) => {
            let first = (host.as_str(), *port).to_socket_addrs()?.next();
            let stream =
                TcpStream::connect_timeout(&first.ok_or(io::ErrorKind::NotFound)?, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            ask(stream, request)
        }
    }
}

fn connect_unix(path: &std::path::Path) -> io::Result<UnixStream> {
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => {
            let name = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)?;
            UnixStream::connect_addr(&name)
        }
        None => UnixStream::connect(path),
    }
}

/// The server answers a cancel request by closing the connection.
fn ask(mut stream: impl Read + Write, request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    stream.read(&mut [0]).map(drop)
}
