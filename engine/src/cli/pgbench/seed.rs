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
        Some(number) => number.trim_start().parse().map_err(|_| {
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

fn time_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
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
        for wrong in ["one", "", "1x", "18446744073709551616"] {
            assert_eq!(Err(Stop::Failed), seed(Some(wrong), &voice), "{wrong}");
        }
        assert!(seed(None, &voice).unwrap() > 1_700_000_000_000_000);
        assert_ne!(seed(Some("rand"), &voice), seed(Some("rand"), &voice));
    }
}
