//! Asks the server to give up what it is still doing for sessions nobody waits for any more.

use std::io::{self, Read, Write};
use std::time::Duration;

use super::blocking::BlockingConnection;
use crate::destination::Destination;
use crate::route::Attempt;
use crate::wire::startup::cancel_request;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long all of them may take.
const PATIENCE_FOR_ALL_NS: u64 = 5 * crate::clock::NS_PER_S;

/// What a cancel request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelKey {
    /// How the session was opened; the request goes the same way, encrypted as it is.
    pub attempt: Attempt,
    /// Of the backend.
    pub process_id: i32,
    /// What only the session knows.
    pub secret: Vec<u8>,
}

/// Send a cancel request for each key. Best effort: what fails is left to the server, which notices that its client is
/// gone when it answers.
pub fn cancel_all(destination: &Destination, keys: &[CancelKey]) {
    let begin_ns = crate::clock::now_ns();
    for key in keys {
        if crate::clock::now_ns() - begin_ns > PATIENCE_FOR_ALL_NS {
            return;
        }
        let _ = cancel(destination, key);
    }
}

/// Send one cancel request and wait until the server has seen it: it answers by closing the connection.
pub fn cancel(destination: &Destination, key: &CancelKey) -> io::Result<()> {
    let (mut connection, _) = BlockingConnection::open(destination, key.attempt, Some(PATIENCE))
        .map_err(|error| io::Error::other(error.message))?;
    connection.set_timeout(Some(PATIENCE))?;
    connection.write_all(&cancel_request(key.process_id, &key.secret))?;
    connection.read(&mut [0]).map(drop)
}
