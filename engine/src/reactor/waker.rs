//! Wakes a reactor from another thread (a signal came, the start was given): an eventfd.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::socket::check;

/// May be cloned and used from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// A new one.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let raw = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and nobody else's.
        let event = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self {
            event: Arc::new(event),
        })
    }

    /// Make the reactor's `wait` return.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the pointer and length describe `one`. A full counter means it is awake already.
        unsafe { libc::write(self.raw(), one.as_ptr().cast(), one.len()) };
    }

    /// Back to sleep: the reactor has seen it.
    pub(super) fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: the pointer and length describe `count`. Nothing to read is fine.
        unsafe { libc::read(self.raw(), count.as_mut_ptr().cast(), count.len()) };
    }

    pub(super) fn raw(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}
