//! Outages as one worker sees them: from the first connection lost until all lost ones are back, and the longest
//! time without a commit around it. Workers' outages that overlap become one.

use crate::results::Outage;

/// More outages than this are not told apart: the last one goes on.
const MOST_OUTAGES: usize = 1000;

/// An outage that has not ended.
#[derive(Clone, Copy, Debug)]
struct Current {
    outage: Outage,
    /// Lost clients without a session.
    missing: u64,
    /// The longest time without a commit so far; its bounds are in `outage`.
    longest_ns: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct OutageRecorder {
    last_success_ns: Option<u64>,
    current: Option<Current>,
    ended: Vec<Outage>,
}

impl Current {
    /// There was no commit from `last_success_ns` to `until_ns`, when one came (or nothing was observed any more).
    fn without_commit(&mut self, last_success_ns: Option<u64>, until_ns: u64, success: bool) {
        let begin_ns = last_success_ns.unwrap_or(self.outage.lost_ns);
        let length_ns = until_ns.saturating_sub(begin_ns);
        if length_ns >= self.longest_ns {
            self.longest_ns = length_ns;
            self.outage.last_success_ns = last_success_ns;
            self.outage.first_success_ns = success.then_some(until_ns);
        }
    }
}

impl OutageRecorder {
    /// A transaction committed.
    #[inline]
    pub fn committed(&mut self, at_ns: u64) {
        if let Some(current) = &mut self.current {
            current.without_commit(self.last_success_ns, at_ns, true);
            if current.missing == 0 && self.ended.len() < MOST_OUTAGES {
                self.ended.push(current.outage);
                self.current = None;
            }
        }
        self.last_success_ns = Some(at_ns);
    }

    /// A client lost its connection.
    pub fn lost(&mut self, at_ns: u64) {
        let current = self.current.get_or_insert(Current {
            outage: Outage {
                lost_ns: at_ns,
                connections_lost: 0,
                attempts: 0,
                restored_ns: None,
                last_success_ns: self.last_success_ns,
                first_success_ns: None,
            },
            missing: 0,
            longest_ns: 0,
        });
        current.missing += 1;
        current.outage.connections_lost += 1;
        current.outage.restored_ns = None;
    }

    /// A client begins to connect again.
    pub fn attempt(&mut self) {
        if let Some(current) = &mut self.current {
            current.outage.attempts += 1;
        }
    }

    /// A lost client has a session again. One that gives up never has: its outage does not end.
    pub fn settled(&mut self, at_ns: u64) {
        if let Some(current) = &mut self.current {
            current.missing = current.missing.saturating_sub(1);
            if current.missing == 0 {
                current.outage.restored_ns = Some(at_ns);
            }
        }
    }

    /// All outages; nothing was started any more after `end_ns`.
    pub fn finish(mut self, end_ns: u64) -> Vec<Outage> {
        if let Some(mut current) = self.current {
            current.without_commit(self.last_success_ns, end_ns, false);
            self.ended.push(current.outage);
        }
        self.ended
    }
}

/// Outages of several workers: those that overlap are one. The time without a commit is what they have in common.
pub fn merged(mut outages: Vec<Outage>) -> Vec<Outage> {
    outages.sort_by_key(|outage| outage.lost_ns);
    let mut whole: Vec<Outage> = Vec::new();
    for outage in outages {
        match whole.last_mut() {
            Some(last)
                if last
                    .restored_ns
                    .is_none_or(|end_ns| outage.lost_ns <= end_ns) =>
            {
                join(last, &outage);
            }
            _ => whole.push(outage),
        }
    }
    whole
}

fn join(into: &mut Outage, other: &Outage) {
    into.connections_lost += other.connections_lost;
    into.attempts += other.attempts;
    into.restored_ns = into
        .restored_ns
        .zip(other.restored_ns)
        .map(|(a, b)| a.max(b));
    into.last_success_ns = into.last_success_ns.max(other.last_success_ns);
    into.first_success_ns = match (into.first_success_ns, other.first_success_ns) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // Where one worker committed while the other did not, there was no time without a commit.
    if let (Some(last), Some(first)) = (into.last_success_ns, into.first_success_ns) {
        into.first_success_ns = Some(first.max(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_goes_from_the_first_loss_to_the_first_commit_with_all_back() {
        let mut recorder = OutageRecorder::default();
        recorder.committed(100);
        recorder.lost(110);
        recorder.committed(112);
        recorder.lost(115);
        for _ in 0..3 {
            recorder.attempt();
        }
        recorder.settled(500);
        recorder.committed(520);
        recorder.settled(530);
        recorder.committed(540);
        recorder.committed(900);
        let expected = Outage {
            lost_ns: 110,
            connections_lost: 2,
            attempts: 3,
            restored_ns: Some(530),
            last_success_ns: Some(112),
            first_success_ns: Some(520),
        };
        assert_eq!(vec![expected], recorder.finish(1_000));
    }

    #[test]
    fn an_outage_that_never_ends_has_no_first_success() {
        let mut recorder = OutageRecorder::default();
        recorder.committed(100);
        recorder.lost(110);
        let outages = recorder.finish(1_000);
        assert_eq!(
            (None, Some(100), None),
            (
                outages[0].restored_ns,
                outages[0].last_success_ns,
                outages[0].first_success_ns
            )
        );
    }

    #[test]
    fn one_lost_client_is_no_time_without_commits() {
        let mut recorder = OutageRecorder::default();
        recorder.committed(100);
        recorder.lost(101);
        for at_ns in 102..200 {
            recorder.committed(at_ns);
        }
        let outage = recorder.finish(200)[0];
        let (Some(last), Some(first)) = (outage.last_success_ns, outage.first_success_ns) else {
            panic!("{outage:?}");
        };
        assert!(first - last <= 2, "{outage:?}");
    }

    #[test]
    fn overlapping_outages_of_workers_are_one() {
        let outage = |lost_ns, restored_ns, last, first| Outage {
            lost_ns,
            connections_lost: 2,
            attempts: 5,
            restored_ns,
            last_success_ns: Some(last),
            first_success_ns: first,
        };
        let whole = merged(vec![
            outage(900, None, 890, None),
            outage(120, Some(600), 105, Some(620)),
            outage(110, Some(500), 90, Some(510)),
        ]);
        assert_eq!(
            vec![
                Outage {
                    connections_lost: 4,
                    attempts: 10,
                    ..outage(110, Some(600), 105, Some(510))
                },
                outage(900, None, 890, None)
            ],
            whole
        );
    }
}
