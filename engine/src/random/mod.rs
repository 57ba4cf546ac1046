//! pgbench's random numbers, bit for bit: a seed gives the values that pgbench 15 and later give.
//!
//! The generator is xoroshiro128** (Blackman and Vigna, <https://prng.di.unimi.it/>), its state
//! filled by two draws of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014). Distributions, hashes and the order of seeding have a file each.

pub mod distributions;
pub mod hashing;
pub mod seeding;

#[cfg(test)]
mod tests;

/// 2⁻⁵², the distance between neighbouring values of [`Generator::unit`].
const UNIT_STEP: f64 = 1.0 / (1u64 << 52) as f64;

/// A xoroshiro128** generator. `Copy`, so that a retry can go back to the state at a transaction's
/// start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    state: [u64; 2],
}

impl Generator {
    /// A generator filled from a 64-bit seed by two draws of splitmix64.
    pub fn from_seed(seed: u64) -> Self {
        let mut counter = seed;
        let state = [split_mix(&mut counter), split_mix(&mut counter)];
        // splitmix64 is a bijection of its counter, so two draws in a row are never both zero.
        debug_assert!(state != [0, 0]);
        Self { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [first, second] = self.state;
        let mixed = first ^ second;
        self.state = [
            first.rotate_left(24) ^ mixed ^ (mixed << 16),
            mixed.rotate_left(37),
        ];
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A new generator seeded by this one's next value.
    pub fn child(&mut self) -> Self {
        Self::from_seed(self.next_u64())
    }

    /// Uniform in [0, 1): the top 52 bits of the next value.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 * UNIT_STEP
    }

    /// Uniform in [0, last], by rejection on as many high bits as `last` has. No draw when `last`
    /// is 0.
    #[inline]
    pub fn up_to(&mut self, last: u64) -> u64 {
        if last == 0 {
            return 0;
        }
        let unused_bits = last.leading_zeros();
        loop {
            let candidate = self.next_u64() >> unused_bits;
            if candidate <= last {
                return candidate;
            }
        }
    }

    /// Uniform in [low, high], both included; `high` below `low` gives `low`.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        low.wrapping_add(self.up_to(high.wrapping_sub(low) as u64) as i64)
    }
}

/// One step of splitmix64.
fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *counter;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
