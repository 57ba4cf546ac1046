//! Values that stock pgbench 15.18 printed for the same seeds, and properties that hold for any
//! seed.

use proptest::prelude::*;

use super::Generator;
use super::distributions::{exponential, gaussian, poisson_wait, zipfian};
use super::hashing::{fnv1a, murmur2, permute};
use super::seeding::{DefaultSeed, Generators};

fn first_client(seed: u64) -> Generator {
    Generators::new(seed, 1, 1, DefaultSeed::Drawn).clients[0]
}

#[test]
fn seed_5432_gives_the_values_of_pgbench() {
    let mut client = first_client(5432);
    assert_eq!(client.between(10, 19), 17);
    assert_eq!(exponential(&mut client, 100, 199, 10.0), 104);
    assert_eq!(gaussian(&mut client, 1000, 1999, 10.0), 1498);
    assert_eq!(zipfian(&mut client, 1, 9, 1.3), 3);
}

#[test]
fn seed_42_gives_the_first_value_of_pgbench() {
    assert_eq!(first_client(42).between(1, 100), 82);
}

#[test]
fn hashes_and_permutation_give_the_values_of_pgbench() {
    assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
    assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
    assert_eq!(
        permute(i64::MAX - 11, i64::MAX - 10, 5432),
        520_382_784_483_822_430
    );
}

#[test]
fn a_single_value_takes_no_draw() {
    let mut generator = Generator::from_seed(1);
    let before = generator;
    assert_eq!(generator.between(7, 7), 7);
    assert_eq!(generator, before);
}

#[test]
fn poisson_waits_have_the_mean_that_was_asked_for() {
    let mut generator = Generator::from_seed(9);
    let draws = 200_000;
    let sum: i64 = (0..draws)
        .map(|_| poisson_wait(&mut generator, 1000.0))
        .sum();
    let mean = sum as f64 / f64::from(draws);
    // Four standard errors of an exponential mean: 4 · 1000 / √200000 ≈ 9.
    assert!((mean - 1000.0).abs() < 9.0, "mean {mean}");
}

#[test]
fn the_order_of_seeding_keeps_clients_apart_from_threads() {
    let few = Generators::new(3, 2, 1, DefaultSeed::Drawn);
    let many = Generators::new(3, 4, 2, DefaultSeed::Drawn);
    assert_eq!(few.clients[..], many.clients[..2]);
    assert_ne!(few.default_seed, many.default_seed);
    let defined = Generators::new(3, 2, 1, DefaultSeed::Defined);
    assert_eq!(defined.default_seed, None);
    assert_ne!(defined.threads[0].choice, few.threads[0].choice);
}

#[test]
fn permute_is_a_permutation() {
    for size in [1i64, 2, 3, 5, 8, 13, 100, 257] {
        let mut seen: Vec<i64> = (0..size).map(|value| permute(value, size, 11)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..size).collect::<Vec<_>>(), "size {size}");
    }
}

proptest! {
    #[test]
    fn every_distribution_stays_in_its_range(
        seed: u64, low in -1_000_000i64..1_000_000, span in 0i64..1_000_000, steep in 2.0f64..20.0,
    ) {
        let mut generator = Generator::from_seed(seed);
        let high = low + span;
        for _ in 0..20 {
            prop_assert!((low..=high).contains(&generator.between(low, high)));
            prop_assert!((low..=high).contains(&exponential(&mut generator, low, high, steep)));
            prop_assert!((low..=high).contains(&gaussian(&mut generator, low, high, steep)));
            prop_assert!((low..=high).contains(&zipfian(&mut generator, low, high, steep)));
        }
    }

    #[test]
    fn the_whole_range_of_integers_can_be_drawn(seed: u64, low: i64, high: i64) {
        let (low, high) = (low.min(high), low.max(high));
        prop_assert!((low..=high).contains(&Generator::from_seed(seed).between(low, high)));
    }
}
