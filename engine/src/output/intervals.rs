//! Parts of intervals from all workers become whole intervals, in order.

use std::collections::BTreeMap;

use crate::books::IntervalPart;
use crate::process::Usage;
use crate::recorder::Recording;
use crate::results::Phase;

/// One interval of all workers.
#[derive(Debug)]
pub struct Whole {
    /// The phase it lies in.
    pub phase: Phase,
    /// First instant of it.
    pub begin_ns: u64,
    /// First instant after it; the last part's.
    pub end_ns: u64,
    /// Transactions under way at its end, by phase.
    pub in_flight: [u64; 2],
    /// Clients with a session at its end.
    pub clients_connected: usize,
    /// By phase, with the worker whose recording it was.
    pub recordings: [Option<(usize, Box<Recording>)>; 2],
    /// Of the process, at its end.
    pub usage: Usage,
}

/// See the module.
#[derive(Debug)]
pub struct Assembly {
    /// The interval each worker will tell of next; None when it has ended.
    next: Vec<Option<u64>>,
    pending: BTreeMap<u64, Whole>,
}

impl Assembly {
    /// For this many workers.
    pub fn new(workers: usize) -> Self {
        Self {
            next: vec![Some(0); workers],
            pending: BTreeMap::new(),
        }
    }

    /// Take a part in. Recordings that were merged come back, to be cleared.
    pub fn add(&mut self, part: IntervalPart) -> Vec<(usize, Box<Recording>)> {
        self.next[part.worker] = if part.last {
            None
        } else {
            Some(part.index + 1)
        };
        let mut merged = Vec::new();
        let whole = self.pending.entry(part.index).or_insert_with(|| Whole {
            phase: part.phase,
            begin_ns: part.begin_ns,
            end_ns: part.end_ns,
            in_flight: [0; 2],
            clients_connected: 0,
            recordings: [None, None],
            usage: part.usage,
        });
        whole.end_ns = whole.end_ns.max(part.end_ns);
        whole.clients_connected += part.clients_connected;
        whole.usage.user_ns = whole.usage.user_ns.max(part.usage.user_ns);
        whole.usage.sys_ns = whole.usage.sys_ns.max(part.usage.sys_ns);
        for (phase, recording) in part.recordings.into_iter().enumerate() {
            whole.in_flight[phase] += part.in_flight[phase];
            match (&mut whole.recordings[phase], recording) {
                (Some((_, into)), Some(recording)) => {
                    into.merge(&recording);
                    merged.push((part.worker, recording));
                }
                (empty @ None, Some(recording)) => *empty = Some((part.worker, recording)),
                (_, None) => {}
            }
        }
        merged
    }

    /// A worker will tell nothing more (it may have told nothing at all).
    pub fn end_all(&mut self) {
        self.next.fill(None);
    }

    /// The next interval that every worker has told of.
    pub fn take(&mut self) -> Option<Whole> {
        let (&index, _) = self.pending.first_key_value()?;
        let told = self.next.iter().flatten().all(|&next| next > index);
        if told {
            self.pending.remove(&index)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Shape;

    fn part(worker: usize, index: u64, last: bool) -> IntervalPart {
        let shape = Shape {
            transaction_types: 1,
            statements: 0,
            open_loop: false,
            response_time_limit_ns: u64::MAX,
        };
        let mut recording = Box::new(Recording::new(shape));
        recording.types[0].server_commits = 10 + worker as u64;
        IntervalPart {
            worker,
            index,
            phase: Phase::Measurement,
            begin_ns: index * 10,
            end_ns: index * 10 + if last { 3 + worker as u64 } else { 10 },
            in_flight: [0, 1],
            clients_connected: 3,
            last,
            recordings: [None, Some(recording)],
            usage: Usage::default(),
        }
    }

    fn commits(whole: &Whole) -> u64 {
        whole.recordings[1].as_ref().unwrap().1.server_commits()
    }

    #[test]
    fn an_interval_is_whole_when_every_worker_told() {
        let mut assembly = Assembly::new(2);
        assert!(assembly.add(part(0, 0, false)).is_empty());
        assert!(assembly.add(part(0, 1, true)).is_empty());
        assert!(assembly.take().is_none());
        assert_eq!(1, assembly.add(part(1, 0, false)).len());
        let whole = assembly.take().unwrap();
        assert_eq!(
            (21, [0, 2], 10),
            (commits(&whole), whole.in_flight, whole.end_ns)
        );
        assert!(assembly.take().is_none());
        assembly.add(part(1, 1, false));
        assert_eq!(20, assembly.take().unwrap().end_ns);
        assembly.add(part(1, 2, true));
        assert_eq!(
            (24, 11),
            assembly.take().map(|w| (w.end_ns, commits(&w))).unwrap()
        );
    }

    #[test]
    fn a_worker_that_never_told_holds_nothing_up_for_good() {
        let mut assembly = Assembly::new(2);
        assembly.add(part(0, 0, true));
        assert!(assembly.take().is_none());
        assembly.end_all();
        assert!(assembly.take().is_some());
    }
}
