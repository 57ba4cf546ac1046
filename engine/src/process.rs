//! This process and what it costs: CPU time, memory, open files, CPUs to run on.

use std::io;

/// CPU time of all threads and the largest resident size, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub sys_ns: u64,
    /// Largest resident size.
    pub max_rss_bytes: u64,
}

/// What this process has used so far.
pub fn usage() -> Usage {
    // SAFETY: rusage is plain data for which zero is valid.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a variable of ours; RUSAGE_SELF cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut raw) };
    let ns = |time: libc::timeval| {
        time.tv_sec as u64 * crate::clock::NS_PER_S + time.tv_usec as u64 * 1_000
    };
    Usage {
        user_ns: ns(raw.ru_utime),
        sys_ns: ns(raw.ru_stime),
        max_rss_bytes: peak_resident_bytes().unwrap_or(raw.ru_maxrss as u64 * 1024),
    }
}

/// Nanoseconds the calling thread was ready to run so far while it waited for a CPU, read without allocating; None
/// where the kernel does not count them (CONFIG_SCHED_INFO). The second field of `schedstat`, see proc(5).
pub fn run_delay_ns() -> Option<u64> {
    let mut buffer = [0; 128];
    let mut file = std::fs::File::open("/proc/thread-self/schedstat").ok()?;
    let length = std::io::Read::read(&mut file, &mut buffer).ok()?;
    let fields = std::str::from_utf8(&buffer[..length]).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The largest resident size since this program was executed, read without allocating. `ru_maxrss` would not do: it
/// survives an exec, and so tells the size of a larger process that started this one.
fn peak_resident_bytes() -> Option<u64> {
    let mut buffer = [0; 4096];
    let mut file = std::fs::File::open("/proc/self/status").ok()?;
    let length = std::io::Read::read(&mut file, &mut buffer).ok()?;
    let status = std::str::from_utf8(&buffer[..length]).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Raise the soft limit of open files to the hard one, and return it.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a variable of ours.
    super::reactor::check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        // SAFETY: the pointer is to a variable of ours. Where raising is refused the soft limit stays.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit = raised;
        }
    }
    Ok(limit.rlim_cur)
}

/// Let timers of the calling thread go off when they are due, not up to 50 µs later as the kernel's default allows.
pub fn want_exact_timers() {
    // SAFETY: no pointers; where it is refused timers are a little late, which the lag shows.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// `struct sched_attr` of linux/sched/types.h, as Linux 4.20 had it first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary threads the slice, since Linux 6.12; kernels before that pass it over.
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    utilization_min: u32,
    utilization_max: u32,
}

/// How long the calling thread wants to run at a stretch when others want the CPU too. A short slice lets it run soon
/// after it wakes; a long one lets it wait until others have done, and then find more to do. It gets no larger or
/// smaller part of the CPU by it. A thread with a scheduling policy of somebody's choice is left alone, as is one on a
/// kernel that refuses.
pub fn want_time_slice(slice_ns: u64) {
    let mut attributes = SchedulingAttributes::default();
    let size = size_of::<SchedulingAttributes>() as u32;
    // SAFETY: the pointer and size describe a variable of ours.
    let status =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0_u32) };
    if status != 0 || attributes.policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.runtime_ns = slice_ns;
    // SAFETY: as above; `size` within the structure was filled in by the kernel.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0_u32) };
}

/// Keep the calling thread on one CPU.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    // SAFETY: cpu_set_t is plain data for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the number is within the set; the pointer and length describe it.
    let status = unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    super::reactor::check(status).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_costs_something() {
        let before = usage();
        let mut sum = 0_u64;
        let begin_ns = crate::clock::now_ns();
        while crate::clock::now_ns() - begin_ns < 20_000_000 {
            sum = sum.wrapping_add(begin_ns);
        }
        let after = usage();
        assert!(
            after.user_ns + after.sys_ns > before.user_ns + before.sys_ns,
            "{sum}"
        );
        assert!(after.max_rss_bytes > 1 << 20);
    }

    #[test]
    fn a_time_slice_is_kept_where_the_kernel_tells_of_it() {
        want_time_slice(7_000_000);
        let told = std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default();
        let slice = told.lines().find(|line| line.starts_with("se.slice"));
        // Linux before 6.12 has no slices of one's own.
        if let Some(slice) = slice {
            assert!(slice.ends_with(" 7000000"), "{slice}");
        }
    }

    #[test]
    fn run_delay_never_falls() {
        let before_ns = run_delay_ns();
        std::thread::yield_now();
        assert!(run_delay_ns() >= before_ns);
    }

    #[test]
    fn the_limit_of_open_files_is_known() {
        assert!(raise_open_files_limit().unwrap() >= 64);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        assert!(pin_to_cpu(100_000).is_err());
    }
}
