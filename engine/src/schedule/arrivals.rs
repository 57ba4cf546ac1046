//! Arrivals over time at a rate that may change in steps and ramps: constant or Poisson. Pure.
//!
//! Both come from the integral of the rate, Λ(t): constant arrivals lie where Λ grows by one, Poisson arrivals where it
//! grows by an exponentially distributed amount with mean 1 (the time-rescaling theorem; D. J. Daley and D. Vere-Jones,
//! "An Introduction to the Theory of Point Processes", 2nd ed., 2003, theorem 7.4.I). The rate is linear in each
//! segment, so Λ is a parabola there and its inverse has a closed form: no thinning, no steps of time.

use super::Timetable;
use crate::clock::{NS_PER_S, seconds_to_ns};
use crate::plan::{Arrival, Stage};

/// A span of time in which the rate goes in a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    /// None: for ever, at the same rate.
    length_ns: Option<u64>,
    rate_per_ns: f64,
    slope_per_ns2: f64,
}

/// A rate over time.
#[derive(Clone, Debug)]
pub struct RateCurve {
    segments: Vec<Segment>,
}

impl RateCurve {
    /// The same rate for ever.
    pub fn constant(rate_per_s: f64) -> Self {
        Self {
            segments: vec![Segment {
                length_ns: None,
                rate_per_ns: rate_per_s / NS_PER_S as f64,
                slope_per_ns2: 0.0,
            }],
        }
    }

    /// The warm-up at the rate the first stage begins with, the stages, and from then on the rate the last one ends
    /// with.
    pub fn staged(stages: &[Stage], timetable: &Timetable) -> Self {
        let per_ns = |rate_per_s: f64| rate_per_s / NS_PER_S as f64;
        let flat = |length_ns, rate_per_s: Option<f64>| Segment {
            length_ns,
            rate_per_ns: per_ns(rate_per_s.unwrap_or(0.0)),
            slope_per_ns2: 0.0,
        };
        let warmup_ns = timetable.measurement_begin_ns - timetable.warmup_begin_ns;
        let mut segments = vec![flat(
            Some(warmup_ns),
            stages.first().map(|stage| stage.rate_per_s),
        )];
        segments.extend(stages.iter().map(|stage| {
            let length_ns = seconds_to_ns(stage.duration_s).max(1);
            let rise_per_ns = per_ns(stage.end_rate_per_s()) - per_ns(stage.rate_per_s);
            Segment {
                length_ns: Some(length_ns),
                rate_per_ns: per_ns(stage.rate_per_s),
                slope_per_ns2: rise_per_ns / length_ns as f64,
            }
        }));
        segments.push(flat(None, stages.last().map(Stage::end_rate_per_s)));
        Self { segments }
    }

    /// The same course at a share of the rate.
    pub fn scaled(mut self, share: f64) -> Self {
        for segment in &mut self.segments {
            segment.rate_per_ns *= share;
            segment.slope_per_ns2 *= share;
        }
        self
    }
}

/// One arrival after the other.
#[derive(Clone, Debug)]
pub struct Arrivals {
    curve: RateCurve,
    arrival: Arrival,
    /// The segment the last arrival lies in, and where in it: a fraction, so that rounding never changes the rate.
    segment: usize,
    segment_begin_ns: u64,
    offset_ns: f64,
}

impl Arrivals {
    /// From `begin_ns` on.
    pub fn new(curve: RateCurve, arrival: Arrival, begin_ns: u64) -> Self {
        Self {
            curve,
            arrival,
            segment: 0,
            segment_begin_ns: begin_ns,
            offset_ns: 0.0,
        }
    }

    /// The next arrival; `draw` gives numbers from [0, 1). None: there will never be one.
    pub fn next(&mut self, draw: &mut dyn FnMut() -> f64) -> Option<u64> {
        let amount = match self.arrival {
            Arrival::Constant => 1.0,
            // Inverse transform of the exponential distribution; 1 − u is never 0.
            Arrival::Poisson => -(1.0 - draw()).ln(),
        };
        self.advance(amount)
    }

    /// Go on to where the integral of the rate has grown by `amount`.
    pub fn advance(&mut self, mut amount: f64) -> Option<u64> {
        loop {
            let Segment {
                length_ns,
                rate_per_ns,
                slope_per_ns2,
            } = self.curve.segments[self.segment];
            let rate_per_ns = slope_per_ns2.mul_add(self.offset_ns, rate_per_ns).max(0.0);
            let Some(length_ns) = length_ns else {
                if rate_per_ns <= 0.0 {
                    return None;
                }
                self.offset_ns += amount / rate_per_ns;
                return Some(self.at_ns());
            };
            let rest_ns = (length_ns as f64 - self.offset_ns).max(0.0);
            let whole = rest_ns * (0.5 * slope_per_ns2).mul_add(rest_ns, rate_per_ns);
            if amount <= whole && whole > 0.0 {
                // The root of rate·x + slope·x²/2 = amount, in the form that stays exact for small slopes.
                let root = (2.0 * slope_per_ns2)
                    .mul_add(amount, rate_per_ns * rate_per_ns)
                    .max(0.0);
                self.offset_ns += (2.0 * amount / (rate_per_ns + root.sqrt())).min(rest_ns);
                return Some(self.at_ns());
            }
            amount -= whole.max(0.0);
            self.segment += 1;
            self.segment_begin_ns += length_ns;
            self.offset_ns = 0.0;
        }
    }

    fn at_ns(&self) -> u64 {
        self.segment_begin_ns.saturating_add(self.offset_ns as u64)
    }
}
