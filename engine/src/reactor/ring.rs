//! The io_uring itself: set up as cheaply as this kernel can, and entered once a turn.

use std::io;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};

/// `io_uring_enter` flags (linux/io_uring.h).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_NO_IOWAIT: u32 = 1 << 7;

const ENTRIES_MIN: u32 = 64;
const ENTRIES_MAX: u32 = 8192;

/// See the module.
pub struct Ring {
    ring: IoUring,
    enter_flags: u32,
}

impl Ring {
    /// For this many connections, with the cheapest completion handling this kernel has.
    pub fn new(connections: usize) -> io::Result<Self> {
        let wanted = u32::try_from(connections.saturating_mul(2)).unwrap_or(ENTRIES_MAX);
        let entries = wanted.clamp(ENTRIES_MIN, ENTRIES_MAX).next_power_of_two();
        let completions = entries * 2;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(completions)
            .build(entries)
            .or_else(|_| {
                IoUring::builder()
                    .setup_coop_taskrun()
                    .setup_cqsize(completions)
                    .build(entries)
            })
            .or_else(|_| IoUring::builder().setup_cqsize(completions).build(entries))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring is too old",
            ));
        }
        let no_iowait = if ring.params().is_feature_no_iowait() {
            ENTER_NO_IOWAIT
        } else {
            0
        };
        Ok(Self {
            ring,
            enter_flags: ENTER_GETEVENTS | ENTER_EXT_ARG | no_iowait,
        })
    }

    /// For registering memory.
    pub fn io_uring(&self) -> &IoUring {
        &self.ring
    }

    /// Queue a request; when the queue is full it is submitted first.
    ///
    /// # Safety
    /// What the entry points to must stay where it is until its request is done.
    #[inline]
    pub unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: as the caller promises.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Whether everything that was queued is submitted.
    pub fn is_all_submitted(&mut self) -> bool {
        self.ring.submission().is_empty()
    }

    /// Submit everything queued and wait for a completion; None: without limit, 0: not at all.
    pub fn enter(&mut self, timeout_ns: Option<u64>) -> io::Result<()> {
        let queued = {
            let mut submission = self.ring.submission();
            submission.sync();
            submission.len() as u32
        };
        let wanted = u32::from(timeout_ns != Some(0));
        let time = timeout_ns.map(|ns| {
            Timespec::new()
                .sec(ns / crate::clock::NS_PER_S)
                .nsec((ns % crate::clock::NS_PER_S) as u32)
        });
        let arguments = match &time {
            Some(time) => SubmitArgs::new().timespec(time),
            None => SubmitArgs::new(),
        };
        // SAFETY: the flags say that the argument is a getevents argument; it and `time` live through the call.
        let entered = unsafe {
            self.ring
                .submitter()
                .enter(queued, wanted, self.enter_flags, Some(&arguments))
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // Timed out, interrupted, or completions must be taken before more can be submitted.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// The next completion that is there.
    #[inline]
    pub fn completion(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// All completions that are there.
    pub fn take_completions(&mut self, into: &mut Vec<cqueue::Entry>) {
        into.extend(self.ring.completion());
    }
}
