//! Hash functions of one 64-bit number, and a pseudorandom permutation of 0…size-1.

use super::Generator;

/// How often [`permute`] mixes: enough that neighbours end up far apart.
const PERMUTE_ROUNDS: usize = 6;

/// FNV-1a (Fowler, Noll, Vo; 64 bits) over the eight octets of `value`, lowest first.
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    value
        .to_le_bytes()
        .iter()
        .fold(OFFSET_BASIS ^ seed as u64, |hash, octet| {
            (hash ^ u64::from(*octet)).wrapping_mul(PRIME)
        }) as i64
}

/// MurmurHash64A (Austin Appleby) of a message of eight octets.
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const MESSAGE_OCTETS: u64 = 8;
    let fold = |word: u64| word ^ (word >> 47);
    let block = fold((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let start = seed as u64 ^ MESSAGE_OCTETS.wrapping_mul(MULTIPLIER);
    let hash = (start ^ block).wrapping_mul(MULTIPLIER);
    fold(fold(hash).wrapping_mul(MULTIPLIER)) as i64
}

/// Where `value` (taken modulo `size`) goes in the permutation of 0…size-1 that `seed` selects.
///
/// Each round scrambles the lowest 2ᵏ values, then the highest 2ᵏ (2ᵏ the largest power of two not
/// above `size`, so the two overlap), then shifts all round by a random offset: each step is a
/// bijection.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut keys = Generator::from_seed(seed as u64);
    let size = size as u64;
    let last = size - 1;
    let bits = size.ilog2();
    let mut place = value as u64 % size;
    for _ in 0..PERMUTE_ROUNDS {
        place = scramble(place, bits, &mut keys);
        place = last - scramble(last - place, bits, &mut keys);
        place = (place + keys.up_to(last)) % size;
    }
    place as i64
}

/// Multiply by an odd number, XOR and rotate within `bits`; larger places stay. Always draws two
/// keys.
fn scramble(place: u64, bits: u32, keys: &mut Generator) -> u64 {
    let mask = (1u64 << bits) - 1;
    let factor = (keys.next_u64() & mask) | 1;
    let flips = keys.next_u64() & mask;
    if place > mask {
        return place;
    }
    let mixed = (place.wrapping_mul(factor) ^ flips) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}
