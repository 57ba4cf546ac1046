//! The reactor over io_uring: one `io_uring_enter` for each turn submits the whole batch and waits for the next one.
//!
//! Receives are multishot into a ring of provided buffers, so a waiting connection costs no buffer and no submission.
//! Small sends are copied into memory that stays where it is for as long as the ring lives, and report nothing when
//! they succeed: an answer of the server is proof enough. Large ones keep their buffer until the kernel is done.
//!
//! A completion names its request in 64 bits: operation (8), generation of the slot (24), slot (32). The generation
//! grows when a slot is closed, so that what comes late for the old connection is passed over.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};

use super::ring::Ring;
use super::socket::{Opened, SocketAddress, connect_error, send_now};
use super::uring_buffers::{BUFFER_BYTES, BUFFER_GROUP, BufferRing};
use super::{Activity, Connecting, Event, Reactor, Sending, Setting, Waker};
use crate::plan::Receive;

/// Sends up to this size are copied, larger ones keep their buffer.
const SMALL_SEND_BYTES: usize = 2048;

const OPERATION_RECEIVE: u64 = 1;
const OPERATION_SEND_SMALL: u64 = 2;
const OPERATION_SEND_LARGE: u64 = 3;
const OPERATION_CONNECT: u64 = 4;
const OPERATION_WAKE: u64 = 5;

/// See the module.
pub struct UringReactor {
    // The ring is dropped before the memory its requests point into.
    ring: Ring,
    buffers: BufferRing,
    slots: Vec<Slot>,
    waker: Waker,
    waker_armed: bool,
    /// Buffers of large sends that were under way when their connection was closed.
    retired: Vec<Vec<u8>>,
    /// Slots whose receive must be armed again, and connects that were done at once.
    rearm: Vec<usize>,
    connected: Vec<usize>,
    /// Slots whose send could not even be queued.
    broken: Vec<(usize, io::Error)>,
    receive: Receive,
    activity: Activity,
    /// Events handed out in this turn.
    events: u64,
}

#[derive(Default)]
struct Slot {
    socket: Option<OwnedFd>,
    generation: u32,
    small: Box<[u8]>,
    large: Vec<u8>,
    large_sent: usize,
    sending_large: bool,
}

/// What a completion belongs to.
fn key(operation: u64, generation: u32, slot: usize) -> u64 {
    (operation << 56) | (u64::from(generation & 0x00FF_FFFF) << 32) | slot as u64
}

impl UringReactor {
    /// With this many receive buffers, a power of two.
    pub(super) fn with_buffers(
        setting: &Setting,
        waker: &Waker,
        buffers: usize,
    ) -> io::Result<Self> {
        let slots = setting.slots;
        let ring = Ring::new(slots)?;
        let buffers = BufferRing::new(ring.io_uring(), buffers)?;
        Ok(Self {
            ring,
            buffers,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            waker: waker.clone(),
            waker_armed: false,
            retired: Vec::new(),
            rearm: Vec::with_capacity(slots),
            connected: Vec::with_capacity(slots),
            broken: Vec::new(),
            receive: setting.receive,
            activity: Activity::default(),
            events: 0,
        })
    }

