//! Moves bytes between sockets and clients: io_uring or epoll behind one trait.
//!
//! The files of this folder are the only ones that make system calls for sockets. A reactor belongs to one worker
//! thread and knows its connections by slot (0 to `slots` − 1). One turn of a worker is:
//!
//! ```text
//! reactor.send(slot, …) for every client with bytes   → nothing is awaited
//! reactor.wait(deadline, …)                           → everything that happened, in one batch
//! ```
//!
//! What a client hands to `send` must not be lost when it writes more before the first part is out: buffers are
//! swapped, never copied, and a slot whose last buffer is still being sent says so (`Sending::Busy`); the worker
//! offers again on the next event of that slot.

mod blocking;
mod cancel;
mod epoll;
mod probe;
mod ring;
mod socket;
#[cfg(test)]
mod tests;
mod uring;
mod uring_buffers;
mod waker;

use std::io;

use crate::plan::Receive;

pub use blocking::{BlockingConnection, ConnectError};
pub use cancel::{CancelKey, cancel, cancel_all};
pub use epoll::EpollReactor;
pub use probe::{ReactorKind, choose};
pub use ring::Ring;
pub use socket::{SocketAddress, check, reason};
pub use uring::UringReactor;
pub use uring_buffers::{BUFFER_GROUP, BufferRing};
pub use waker::Waker;

/// Something that happened to a connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is open.
    Connected,
    /// It could not be opened.
    ConnectFailed(io::Error),
    /// Bytes came; they are only here during the call.
    Received(&'a [u8]),
    /// Everything handed to `send` is out.
    Sent,
    /// The other side closed, or the connection broke.
    Closed(Option<io::Error>),
}

/// What became of an offer to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The buffer was taken; an empty one is in its place.
    Taken,
    /// An earlier buffer is still on its way; `Event::Sent` will come.
    Busy,
}

/// How a connect began.
#[derive(Debug)]
pub enum Connecting {
    /// `Connected` or `ConnectFailed` will come.
    Begun,
    /// The server's queue of connections is full: try again a little later.
    TryLater,
}

/// Classes of batch sizes: none, 1, 2–3, 4–7, … and at the end all larger ones.
const BATCH_CLASSES: usize = 14;

/// Turns and completions, for the batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Calls of `wait`.
    pub loops: u64,
    /// Events handed out.
    pub events: u64,
    /// Calls of `wait` by how many events they handed out, in powers of two.
    pub batch_sizes: [u64; BATCH_CLASSES],
}

impl Activity {
    /// One more call of `wait`, which handed out `events`.
    #[inline]
    fn turned(&mut self, events: u64) {
        self.loops += 1;
        self.events += events;
        let class = (u64::BITS - events.leading_zeros()) as usize;
        self.batch_sizes[class.min(BATCH_CLASSES - 1)] += 1;
    }
}

/// What a reactor is made for.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// It serves connections 0 to `slots` − 1.
    pub slots: usize,
    /// How io_uring receives.
    pub receive: Receive,
}

/// Moves the bytes of one worker's connections.
pub trait Reactor: Sized {
    /// Make one that is woken by `waker`.
    fn new(setting: &Setting, waker: &Waker) -> io::Result<Self>;

    /// Begin to connect `slot`.
    fn connect(&mut self, slot: usize, address: &SocketAddress) -> io::Result<Connecting>;

    /// Send `bytes`, which must not be empty.
    fn send(&mut self, slot: usize, bytes: &mut Vec<u8>) -> Sending;

    /// Wait for events until `timeout_ns` have passed (None: without limit) or the waker wakes; hand out all there are.
    /// `slot` in the handler is the one the event belongs to. Bytes the handler wants sent go to `send` afterwards.
    fn wait(
        &mut self,
        timeout_ns: Option<u64>,
        handler: &mut dyn FnMut(usize, Event<'_>),
    ) -> io::Result<()>;

    /// Close `slot`, after a last message that may or may not get out. No event comes for it any more.
    fn close(&mut self, slot: usize, farewell: &[u8]);

    /// Work done so far.
    fn activity(&self) -> Activity;
}
