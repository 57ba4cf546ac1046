//! What control tells the workers: when to start, and when to stop.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::reactor::Waker;
use crate::schedule::SharedTimetable;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Go on.
    No,
    /// Start nothing more; finish what is in flight.
    Draining,
    /// Do not even finish.
    AtOnce,
}

/// Shared by control and all workers.
#[derive(Debug)]
pub struct Orders {
    timetable: OnceLock<SharedTimetable>,
    stop: AtomicU8,
    wakers: Vec<Waker>,
}

impl Orders {
    /// For this many workers: neither started nor stopped.
    pub fn new(workers: usize) -> io::Result<Self> {
        let wakers = (0..workers)
            .map(|_| Waker::new())
            .collect::<io::Result<_>>()?;
        Ok(Self {
            timetable: OnceLock::new(),
            stop: AtomicU8::new(0),
            wakers,
        })
    }

    /// What wakes a worker.
    pub fn waker(&self, worker: usize) -> &Waker {
        &self.wakers[worker]
    }

    /// Start all workers. Only the first call counts.
    pub fn start(&self, timetable: SharedTimetable) {
        let _ = self.timetable.set(timetable);
        self.wake_all();
    }

    /// Stop all workers; a stop is never taken back.
    pub fn order_stop(&self, stop: Stop) {
        self.stop.fetch_max(stop as u8, Ordering::Release);
        self.wake_all();
    }

    /// The timetable, once it is known.
    pub fn timetable(&self) -> Option<&SharedTimetable> {
        self.timetable.get()
    }

    /// Whether to go on.
    pub fn stop(&self) -> Stop {
        match self.stop.load(Ordering::Acquire) {
            0 => Stop::No,
            1 => Stop::Draining,
            _ => Stop::AtOnce,
        }
    }

    /// Let every worker look at its orders.
    pub fn wake_all(&self) {
        self.wakers.iter().for_each(Waker::wake);
    }
}
