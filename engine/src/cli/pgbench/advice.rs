//! `--advise`: whether this program itself was the limit of a run. Pure.

use crate::results::OwnCost;

/// From this share of the time on a thread counts as busy all the time.
const BUSY: f64 = 0.9;
/// From this share of the time on waiting for a CPU counts.
const CROWDED: f64 = 0.1;

/// What to say, and what to do about it; None: something else was the limit. `bench_us` is the run's length, `threads`
/// how many there were.
pub fn advice(cost: &OwnCost, threads: usize, bench_us: f64) -> Option<(String, &'static str)> {
    let thread_ns = bench_us * 1e3 * threads as f64;
    let share = |time_ns: u64| time_ns as f64 / thread_ns;
    let busy = share(cost.cpu_user_ns + cost.cpu_sys_ns);
    let crowded = share(cost.run_delay_ns.unwrap_or(0));
    if busy >= BUSY {
        let message = format!(
            "this program was the limit: its {threads} threads were busy {:.0}% of the time",
            100.0 * busy.min(1.0)
        );
        return Some((message, "Use more threads (-j)."));
    }
    if crowded >= CROWDED {
        let message = format!(
            "this program had to wait for a CPU {:.0}% of the time",
            100.0 * crowded
        );
        let hint = "Run it on another machine than the server, or use fewer threads (-j).";
        return Some((message, hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a run of 1 s on 2 threads that took so much CPU and waited so long for it, in milliseconds.
    fn said(cpu_ms: u64, waited_ms: u64) -> Option<String> {
        let cost = OwnCost {
            cpu_user_ns: cpu_ms * 600_000,
            cpu_sys_ns: cpu_ms * 400_000,
            run_delay_ns: Some(waited_ms * 1_000_000),
            ..OwnCost::default()
        };
        advice(&cost, 2, 1e6).map(|(message, _)| message)
    }

    #[test]
    fn only_a_program_that_was_the_limit_says_so() {
        assert_eq!(None, said(1_700, 190));
        assert_eq!(
            Some("this program was the limit: its 2 threads were busy 90% of the time".into()),
            said(1_800, 0)
        );
        assert_eq!(
            Some("this program had to wait for a CPU 15% of the time".into()),
            said(1_000, 300)
        );
        // Busy comes first: there, more threads help.
        assert!(said(2_100, 500).is_some_and(|message| message.contains("busy 100%")));
    }
}
