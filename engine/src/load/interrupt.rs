//! Why loading stops early: a failure, or a signal. Either way running statements are cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::destination::Destination;
use crate::reactor::{CancelKey, cancel};

/// What all threads of a load look at.
pub struct Stop {
    destination: Arc<Destination>,
    stopped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: Vec<CancelKey>,
    failure: Option<String>,
    interrupted: bool,
}

impl Stop {
    /// Nothing has happened yet.
    pub fn new(destination: Arc<Destination>) -> Self {
        Self {
            destination,
            stopped: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Whether everything should end.
    pub fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A session's statements are to be cancelled when everything ends.
    pub fn register(&self, key: Option<CancelKey>) {
        self.state().sessions.extend(key);
    }

    /// Something failed: the first failure is kept, everything else is cancelled.
    pub fn fail(&self, message: String) {
        self.state().failure.get_or_insert(message);
        self.cancel_all();
    }

    /// A signal came.
    pub fn interrupt(&self) {
        self.state().interrupted = true;
        self.cancel_all();
    }

    /// Whether a signal ended it.
    pub fn interrupted(&self) -> bool {
        self.state().interrupted
    }

    /// The first failure.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel_all(&self) {
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        let sessions = self.state().sessions.clone();
        for key in &sessions {
            // A server that cannot be reached has nothing left to cancel.
            let _ = cancel(&self.destination, key);
        }
    }
}
