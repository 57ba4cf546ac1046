//! One thread that answers, over io_uring: one system call a batch receives, sends and waits.
//!
//! ```text
//! turn: enter (send all replies, wait) → what could not be sent → what came → replies of the next turn
//! ```
//!
//! Sends do not wait (MSG_DONTWAIT), so they are over when `enter` returns, and only those that fell short tell. A
//! client that does not read its replies is not read from either: its receive is cancelled until it has read. Good
//! servers only; a bad one is slow on purpose, and `worker.rs` is enough for it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};

use super::crew::{Done, Inbox, Setting};
use super::session::{Reply, Session, Stop};
use super::worker::send_some;
use crate::reactor::{BUFFER_GROUP, BufferRing, Ring};

/// Connections the ring and its buffers are made for; more of them share these.
const CONNECTIONS: usize = 1024;
/// A buffer for replies that is larger than this is not kept.
const KEPT_BYTES: usize = 16 << 10;

const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const WRITABLE: u64 = 3;
const CANCEL: u64 = 4;
const WAKE: u64 = 5;

/// Whether input is answered when it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// At once.
    Free,
    /// When the reply is out: it was long enough, and input is left.
    Unfinished,
    /// When the client has taken its reply, which it does not.
    Blocked,
}

/// What is to be done when replies are sent.
enum After {
    /// Wait for what comes.
    Wait,
    /// Close a connection, or answer the rest of its input.
    GoOn,
}

struct Connection {
    socket: OwnedFd,
    session: Session,
    /// Input whose last message is not all there, or that waits until the reply is out.
    pending: Vec<u8>,
    /// What is to be sent, or was sent in the turn before.
    reply: Vec<u8>,
    /// The reply is in `replying` of this turn.
    is_replying: bool,
    flow: Flow,
    /// A receive is under way.
    is_receiving: bool,
    /// Close when everything is sent.
    is_last_reply: bool,
}

/// One thread's work.
pub struct RingWorker<'a> {
    // The ring is dropped before the memory its requests point into.
    ring: Ring,
    buffers: BufferRing,
    inbox: &'a Inbox,
    timeout_ns: Option<u64>,
    connections: Vec<Option<Box<Connection>>>,
    /// By slot: grows when its connection is closed, so that what comes late for it is passed over.
    generations: Vec<u32>,
    free: Vec<usize>,
    desk: Desk<'a>,
    /// Slots whose reply was sent with the last `enter`.
    replied: Vec<usize>,
    completions: Vec<cqueue::Entry>,
    counted: Done,
}

impl<'a> RingWorker<'a> {
    /// Watch `inbox`.
    pub fn new(inbox: &'a Inbox, setting: &'a Setting) -> io::Result<Self> {
        let ring = Ring::new(CONNECTIONS)?;
        let buffers = BufferRing::new(ring.io_uring(), BufferRing::enough_for(CONNECTIONS))?;
        let mut worker = Self {
            ring,
            buffers,
            inbox,
            timeout_ns: setting.spins.then_some(0),
            connections: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            desk: Desk {
                reply: Reply {
                    answers: &setting.answers,
                    bytes: Vec::new(),
                    statements: 0,
                    ready: 0,
                },
                replying: Vec::new(),
            },
            replied: Vec::new(),
            completions: Vec::new(),
            counted: Done::default(),
        };
        worker.watch_inbox()?;
        Ok(worker)
    }

    /// Serve until it is stopped.
    pub fn serve(&mut self) -> io::Result<()> {
        while !self.inbox.is_stopped() {
            let timeout_ns = match self.send_replies()? {
                After::Wait => self.timeout_ns,
                After::GoOn => Some(0),
            };
            let mut completions = std::mem::take(&mut self.completions);
            self.ring.enter(timeout_ns)?;
            self.ring.take_completions(&mut completions);
            while !self.ring.is_all_submitted() {
                self.ring.enter(Some(0))?;
                self.ring.take_completions(&mut completions);
            }
            for entry in completions.iter().filter(|entry| kind(entry) == SEND) {
                self.fell_short(entry)?;
            }
            self.settle_replies()?;
            for entry in completions.drain(..) {
                self.complete(&entry)?;
            }
            self.completions = completions;
            self.buffers.publish();
            // Shown before it is sent: who has an answer finds it in the counts.
            self.counted.statements = self.desk.reply.statements;
            self.counted.ready = self.desk.reply.ready;
            self.inbox.publish(&self.counted);
        }
        Ok(())
    }

    fn push(&mut self, kind: u64, slot: usize, entry: squeue::Entry) -> io::Result<()> {
        let generation = self.generations.get(slot).copied().unwrap_or_default();
        // SAFETY: a send is over when `enter` has submitted it (see the module), and replies are left alone until
        // then; nothing else points to memory.
        unsafe {
            self.ring
                .push(&entry.user_data(key(kind, generation, slot)))
        }
    }

