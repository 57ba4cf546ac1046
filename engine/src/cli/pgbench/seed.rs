//! `--random-seed` and PGBENCH_RANDOM_SEED: the time, a number nobody can guess, or a number.

use super::stop::Stop;
use super::voice::Voice;

/// The seed of a word; None where nobody gave one: the time.
///
/// # Errors
/// A word that is no seed, which was told.
pub fn seed(word: Option<&str>, voice: &Voice) -> Result<u64, Stop> {
    let seed = match word {
        None | Some("time") => time_us(),
        Some("rand") => strong().ok_or_else(|| {
            voice.error("could not generate random seed");
            Stop::Failed
        })?,
        Some(number) => whole(number.trim_start()).ok_or_else(|| {
            voice.error(&format!("unrecognized random seed option \"{number}\""));
            voice.detail("Expecting an unsigned integer, \"time\" or \"rand\".");
            Stop::Failed
        })?,
    };
    if word.is_some() {
        voice.info(&format!("setting random seed to {seed}"));
    }
    Ok(seed)
}

/// A number of 64 bits; as C reads it, a minus counts down from 2^64.
fn whole(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => digits.parse().ok().map(u64::wrapping_neg),
        None => text.parse().ok(),
    }
}

fn time_us() -> u64 {
    crate::clock::anchor().wall_unix_ns / 1_000
}

fn strong() -> Option<u64> {
    let mut bytes = [0; 8];
    // SAFETY: the pointer and length describe a variable of ours.
    let read = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    (read == 8).then(|| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_number_the_time_or_chance() {
        let voice = Voice::new("pgbench");
        assert_eq!(Ok(5432), seed(Some("5432"), &voice));
        assert_eq!(Ok(u64::MAX), seed(Some("18446744073709551615"), &voice));
        assert_eq!(Ok(u64::MAX), seed(Some("-1"), &voice));
        for wrong in ["one", "", "1x", "-", "-+1", "18446744073709551616"] {
            assert_eq!(Err(Stop::Failed), seed(Some(wrong), &voice), "{wrong}");
        }
        assert!(seed(None, &voice).unwrap() > 1_700_000_000_000_000);
        assert_ne!(seed(Some("rand"), &voice), seed(Some("rand"), &voice));
    }
}
