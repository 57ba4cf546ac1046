//! `--advise`: whether this program itself was the limit of a run. Pure.

use crate::results::Summary;

/// From this share of the time on a thread counts as busy all the time.
const BUSY: f64 = 0.9;
/// From this share of the time on waiting for a CPU counts.
const CROWDED: f64 = 0.1;

/// What to say, and what to do about it; None: something else was the limit. `bench_us` is the run's length, `threads`
/// how many there were.
pub fn advice(summary: &Summary, threads: usize, bench_us: f64) -> Option<(String, &'static str)> {
    let cost = summary.own_cost.as_ref()?;
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
