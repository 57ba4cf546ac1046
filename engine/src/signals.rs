//! Signals: blocked in every thread, taken by the one that waits for them.

use std::io;
use std::time::Duration;

use libc::c_int;

/// A person or a supervisor wants it to end.
pub const END: &[c_int] = &[libc::SIGINT, libc::SIGTERM];
/// The warm-up has lasted long enough.
pub const END_WARMUP: c_int = libc::SIGUSR1;

/// Block these signals in the calling thread and in all it starts from now on.
pub fn block(signals: &[c_int]) -> io::Result<()> {
    let set = set_of(signals);
    // SAFETY: the pointer is to a set of ours; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Wait so long for one of these signals, which are blocked.
pub fn wait(signals: &[c_int], timeout: Duration) -> Option<c_int> {
    let set = set_of(signals);
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    };
    // SAFETY: set and timeout are ours; what came with the signal is not asked for.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout) };
    (signal > 0).then_some(signal)
}

/// Start a thread that calls `told` for each of these signals, which are blocked, until the process ends.
pub fn watch(signals: &[c_int], told: impl Fn(c_int) + Send + 'static) -> io::Result<()> {
    let set = set_of(signals);
    let wait = move || {
        let mut signal = 0;
        // SAFETY: both pointers are to variables of ours.
        while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            told(signal);
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .map(drop)
}

/// End as a program that Ctrl-C ends: a shell that sees it so stops its script, too.
pub fn end_by_interrupt() -> ! {
    // SAFETY: the set is a variable of ours, filled before it is used; the signal number is valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(libc::SIGINT);
    }
    std::process::exit(128 + libc::SIGINT)
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, filled by the calls below; the signal numbers are valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for &signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}
