//! SIGINT and SIGTERM: blocked in every thread, taken by one that waits for them.

use std::io;

/// Block both signals in the calling thread and in all it starts from now on.
pub fn block() -> io::Result<()> {
    let set = termination_signals();
    // SAFETY: the pointer is to a set of ours.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Start a thread that calls `told` for every such signal, until the process ends.
pub fn watch(told: impl Fn() + Send + 'static) -> io::Result<()> {
    let wait = move || {
        let set = termination_signals();
        let mut signal = 0;
        // SAFETY: both pointers are to variables of ours.
        while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            told();
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .map(drop)
}

fn termination_signals() -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, filled by the calls below; the signal numbers are valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    }
}
