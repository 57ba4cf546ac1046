//! Whole numbers in [low, high] that are not uniform, and waiting times of a Poisson process.
//!
//! Ranges are those pgbench allows: `high - low + 1` fits an i64; callers check (see the limits
//! below).

use super::Generator;

/// The smallest parameter of [`gaussian`]: below it the rejection takes too long.
pub const GAUSSIAN_PARAMETER_MIN: f64 = 2.0;
/// The range of parameters of [`zipfian`].
pub const ZIPFIAN_PARAMETER_MIN: f64 = 1.001;
/// The range of parameters of [`zipfian`].
pub const ZIPFIAN_PARAMETER_MAX: f64 = 1000.0;

/// Number of values in [low, high].
fn span(low: i64, high: i64) -> i64 {
    high.wrapping_sub(low).wrapping_add(1)
}

/// The value at `share` (in [0, 1)) of the range.
fn at_share(low: i64, high: i64, share: f64) -> i64 {
    low.wrapping_add((span(low, high) as f64 * share) as i64)
}

/// A truncated exponential distribution, most likely at `low`; `parameter` > 0 is how steep it
/// falls.
///
/// Inverse transform: solve F(x) = u, where F is the distribution cut off at `high`.
pub fn exponential(generator: &mut Generator, low: i64, high: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - generator.unit();
    at_share(low, high, -(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// A normal distribution around the middle, cut off at `parameter` (at least 2) standard
/// deviations.
///
/// The sine half of Box and Muller's transform (Ann. Math. Stat. 29, 1958), drawn again until
/// inside.
pub fn gaussian(generator: &mut Generator, low: i64, high: i64, parameter: f64) -> i64 {
    let deviation = loop {
        let radius = (-2.0 * (1.0 - generator.unit()).ln()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * (1.0 - generator.unit());
        let candidate = radius * angle.sin();
        if (-parameter..parameter).contains(&candidate) {
            break candidate;
        }
    };
    at_share(low, high, (deviation + parameter) / (parameter * 2.0))
}

/// A Zipf distribution, most likely at `low`; `exponent` in 1.001…1000.
///
/// Devroye, "Non-Uniform Random Variate Generation" (1986), chapter X.6, by rejection; cut off at
/// `high`.
pub fn zipfian(generator: &mut Generator, low: i64, high: i64, exponent: f64) -> i64 {
    let ranks = span(low, high);
    if ranks <= 1 {
        return low;
    }
    let power = exponent - 1.0;
    let bound = 2.0f64.powf(power);
    loop {
        let first = generator.unit();
        let second = generator.unit();
        let rank = first.powf(-1.0 / power).floor();
        let growth = (1.0 + 1.0 / rank).powf(power);
        if second * rank * (growth - 1.0) / (bound - 1.0) <= growth / bound && rank <= ranks as f64
        {
            return low.wrapping_sub(1).wrapping_add(rank as i64);
        }
    }
}

/// A waiting time of a Poisson process with this mean, rounded to whole units (pgbench uses µs).
#[allow(dead_code)] // pgbench's own schedule counts whole µs; ours spaces arrivals in ns.
pub fn poisson_wait(generator: &mut Generator, mean: f64) -> i64 {
    (-(1.0 - generator.unit()).ln() * mean + 0.5) as i64
}
