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
    interrupted: Option<Signal>,
}

/// A signal that ends a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

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
    pub fn interrupt(&self, signal: Signal) {
        self.state().interrupted.get_or_insert(signal);
        self.cancel_all();
    }

    /// The signal that ended it.
    pub fn interrupted(&self) -> Option<Signal> {
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

/// Keep SIGINT and SIGTERM for [`wait`]; to be called before any thread is started.
pub fn hold_signals() {
    let set = signals();
    // SAFETY: the set is ours; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Wait up to `milliseconds` for a held signal.
pub fn wait(milliseconds: i64) -> Option<Signal> {
    let set = signals();
    let timeout = libc::timespec {
        tv_sec: milliseconds / 1000,
        tv_nsec: milliseconds % 1000 * 1_000_000,
    };
    // SAFETY: set and timeout are ours; what came with the signal is not asked for.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout) };
    (signal > 0).then_some(Signal(signal))
}

fn signals() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data; sigemptyset fills it before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    }
}
