//! One thread that answers, over epoll: it has one receive and one send buffer, and its connections.
//!
//! A connection costs some hundred bytes while it is idle. A client that does not read its replies is not read from
//! either: what is left over is kept for it, and epoll tells when it can go on.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::crew::{Done, Inbox, Setting};
use super::misbehaviour::{GARBAGE, Misbehaviour, Moment};
use super::session::{Reply, Session, Stop};
use crate::reactor::check;

const RECEIVE_BYTES: usize = 64 << 10;
const EVENTS_MAX: usize = 512;
/// Token of the eventfd; connections have their slot.
const WAKE_TOKEN: u64 = u64::MAX;
/// Between two bytes of a slow loris.
const DRIP_MS: libc::c_int = 2;

struct Connection {
    socket: OwnedFd,
    session: Session,
    /// Input whose last message is not all there, or that waits until the reply is out.
    pending: Vec<u8>,
    /// What could not be sent yet. While there is any, nothing is read.
    unsent: Vec<u8>,
    /// Close when everything is sent.
    is_last_reply: bool,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Closes,
}

/// One thread's work.
pub struct Worker<'a> {
    inbox: &'a Inbox,
    misbehaviour: Option<Misbehaviour>,
    spins: bool,
    epoll: OwnedFd,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    received: Box<[u8]>,
    reply: Reply<'a>,
    counted: Done,
}

