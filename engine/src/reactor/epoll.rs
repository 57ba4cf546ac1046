//! The reactor over epoll: works on every Linux. One `epoll_wait` for a batch, one `recv` and one `send` for each answer.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::socket::{Opened, SocketAddress, check, connect_error, receive_now, send_now};
use super::{Activity, Connecting, Event, Reactor, Sending, Setting, Waker};

/// Events taken from the kernel at once.
const BATCH: usize = 512;
/// Bytes received at once; larger results come in several events.
const RECEIVE_BYTES: usize = 64 << 10;
/// What stands for the waker where a slot would stand.
const WAKER_KEY: u64 = u64::MAX;

/// See the module.
pub struct EpollReactor {
    poll: OwnedFd,
    waker: Waker,
    slots: Vec<Slot>,
    ready: Vec<libc::epoll_event>,
    buffer: Vec<u8>,
    /// Slots with something to tell that needs no waiting: a connect that was done at once, an error while sending.
    told: Vec<(usize, Told)>,
    activity: Activity,
}

enum Told {
    Connected,
    Sent,
    Closed(io::Error),
}

#[derive(Default)]
struct Slot {
    socket: Option<OwnedFd>,
    connecting: bool,
    /// What the socket did not take at once, from `sent` on.
    sending: Vec<u8>,
    sent: usize,
}

impl Slot {
    fn busy(&self) -> bool {
        self.sent < self.sending.len()
    }