    /// Queue a request.
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what the entry points to lives in `slots` or `buffers` and outlives the ring; see `send`.
        unsafe { self.ring.push(entry) }
    }

    fn raw_socket(&self, slot: usize) -> Option<Fd> {
        self.slots[slot]
            .socket
            .as_ref()
            .map(|socket| Fd(socket.as_raw_fd()))
    }

    fn arm_receive(&mut self, slot: usize) -> io::Result<()> {
        let Some(socket) = self.raw_socket(slot) else {
            return Ok(());
        };
        let data = key(OPERATION_RECEIVE, self.slots[slot].generation, slot);
        let entry = match self.receive {
            Receive::Multishot => opcode::RecvMulti::new(socket, BUFFER_GROUP).build(),
            Receive::Oneshot => {
                opcode::Recv::new(socket, std::ptr::null_mut(), BUFFER_BYTES as u32)
                    .buf_group(BUFFER_GROUP)
                    .build()
                    .flags(squeue::Flags::BUFFER_SELECT)
            }
        };
        self.push(&entry.user_data(data))
    }

    fn arm_waker(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(self.waker.raw()), libc::POLLIN as u32).build();
        self.waker_armed = true;
        self.push(&entry.user_data(key(OPERATION_WAKE, 0, 0)))
    }

    /// Queue what is left of a large send.
    fn push_large(&mut self, slot: usize) -> io::Result<()> {
        let Some(socket) = self.raw_socket(slot) else {
            return Ok(());
        };
        let entry = &self.slots[slot];
        let rest = &entry.large[entry.large_sent..];
        let send = opcode::Send::new(socket, rest.as_ptr(), rest.len().min(1 << 30) as u32)
            .flags(libc::MSG_NOSIGNAL);
        let data = key(OPERATION_SEND_LARGE, entry.generation, slot);
        self.push(&send.build().user_data(data))
    }

    /// Hand out one completion.
    fn complete(&mut self, entry: &cqueue::Entry, handler: &mut dyn FnMut(usize, Event<'_>)) {
        let data = entry.user_data();
        let (operation, generation, slot) = (
            data >> 56,
            (data >> 32) as u32 & 0x00FF_FFFF,
            data as u32 as usize,
        );
        if operation == OPERATION_WAKE {
            self.waker.clear();
            self.waker_armed = false;
            return;
        }
        let buffer = cqueue::buffer_select(entry.flags());
        if self.slots[slot].generation & 0x00FF_FFFF == generation
            && self.slots[slot].socket.is_some()
        {
            self.events += 1;
            match operation {
                OPERATION_RECEIVE => self.received(slot, entry, handler),
                OPERATION_CONNECT => self.finish_connect(slot, handler),
                _ => self.finish_send(slot, operation, entry.result(), handler),
            }
        }
        if let Some(buffer) = buffer {
            self.buffers.give_back(buffer);
        }
    }

    fn received(
        &mut self,
        slot: usize,
        entry: &cqueue::Entry,
        handler: &mut dyn FnMut(usize, Event<'_>),
    ) {
        let result = entry.result();
        match (
            usize::try_from(result),
            cqueue::buffer_select(entry.flags()),
        ) {
            (Ok(0), _) => return handler(slot, Event::Closed(None)),
            (Ok(count), Some(buffer)) => {
                handler(slot, Event::Received(self.buffers.bytes(buffer, count)))
            }
            (Ok(_), None) => {
                return handler(
                    slot,
                    Event::Closed(Some(io::Error::other("a receive had no buffer"))),
                );
            }
            // All buffers are in use: they come back at the end of this turn, and the receive is armed again.
            (Err(_), _) if result == -libc::ENOBUFS => {}
            (Err(_), _) => {
                return handler(
                    slot,
                    Event::Closed(Some(io::Error::from_raw_os_error(-result))),
                );
            }
        }
        if !cqueue::more(entry.flags()) {
            self.rearm.push(slot);
        }
    }

    fn finish_connect(&mut self, slot: usize, handler: &mut dyn FnMut(usize, Event<'_>)) {
        let failed = self.slots[slot].socket.as_ref().and_then(connect_error);
        match failed {
            Some(error) => {
                self.slots[slot].socket = None;
                handler(slot, Event::ConnectFailed(error));
            }
            None => {
                self.rearm.push(slot);
                handler(slot, Event::Connected);
            }
        }
    }

    fn finish_send(
        &mut self,
        slot: usize,
        operation: u64,
        result: i32,
        handler: &mut dyn FnMut(usize, Event<'_>),
    ) {
        let Ok(sent) = usize::try_from(result) else {
            self.slots[slot].sending_large = false;
            return handler(
                slot,
                Event::Closed(Some(io::Error::from_raw_os_error(-result))),
            );
        };
        if operation == OPERATION_SEND_SMALL {
            return;
        }
        let entry = &mut self.slots[slot];
        entry.large_sent += sent;
        if entry.large_sent < entry.large.len() {
            if let Err(error) = self.push_large(slot) {
                handler(slot, Event::Closed(Some(error)));
            }
            return;
        }
        entry.sending_large = false;
        entry.large.clear();
        handler(slot, Event::Sent);
    }
}

impl Reactor for UringReactor {
    fn new(setting: &Setting, waker: &Waker) -> io::Result<Self> {
        Self::with_buffers(setting, waker, BufferRing::enough_for(setting.slots))
    }

    fn connect(&mut self, slot: usize, address: &SocketAddress) -> io::Result<Connecting> {
        let (socket, connected) = match address.open()? {
            Opened::TryLater => return Ok(Connecting::TryLater),
            Opened::Connected(socket) => (socket, true),
            Opened::InProgress(socket) => (socket, false),
        };
        let raw: RawFd = socket.as_raw_fd();
        let entry = &mut self.slots[slot];
        entry.socket = Some(socket);
        if entry.small.is_empty() {
            entry.small = vec![0; SMALL_SEND_BYTES].into_boxed_slice();
        }
        if connected {
            self.connected.push(slot);
        } else {
            let data = key(OPERATION_CONNECT, entry.generation, slot);
            self.push(
                &opcode::PollAdd::new(Fd(raw), libc::POLLOUT as u32)
                    .build()
                    .user_data(data),
            )?;
        }
        Ok(Connecting::Begun)
    }

    /// A client sends again only when the server has answered what was sent before, so one small buffer is enough;
    /// a server that answers too early can garble what it is sent, and nothing else.
    fn send(&mut self, slot: usize, bytes: &mut Vec<u8>) -> Sending {
        let Some(socket) = self.raw_socket(slot) else {
            bytes.clear();
            return Sending::Taken;
        };
        let entry = &mut self.slots[slot];
        if entry.sending_large {
            return Sending::Busy;
        }
        let pushed = if bytes.len() <= SMALL_SEND_BYTES {
            entry.small[..bytes.len()].copy_from_slice(bytes);
            let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
            let send = opcode::Send::new(socket, entry.small.as_ptr(), bytes.len() as u32)
                .flags(flags)
                .build();
            let data = key(OPERATION_SEND_SMALL, entry.generation, slot);
            bytes.clear();
            self.push(&send.flags(squeue::Flags::SKIP_SUCCESS).user_data(data))
        } else {
            entry.large.clear();
            std::mem::swap(&mut entry.large, bytes);
            (entry.large_sent, entry.sending_large) = (0, true);
            self.push_large(slot)
        };
        if let Err(error) = pushed {
            self.broken.push((slot, error));
        }
        Sending::Taken
    }

    fn wait(
        &mut self,
        timeout_ns: Option<u64>,
        handler: &mut dyn FnMut(usize, Event<'_>),
    ) -> io::Result<()> {
        self.events = 0;
        if !self.waker_armed {
            self.arm_waker()?;
        }
        let at_once = !self.connected.is_empty() || !self.broken.is_empty();
        for (slot, error) in self.broken.drain(..) {
            handler(slot, Event::Closed(Some(error)));
        }
        for index in 0..self.connected.len() {
            let slot = self.connected[index];
            self.events += 1;
            self.arm_receive(slot)?;
            handler(slot, Event::Connected);
        }
        self.connected.clear();
        self.ring
            .enter(if at_once { Some(0) } else { timeout_ns })?;
        while let Some(entry) = self.ring.completion() {
            self.complete(&entry, handler);
        }
        self.buffers.publish();
        for index in 0..self.rearm.len() {
            self.arm_receive(self.rearm[index])?;
        }
        self.rearm.clear();
        self.activity.turned(self.events);
        Ok(())
    }

    fn close(&mut self, slot: usize, farewell: &[u8]) {
        let entry = &mut self.slots[slot];
        let Some(socket) = entry.socket.take() else {
            return;
        };
        if !entry.sending_large && !farewell.is_empty() {
            let _ = send_now(&socket, farewell);
        }
        // The ring still holds the socket for its receive: shutting it down ends that, and tells the server.
        // SAFETY: no pointers; an error (not connected) does not matter.
        unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
        if std::mem::take(&mut entry.sending_large) {
            self.retired.push(std::mem::take(&mut entry.large));
        }
        entry.generation = entry.generation.wrapping_add(1);
        self.rearm.retain(|&other| other != slot);
        self.connected.retain(|&other| other != slot);
    }

    fn activity(&self) -> Activity {
        self.activity
    }
}
