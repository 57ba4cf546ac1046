//! The threads that answer, as the main thread sees them: sockets are handed to them in turn, counts are read.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::answers::Answers;
use super::misbehaviour::Misbehaviour;
use super::ring_worker::RingWorker;
use super::worker::Worker;
use crate::reactor::{ReactorKind, check};

/// What all threads are given.
#[derive(Clone)]
pub struct Setting {
    /// Constant pieces of replies.
    pub answers: Arc<Answers>,
    /// None: a good server.
    pub misbehaviour: Option<Misbehaviour>,
    /// How threads receive and send.
    pub reactor: ReactorKind,
    /// Whether threads never sleep.
    pub spins: bool,
}

/// Sums over all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Connections that have ended.
    pub connections_closed: u64,
    /// Statements answered.
    pub statements: u64,
    /// ReadyForQuery sent, those of starts not counted.
    pub ready: u64,
    /// Bytes from clients.
    pub received_bytes: u64,
    /// Bytes to clients.
    pub sent_bytes: u64,
}

/// One thread's counts: written by it alone, once a batch; read by the main thread.
#[derive(Default)]
struct Counts {
    connections_closed: AtomicU64,
    statements: AtomicU64,
    ready: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// Where the main thread leaves sockets for a worker.
pub struct Inbox {
    sockets: Mutex<Vec<(u32, OwnedFd)>>,
    wake: OwnedFd,
    stop: AtomicBool,
    counts: Counts,
}

/// All workers, as the main thread sees them.
pub struct Crew {
    inboxes: Vec<Arc<Inbox>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    accepted: u64,
}

impl Crew {
    /// Start `threads` workers.
    pub fn start(threads: usize, setting: &Setting) -> io::Result<Self> {
        let mut crew = Self {
            inboxes: Vec::new(),
            threads: Vec::new(),
            accepted: 0,
        };
        for number in 0..threads {
            // SAFETY: no pointers; the descriptor is new and owned from here on.
            let wake = unsafe {
                let descriptor = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
                check(descriptor)?;
                OwnedFd::from_raw_fd(descriptor)
            };
            let inbox = Arc::new(Inbox {
                sockets: Mutex::default(),
                wake,
                stop: AtomicBool::new(false),
                counts: Counts::default(),
            });
            let (own, setting) = (Arc::clone(&inbox), setting.clone());
            let thread = std::thread::Builder::new()
                .name(format!("null-{number}"))
                .spawn(move || match setting.reactor {
                    ReactorKind::IoUring => RingWorker::new(&own, &setting)?.serve(),
                    ReactorKind::Epoll => Worker::new(&own, &setting)?.serve(),
                })?;
            crew.inboxes.push(inbox);
            crew.threads.push(thread);
        }
        Ok(crew)
    }

    /// Give a socket to the next worker in turn.
    pub fn take(&mut self, socket: OwnedFd) -> io::Result<()> {
        let inbox = &self.inboxes[self.accepted as usize % self.inboxes.len()];
        self.accepted += 1;
        let number = self.accepted as u32;
        inbox
            .sockets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((number, socket));
        inbox.wake_up()
    }

    /// Let all workers end, and wait for them.
    pub fn stop(&mut self) {
        for inbox in &self.inboxes {
            inbox.stop.store(true, Ordering::Release);
            if let Err(error) = inbox.wake_up() {
                eprintln!("pgdyno-engine: error: cannot stop a thread: {error}");
            }
        }
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => eprintln!("pgdyno-engine: error: {error}"),
                Err(_) => eprintln!("pgdyno-engine: error: a thread has panicked"),
            }
        }
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// What all have done so far.
    pub fn done(&self) -> Done {
        self.inboxes.iter().fold(Done::default(), |sum, inbox| {
            let counts = &inbox.counts;
            Done {
                connections_closed: sum.connections_closed
                    + counts.connections_closed.load(Ordering::Relaxed),
                statements: sum.statements + counts.statements.load(Ordering::Relaxed),
                ready: sum.ready + counts.ready.load(Ordering::Relaxed),
                received_bytes: sum.received_bytes + counts.received_bytes.load(Ordering::Relaxed),
                sent_bytes: sum.sent_bytes + counts.sent_bytes.load(Ordering::Relaxed),
            }
        })
    }
}

impl Inbox {
    /// What epoll watches to learn that something was left here.
    pub fn wake_descriptor(&self) -> RawFd {
        self.wake.as_raw_fd()
    }

    /// The sockets left here, each with its connection's number.
    pub fn take_sockets(&self) -> Vec<(u32, OwnedFd)> {
        let mut drained = 0_u64;
        // SAFETY: the pointer is to a variable of eight bytes. Nothing to read is fine: the list tells all.
        unsafe { libc::read(self.wake.as_raw_fd(), (&raw mut drained).cast(), 8) };
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the worker is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Show the worker's counts to the main thread.
    pub fn publish(&self, done: &Done) {
        let counts = &self.counts;
        counts
            .connections_closed
            .store(done.connections_closed, Ordering::Relaxed);
        counts.statements.store(done.statements, Ordering::Relaxed);
        counts.ready.store(done.ready, Ordering::Relaxed);
        counts
            .received_bytes
            .store(done.received_bytes, Ordering::Relaxed);
        counts.sent_bytes.store(done.sent_bytes, Ordering::Relaxed);
    }

    fn wake_up(&self) -> io::Result<()> {
        let one = 1_u64;
        // SAFETY: the pointer is to a variable of eight bytes.
        let count = unsafe { libc::write(self.wake.as_raw_fd(), (&raw const one).cast(), 8) };
        if count == 8 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
