//! Ctrl-C during `-i`: what the server is doing is cancelled, and its refusal ends the program.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::stop::Stop;
use crate::destination::Destination;
use crate::reactor::{CancelKey, cancel_all};
use crate::signals;

/// See the module.
pub struct Canceller {
    destination: Arc<Destination>,
    asked: AtomicBool,
    keys: Mutex<Vec<CancelKey>>,
}

impl Canceller {
    /// Of sessions that lead there.
    pub fn new(destination: Arc<Destination>) -> Arc<Self> {
        Arc::new(Self {
            destination,
            asked: AtomicBool::new(false),
            keys: Mutex::default(),
        })
    }

    /// Take SIGINT from now on; to be called before any other thread is started.
    ///
    /// # Errors
    /// The signal cannot be blocked, or no thread started.
    pub fn watch(self: Arc<Self>) -> io::Result<()> {
        const TAKEN: &[libc::c_int] = &[libc::SIGINT];
        signals::block(TAKEN)?;
        signals::watch(TAKEN, move |_| {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            self.asked.store(true, Ordering::Relaxed);
            cancel_all(&self.destination, &keys);
            eprintln!("Cancel request sent");
        })
    }

    /// Cancel this session's statements, too.
    pub fn register(&self, key: Option<CancelKey>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.extend(key);
    }

    /// If a signal came, wait until all that it causes has been done and said.
    pub fn settle(&self) {
        if self.asked() {
            drop(self.keys.lock());
        }
    }

    /// Go on, unless a signal came while no statement was under way.
    ///
    /// # Errors
    /// It did.
    pub fn check(&self) -> Result<(), Stop> {
        if self.asked() {
            return Err(Stop::Failed);
        }
        Ok(())
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