    /// Send as much as goes; true when all is out.
    fn push(&mut self) -> io::Result<bool> {
        let Some(socket) = &self.socket else {
            return Ok(true);
        };
        while self.sent < self.sending.len() {
            match send_now(socket, &self.sending[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sending.clear();
        self.sent = 0;
        Ok(true)
    }
}

impl EpollReactor {
    fn control(
        &self,
        operation: libc::c_int,
        socket: RawFd,
        key: u64,
        events: libc::c_int,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: key,
        };
        // SAFETY: the pointer is to a variable of ours.
        check(unsafe { libc::epoll_ctl(self.poll.as_raw_fd(), operation, socket, &raw mut event) })
            .map(drop)
    }

    fn watch(&self, slot: usize, operation: libc::c_int, events: libc::c_int) -> io::Result<()> {
        let socket = self.slots[slot].socket.as_ref().map(AsRawFd::as_raw_fd);
        socket.map_or(Ok(()), |socket| {
            self.control(operation, socket, slot as u64, events)
        })
    }

    /// Hand out what is known without asking the kernel.
    fn tell(&mut self, handler: &mut dyn FnMut(usize, Event<'_>)) {
        for (slot, told) in self.told.drain(..) {
            handler(
                slot,
                match told {
                    Told::Connected => Event::Connected,
                    Told::Sent => Event::Sent,
                    Told::Closed(error) => Event::Closed(Some(error)),
                },
            );
        }
    }

    /// A socket in progress can be written to: it is connected, or it is not.
    fn finish_connect(&mut self, slot: usize, handler: &mut dyn FnMut(usize, Event<'_>)) {
        let entry = &mut self.slots[slot];
        entry.connecting = false;
        let failed = entry.socket.as_ref().and_then(connect_error);
        let failed = failed.or_else(|| self.watch(slot, libc::EPOLL_CTL_MOD, libc::EPOLLIN).err());
        match failed {
            Some(error) => {
                self.slots[slot].socket = None;
                handler(slot, Event::ConnectFailed(error));
            }
            None => handler(slot, Event::Connected),
        }
    }

    /// The socket takes bytes again.
    fn finish_send(&mut self, slot: usize, handler: &mut dyn FnMut(usize, Event<'_>)) {
        match self.slots[slot].push() {
            Ok(false) => {}
            Ok(true) => match self.watch(slot, libc::EPOLL_CTL_MOD, libc::EPOLLIN) {
                Ok(()) => handler(slot, Event::Sent),
                Err(error) => handler(slot, Event::Closed(Some(error))),
            },
            Err(error) => handler(slot, Event::Closed(Some(error))),
        }
    }

    /// Receive once: with a level-triggered interest what is left shows up in the next turn.
    fn receive(&mut self, slot: usize, handler: &mut dyn FnMut(usize, Event<'_>)) {
        let Some(socket) = &self.slots[slot].socket else {
            return;
        };
        match receive_now(socket, &mut self.buffer) {
            Ok(0) => handler(slot, Event::Closed(None)),
            Ok(count) => handler(slot, Event::Received(&self.buffer[..count])),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => handler(slot, Event::Closed(Some(error))),
        }
    }
}

impl Reactor for EpollReactor {
    fn new(setting: &Setting, waker: &Waker) -> io::Result<Self> {
        let slots = setting.slots;
        // SAFETY: no pointers.
        let raw = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let reactor = Self {
            // SAFETY: the descriptor is new and nobody else's.
            poll: unsafe { OwnedFd::from_raw_fd(raw) },
            waker: waker.clone(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            ready: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH],
            buffer: vec![0; RECEIVE_BYTES],
            told: Vec::with_capacity(slots.min(BATCH)),
            activity: Activity::default(),
        };
        reactor.control(libc::EPOLL_CTL_ADD, waker.raw(), WAKER_KEY, libc::EPOLLIN)?;
        Ok(reactor)
    }

    fn connect(&mut self, slot: usize, address: &SocketAddress) -> io::Result<Connecting> {
        let (socket, connecting, events) = match address.open()? {
            Opened::TryLater => return Ok(Connecting::TryLater),
            Opened::Connected(socket) => (socket, false, libc::EPOLLIN),
            Opened::InProgress(socket) => (socket, true, libc::EPOLLOUT),
        };
        self.slots[slot] = Slot {
            socket: Some(socket),
            connecting,
            ..Slot::default()
        };
        self.watch(slot, libc::EPOLL_CTL_ADD, events)?;
        if !connecting {
            self.told.push((slot, Told::Connected));
        }
        Ok(Connecting::Begun)
    }

    fn send(&mut self, slot: usize, bytes: &mut Vec<u8>) -> Sending {
        let entry = &mut self.slots[slot];
        if entry.busy() {
            return Sending::Busy;
        }
        entry.sending.clear();
        std::mem::swap(&mut entry.sending, bytes);
        entry.sent = 0;
        let told = match entry.push() {
            Ok(true) => Some(Told::Sent),
            Ok(false) => self
                .watch(slot, libc::EPOLL_CTL_MOD, libc::EPOLLIN | libc::EPOLLOUT)
                .err()
                .map(Told::Closed),
            Err(error) => Some(Told::Closed(error)),
        };
        match told {
            // Nobody waits for the news that everything went out at once.
            None | Some(Told::Sent) => {}
            Some(told) => self.told.push((slot, told)),
        }
        Sending::Taken
    }

    fn wait(
        &mut self,
        timeout_ns: Option<u64>,
        handler: &mut dyn FnMut(usize, Event<'_>),
    ) -> io::Result<()> {
        let mut happened = self.told.len() as u64;
        let timeout = if self.told.is_empty() {
            timeout_ns
        } else {
            Some(0)
        };
        self.tell(handler);
        let count = match wait_for(self.poll.as_raw_fd(), &mut self.ready, timeout) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        for index in 0..count {
            let libc::epoll_event { events, u64: key } = self.ready[index];
            if key == WAKER_KEY {
                self.waker.clear();
                continue;
            }
            happened += 1;
            let slot = key as usize;
            let events = events as libc::c_int;
            if self.slots[slot].connecting {
                self.finish_connect(slot, handler);
                continue;
            }
            if events & libc::EPOLLOUT != 0 && self.slots[slot].busy() {
                self.finish_send(slot, handler);
            }
            if events & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) != 0 {
                self.receive(slot, handler);
            }
        }
        self.activity.turned(happened);
        Ok(())
    }

    fn close(&mut self, slot: usize, farewell: &[u8]) {
        let entry = std::mem::take(&mut self.slots[slot]);
        self.told.retain(|(other, _)| *other != slot);
        if let Some(socket) = entry.socket.filter(|_| !entry.connecting) {
            if entry.sent >= entry.sending.len() && !farewell.is_empty() {
                let _ = send_now(&socket, farewell);
            }
        }
    }

    fn activity(&self) -> Activity {
        self.activity
    }
}

/// `epoll_pwait2` takes nanoseconds but came with Linux 5.11; where it is missing, milliseconds rounded up.
fn wait_for(
    poll: RawFd,
    ready: &mut [libc::epoll_event],
    timeout_ns: Option<u64>,
) -> io::Result<usize> {
    let time = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / crate::clock::NS_PER_S) as libc::time_t,
        tv_nsec: (ns % crate::clock::NS_PER_S) as libc::c_long,
    });
    let time_pointer = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers and the length describe `ready` and `time`; no signal mask is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            poll,
            ready.as_mut_ptr(),
            ready.len() as libc::c_int,
            time_pointer,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    if let Ok(count) = usize::try_from(count) {
        return Ok(count);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    let timeout_ms = timeout_ns.map_or(-1, |ns| {
        ns.div_ceil(1_000_000).min(i32::MAX as u64) as libc::c_int
    });
    // SAFETY: the pointer and the length describe `ready`.
    let count = unsafe {
        libc::epoll_wait(
            poll,
            ready.as_mut_ptr(),
            ready.len() as libc::c_int,
            timeout_ms,
        )
    };
    check(count).map(|count| count as usize)
}
