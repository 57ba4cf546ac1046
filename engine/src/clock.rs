//! The only reader of time: nanoseconds of CLOCK_MONOTONIC, and the wall clock it is tied to.

use std::cell::Cell;
use std::rc::Rc;

use crate::results::ClockAnchor;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Where a worker gets the time from.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    simulated_ns: Option<Rc<Cell<u64>>>,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still until the test moves it.
    #[cfg(test)]
    pub fn simulated(now_ns: Rc<Cell<u64>>) -> Self {
        Self {
            simulated_ns: Some(now_ns),
        }
    }

    /// Monotonic nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.simulated_ns {
            None => now_ns(),
            Some(simulated_ns) => simulated_ns.get(),
        }
    }
}

/// Monotonic nanoseconds of this machine, read without a system call (vDSO).
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Both clocks at one instant: the wall clock is read between two readings of the other one.
pub fn anchor() -> ClockAnchor {
    let before_ns = now_ns();
    let wall_unix_ns = read(libc::CLOCK_REALTIME);
    let after_ns = now_ns();
    ClockAnchor {
        monotonic_ns: before_ns + (after_ns - before_ns) / 2,
        wall_unix_ns,
    }
}

/// Nanoseconds in `seconds`, as far as they fit.
pub fn seconds_to_ns(seconds: f64) -> u64 {
    (seconds * NS_PER_S as f64).round() as u64
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let first_ns = now_ns();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed_ns = now_ns() - first_ns;
        assert!(
            (2_000_000..2_000_000_000).contains(&passed_ns),
            "{passed_ns}"
        );
    }

    #[test]
    fn seconds_become_nanoseconds() {
        assert_eq!(1_500_000_000, seconds_to_ns(1.5));
        assert_eq!(0, seconds_to_ns(-1.0));
    }
}
