//! A client that lost its connection and wants one again: when it tries, how long, and when it gives up. Pure.

use crate::clock::seconds_to_ns;
use crate::plan::Reconnect;

/// The plan's `reconnect`, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first_pause_ns: u64,
    longest_pause_ns: u64,
    /// How long an attempt may take.
    pub attempt_ns: u64,
    give_up_ns: u64,
}

/// One client on its way back.
#[derive(Clone, Copy, Debug)]
pub struct Revival {
    lost_ns: u64,
    failed: u32,
}

impl Backoff {
    /// What the plan says.
    pub fn new(reconnect: &Reconnect) -> Self {
        Self {
            first_pause_ns: seconds_to_ns(reconnect.first_pause_s),
            longest_pause_ns: seconds_to_ns(reconnect.longest_pause_s),
            attempt_ns: seconds_to_ns(reconnect.attempt_s),
            give_up_ns: seconds_to_ns(reconnect.give_up_s),
        }
    }

    /// The pause after so many attempts that failed (1 or more): doubled each time, up to the longest, and spread by a
    /// quarter over the clients, so that they do not all come at once.
    fn pause_ns(&self, failed: u32, client: usize) -> u64 {
        let doubled = self
            .first_pause_ns
            .saturating_mul(1 << failed.saturating_sub(1).min(30));
        let pause_ns = doubled.min(self.longest_pause_ns);
        pause_ns - pause_ns / 4 * (client as u64 % 8) / 8
    }
}

impl Revival {
    /// The connection was lost now.
    pub fn new(now_ns: u64) -> Self {
        Self {
            lost_ns: now_ns,
            failed: 0,
        }
    }

    /// The attempt failed: when to try again; None: never.
    pub fn failed(&mut self, backoff: &Backoff, now_ns: u64, client: usize) -> Option<u64> {
        self.failed = self.failed.saturating_add(1);
        let again_ns = now_ns.saturating_add(backoff.pause_ns(self.failed, client));
        (now_ns.saturating_sub(self.lost_ns) < backoff.give_up_ns).then_some(again_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first_pause_ns: 100,
        longest_pause_ns: 700,
        attempt_ns: 50,
        give_up_ns: 10_000,
    };

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = (1..6).map(|failed| BACKOFF.pause_ns(failed, 0)).collect();
        assert_eq!(vec![100, 200, 400, 700, 700], pauses);
        let spread: Vec<_> = (0..8).map(|client| BACKOFF.pause_ns(9, client)).collect();
        assert!(
            spread.iter().all(|pause| (525..=700).contains(pause)),
            "{spread:?}"
        );
        assert!(spread.windows(2).all(|two| two[0] > two[1]), "{spread:?}");
        assert_eq!(700, BACKOFF.pause_ns(u32::MAX, 0));
    }

    #[test]
    fn attempts_end_when_there_was_no_session_for_too_long() {
        let mut revival = Revival::new(1_000);
        assert_eq!(Some(1_150), revival.failed(&BACKOFF, 1_050, 0));
        assert_eq!(Some(1_450), revival.failed(&BACKOFF, 1_250, 0));
        assert_eq!(None, revival.failed(&BACKOFF, 11_000, 0));
    }
}