impl<'a> Worker<'a> {
    /// Watch `inbox`.
    pub fn new(inbox: &'a Inbox, setting: &'a Setting) -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor is new and owned from here on.
        let epoll = unsafe {
            let descriptor = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            check(descriptor)?;
            OwnedFd::from_raw_fd(descriptor)
        };
        let worker = Self {
            inbox,
            misbehaviour: setting.misbehaviour,
            spins: setting.spins,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            received: vec![0; RECEIVE_BYTES].into(),
            reply: Reply {
                answers: &setting.answers,
                bytes: Vec::new(),
                statements: 0,
                ready: 0,
            },
            counted: Done::default(),
        };
        worker.watch(
            libc::EPOLL_CTL_ADD,
            inbox.wake_descriptor(),
            libc::EPOLLIN,
            WAKE_TOKEN,
        )?;
        Ok(worker)
    }

    /// Serve until it is stopped.
    pub fn serve(&mut self) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let drips = self.misbehaviour == Some(Misbehaviour::SlowLoris);
        let timeout_ms = match (self.spins, drips) {
            (true, _) => 0,
            (false, true) => DRIP_MS,
            (false, false) => -1,
        };
        while !self.inbox.is_stopped() {
            // SAFETY: pointer and length describe the array.
            let count = unsafe {
                libc::epoll_wait(
                    self.epoll.as_raw_fd(),
                    events.as_mut_ptr(),
                    EVENTS_MAX as libc::c_int,
                    timeout_ms,
                )
            };
            if count < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            for event in &events[..count as usize] {
                match event.u64 {
                    WAKE_TOKEN => self.take_sockets()?,
                    slot => self.on_event(slot as usize, event.events as i32)?,
                }
            }
            if drips {
                self.drip()?;
            }
            self.inbox.publish(&self.counted);
        }
        Ok(())
    }

    fn take_sockets(&mut self) -> io::Result<()> {
        for (number, socket) in self.inbox.take_sockets() {
            if self.misbehaviour == Some(Misbehaviour::CloseAt(Moment::Connect)) {
                self.counted.connections_closed += 1;
                continue;
            }
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            self.watch(
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                libc::EPOLLIN,
                slot as u64,
            )?;
            self.connections[slot] = Some(Box::new(Connection {
                socket,
                session: Session::new(number, self.misbehaviour),
                pending: Vec::new(),
                unsent: Vec::new(),
                is_last_reply: false,
            }));
        }
        Ok(())
    }

    fn on_event(&mut self, slot: usize, events: i32) -> io::Result<()> {
        let Some(mut connection) = self.connections[slot].take() else {
            return Ok(());
        };
        let fate = if events & libc::EPOLLIN != 0 && connection.unsent.is_empty() {
            self.read(&mut connection, slot)?
        } else if events & (libc::EPOLLHUP | libc::EPOLLERR) != 0 {
            Fate::Closes
        } else {
            self.flush(&mut connection, slot)?
        };
        self.keep(slot, connection, fate);
        Ok(())
    }

    fn keep(&mut self, slot: usize, connection: Box<Connection>, fate: Fate) {
        match fate {
            Fate::Stays => self.connections[slot] = Some(connection),
            Fate::Closes => {
                self.counted.connections_closed += 1;
                self.free.push(slot);
            }
        }
    }

    fn read(&mut self, connection: &mut Connection, slot: usize) -> io::Result<Fate> {
        // SAFETY: pointer and length describe the buffer.
        let count = unsafe {
            libc::recv(
                connection.socket.as_raw_fd(),
                self.received.as_mut_ptr().cast(),
                RECEIVE_BYTES,
                0,
            )
        };
        if count <= 0 {
            let would_block =
                count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
            return Ok(if would_block {
                Fate::Stays
            } else {
                Fate::Closes
            });
        }
        let count = count as usize;
        self.counted.received_bytes += count as u64;
        if connection.pending.is_empty() {
            let received = std::mem::take(&mut self.received);
            let result = self.answer(connection, slot, &received[..count]);
            if let Ok((consumed, Fate::Stays)) = result {
                connection
                    .pending
                    .extend_from_slice(&received[consumed..count]);
            }
            self.received = received;
            result.map(|(_, fate)| fate)
        } else {
            connection
                .pending
                .extend_from_slice(&self.received[..count]);
            self.answer_pending(connection, slot)
        }
    }

    fn answer_pending(&mut self, connection: &mut Connection, slot: usize) -> io::Result<Fate> {
        let mut pending = std::mem::take(&mut connection.pending);
        let (consumed, fate) = self.answer(connection, slot, &pending)?;
        if consumed < pending.len() {
            pending.drain(..consumed);
            connection.pending = pending;
        }
        Ok(fate)
    }

    /// Answer all whole messages of `input`, as far as the client takes the replies. How many bytes are done with.
    fn answer(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        input: &[u8],
    ) -> io::Result<(usize, Fate)> {
        let mut consumed = 0;
        loop {
            self.reply.bytes.clear();
            let had_started = connection.session.has_started();
            let progress = connection
                .session
                .receive(&input[consumed..], &mut self.reply);
            consumed += progress.consumed;
            connection.is_last_reply |= progress.stop == Stop::Ended;
            if had_started && self.misbehaviour.is_some() {
                self.spoil(connection);
            }
            // Shown before it is sent: who has an answer finds it in the counts.
            self.counted.statements = self.reply.statements;
            self.counted.ready = self.reply.ready;
            self.inbox.publish(&self.counted);
            let fate = self.send(connection, slot)?;
            if fate == Fate::Closes || progress.stop != Stop::Full || !connection.unsent.is_empty()
            {
                return Ok((consumed, fate));
            }
        }
    }

    /// Change a reply as a bad server would.
    fn spoil(&mut self, connection: &mut Connection) {
        let reply = &mut self.reply.bytes;
        match self.misbehaviour {
            Some(Misbehaviour::HalfMessage) if !reply.is_empty() => {
                // Cut within the last message: ReadyForQuery has six bytes, anything else has more.
                reply.truncate((reply.len() / 2).min(reply.len() - 3).max(1));
                connection.is_last_reply = true;
            }
            Some(Misbehaviour::Garbage) if !reply.is_empty() => {
                reply.clear();
                reply.extend_from_slice(GARBAGE);
            }
            _ => {}
        }
    }

    /// Send the reply; what the client does not take is kept.
    fn send(&mut self, connection: &mut Connection, slot: usize) -> io::Result<Fate> {
        let drips = self.misbehaviour == Some(Misbehaviour::SlowLoris);
        let length = self.reply.bytes.len();
        let sent = if drips || length == 0 {
            0
        } else {
            match send_some(&connection.socket, &self.reply.bytes) {
                Some(count) => count,
                None => return Ok(Fate::Closes),
            }
        };
        self.counted.sent_bytes += sent as u64;
        if sent < length {
            connection
                .unsent
                .extend_from_slice(&self.reply.bytes[sent..]);
            // A dripping server is moved by the clock alone.
            let interest = if drips { 0 } else { libc::EPOLLOUT };
            self.watch(
                libc::EPOLL_CTL_MOD,
                connection.socket.as_raw_fd(),
                interest,
                slot as u64,
            )?;
            return Ok(Fate::Stays);
        }
        Ok(if connection.is_last_reply {
            Fate::Closes
        } else {
            Fate::Stays
        })
    }

    /// Send what was left over; when all of it is out, go on with the input that waited.
    fn flush(&mut self, connection: &mut Connection, slot: usize) -> io::Result<Fate> {
        let Some(sent) = send_some(&connection.socket, &connection.unsent) else {
            return Ok(Fate::Closes);
        };
        self.sent_of_unsent(connection, slot, sent)
    }

    fn sent_of_unsent(
        &mut self,
        connection: &mut Connection,
        slot: usize,
        sent: usize,
    ) -> io::Result<Fate> {
        self.counted.sent_bytes += sent as u64;
        connection.unsent.drain(..sent);
        if !connection.unsent.is_empty() {
            return Ok(Fate::Stays);
        }
        // Its memory is not kept: it may have been a rare large reply.
        connection.unsent = Vec::new();
        if connection.is_last_reply {
            return Ok(Fate::Closes);
        }
        self.watch(
            libc::EPOLL_CTL_MOD,
            connection.socket.as_raw_fd(),
            libc::EPOLLIN,
            slot as u64,
        )?;
        self.answer_pending(connection, slot)
    }

    /// One byte for everybody who waits for one.
    fn drip(&mut self) -> io::Result<()> {
        for slot in 0..self.connections.len() {
            if self.connections[slot]
                .as_ref()
                .is_none_or(|connection| connection.unsent.is_empty())
            {
                continue;
            }
            let Some(mut connection) = self.connections[slot].take() else {
                continue;
            };
            let fate = match send_some(&connection.socket, &connection.unsent[..1]) {
                Some(sent) => self.sent_of_unsent(&mut connection, slot, sent)?,
                None => Fate::Closes,
            };
            self.keep(slot, connection, fate);
        }
        Ok(())
    }

    fn watch(
        &self,
        operation: libc::c_int,
        descriptor: RawFd,
        interest: i32,
        token: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest as u32,
            u64: token,
        };
        // SAFETY: the pointer is to a variable of ours, which the kernel copies.
        check(unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                operation,
                descriptor,
                &raw mut event,
            )
        })
        .map(drop)
    }
}

/// Send without waiting: how many bytes the kernel took; None when the connection is broken.
pub fn send_some(socket: &OwnedFd, bytes: &[u8]) -> Option<usize> {
    // SAFETY: pointer and length describe the slice.
    let count = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    if count >= 0 {
        return Some(count as usize);
    }
    match io::Error::last_os_error().kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Some(0),
        _ => None,
    }
}