    fn watch_inbox(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(self.inbox.wake_descriptor()), libc::POLLIN as u32);
        self.push(WAKE, 0, entry.build())
    }

    fn take_sockets(&mut self) -> io::Result<()> {
        for (number, socket) in self.inbox.take_sockets() {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.generations.push(0);
                self.connections.len() - 1
            });
            self.connections[slot] = Some(Box::new(Connection {
                socket,
                session: Session::new(number, None),
                pending: Vec::new(),
                reply: Vec::new(),
                is_replying: false,
                flow: Flow::Free,
                is_receiving: false,
                is_last_reply: false,
            }));
            self.receive(slot)?;
        }
        Ok(())
    }

    /// Receive from now on, if that is not so already.
    fn receive(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else {
            return Ok(());
        };
        if std::mem::replace(&mut connection.is_receiving, true) {
            return Ok(());
        }
        let socket = Fd(connection.socket.as_raw_fd());
        self.push(
            RECEIVE,
            slot,
            opcode::RecvMulti::new(socket, BUFFER_GROUP).build(),
        )
    }

    /// Queue a send for every reply. A send that succeeds does not tell, so whoever has to do something afterwards must
    /// not wait for it.
    fn send_replies(&mut self) -> io::Result<After> {
        let mut after = After::Wait;
        std::mem::swap(&mut self.desk.replying, &mut self.replied);
        for index in 0..self.replied.len() {
            let slot = self.replied[index];
            let Some(connection) = &mut self.connections[slot] else {
                continue;
            };
            connection.is_replying = false;
            if connection.is_last_reply || connection.flow == Flow::Unfinished {
                after = After::GoOn;
            }
            let (reply, flags) = (
                &connection.reply,
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL,
            );
            if !reply.is_empty() {
                let socket = Fd(connection.socket.as_raw_fd());
                let send = opcode::Send::new(socket, reply.as_ptr(), reply.len() as u32);
                let entry = send.flags(flags).build();
                self.push(SEND, slot, entry.flags(squeue::Flags::SKIP_SUCCESS))?;
            }
        }
        Ok(after)
    }

    /// A client did not take all of its reply: keep the rest until it can.
    fn fell_short(&mut self, entry: &cqueue::Entry) -> io::Result<()> {
        let Some(slot) = self.slot(entry) else {
            return Ok(());
        };
        let Some(connection) = &mut self.connections[slot] else {
            return Ok(());
        };
        let sent = match (usize::try_from(entry.result()), -entry.result()) {
            (Ok(sent), _) => sent,
            (Err(_), libc::EAGAIN | libc::EINTR) => 0,
            (Err(_), _) => return self.close(slot),
        };
        self.counted.sent_bytes += sent as u64;
        connection.reply.drain(..sent);
        connection.flow = Flow::Blocked;
        let receive = key(RECEIVE, self.generations[slot], slot);
        self.push(CANCEL, slot, opcode::AsyncCancel::new(receive).build())?;
        self.wait_until_writable(slot)
    }

    fn wait_until_writable(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &self.connections[slot] else {
            return Ok(());
        };
        let socket = Fd(connection.socket.as_raw_fd());
        let entry = opcode::PollAdd::new(socket, libc::POLLOUT as u32);
        self.push(WRITABLE, slot, entry.build())
    }

    /// What was sent with the last `enter` and did not fall short is out.
    fn settle_replies(&mut self) -> io::Result<()> {
        let mut replied = std::mem::take(&mut self.replied);
        for slot in replied.drain(..) {
            let is_out = self.connections[slot]
                .as_ref()
                .is_some_and(|connection| connection.flow != Flow::Blocked);
            if is_out {
                self.is_out(slot)?;
            }
        }
        self.replied = replied;
        Ok(())
    }

    /// A reply is out: go on with the input that waited, or close.
    fn is_out(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else {
            return Ok(());
        };
        if connection.is_last_reply {
            return self.close(slot);
        }
        self.counted.sent_bytes += connection.reply.len() as u64;
        connection.reply.clear();
        if connection.reply.capacity() > KEPT_BYTES {
            connection.reply = Vec::new();
        }
        if connection.flow == Flow::Unfinished {
            connection.flow = Flow::Free;
            self.answer_pending(slot)?;
        }
        Ok(())
    }

    /// The slot a completion belongs to; None: it comes late.
    fn slot(&self, entry: &cqueue::Entry) -> Option<usize> {
        let data = entry.user_data();
        let slot = data as u32 as usize;
        let generation = *self.generations.get(slot)?;
        (key(kind(entry), generation, slot) == data).then_some(slot)
    }

    #[inline]
    fn complete(&mut self, entry: &cqueue::Entry) -> io::Result<()> {
        match (kind(entry), self.slot(entry)) {
            (WAKE, _) => {
                self.take_sockets()?;
                self.watch_inbox()?;
            }
            (RECEIVE, Some(slot)) => self.received(slot, entry)?,
            (WRITABLE, Some(slot)) => self.flush(slot)?,
            _ => {}
        }
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            self.buffers.give_back(buffer);
        }
        Ok(())
    }

    fn received(&mut self, slot: usize, entry: &cqueue::Entry) -> io::Result<()> {
        let Some(mut connection) = self.connections[slot].take() else {
            return Ok(());
        };
        connection.is_receiving = cqueue::more(entry.flags());
        let goes_on = match (
            usize::try_from(entry.result()),
            cqueue::buffer_select(entry.flags()),
        ) {
            (Ok(count), Some(buffer)) if count > 0 => {
                self.counted.received_bytes += count as u64;
                let bytes = self.buffers.bytes(buffer, count);
                self.desk.answer(&mut connection, slot, bytes);
                true
            }
            (Ok(_), _) => false,
            // All buffers are in use, or the receive was cancelled: it is armed again when that is over.
            (Err(_), _) => matches!(-entry.result(), libc::ENOBUFS | libc::ECANCELED),
        };
        let is_blocked = connection.flow == Flow::Blocked;
        self.connections[slot] = Some(connection);
        if !goes_on {
            self.close(slot)
        } else if !is_blocked {
            self.receive(slot)
        } else {
            Ok(())
        }
    }

    fn answer_pending(&mut self, slot: usize) -> io::Result<()> {
        if let Some(mut connection) = self.connections[slot].take() {
            self.desk.answer(&mut connection, slot, &[]);
            self.connections[slot] = Some(connection);
        }
        Ok(())
    }

    /// Send what was left over; when all of it is out, go on.
    fn flush(&mut self, slot: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[slot] else {
            return Ok(());
        };
        let Some(sent) = send_some(&connection.socket, &connection.reply) else {
            return self.close(slot);
        };
        self.counted.sent_bytes += sent as u64;
        connection.reply.drain(..sent);
        if !connection.reply.is_empty() {
            return self.wait_until_writable(slot);
        }
        connection.flow = Flow::Unfinished;
        self.receive(slot)?;
        self.is_out(slot)
    }

    fn close(&mut self, slot: usize) -> io::Result<()> {
        if let Some(connection) = self.connections[slot].take() {
            // The ring still holds the socket for its receive: shutting it down ends that, and tells the client.
            // SAFETY: no pointers; an error (not connected) does not matter.
            unsafe { libc::shutdown(connection.socket.as_raw_fd(), libc::SHUT_RDWR) };
            self.generations[slot] = self.generations[slot].wrapping_add(1);
            self.counted.connections_closed += 1;
            self.free.push(slot);
        }
        Ok(())
    }
}

/// What answers need, apart from the ring.
struct Desk<'a> {
    reply: Reply<'a>,
    /// Slots with a reply to be sent.
    replying: Vec<usize>,
}

impl Desk<'_> {
    /// Answer all whole messages of the input, behind what waits already.
    #[inline]
    fn answer(&mut self, connection: &mut Connection, slot: usize, input: &[u8]) {
        let waits = connection.flow != Flow::Free;
        if waits || !connection.pending.is_empty() {
            connection.pending.extend_from_slice(input);
            if !waits {
                let mut pending = std::mem::take(&mut connection.pending);
                let consumed = self.reply_to(connection, slot, &pending);
                pending.drain(..consumed);
                if !pending.is_empty() {
                    connection.pending = pending;
                }
            }
            return;
        }
        let consumed = self.reply_to(connection, slot, input);
        if consumed < input.len() {
            connection.pending.extend_from_slice(&input[consumed..]);
        }
    }

    /// Add to the connection's reply; how many bytes of the input are done with.
    #[inline]
    fn reply_to(&mut self, connection: &mut Connection, slot: usize, input: &[u8]) -> usize {
        std::mem::swap(&mut self.reply.bytes, &mut connection.reply);
        let progress = connection.session.receive(input, &mut self.reply);
        std::mem::swap(&mut self.reply.bytes, &mut connection.reply);
        connection.is_last_reply |= progress.stop == Stop::Ended;
        if progress.stop == Stop::Full {
            connection.flow = Flow::Unfinished;
        }
        let has_something = !connection.reply.is_empty() || connection.is_last_reply;
        if has_something && !std::mem::replace(&mut connection.is_replying, true) {
            self.replying.push(slot);
        }
        progress.consumed
    }
}

/// What a completion belongs to: kind (8 bits), generation of the slot (24), slot (32).
fn key(kind: u64, generation: u32, slot: usize) -> u64 {
    (kind << 56) | (u64::from(generation & 0x00FF_FFFF) << 32) | slot as u64
}

fn kind(entry: &cqueue::Entry) -> u64 {
    entry.user_data() >> 56
}
