//! Starts that are due or to come, in order: what waits for a free client, and the arrivals behind it.
//!
//! Without a limit nothing waits anywhere: an arrival that nobody has taken is simply the next one, however long ago. A
//! limit on how many may wait needs them one by one, because what comes when the backlog is full is what is lost.

use std::collections::VecDeque;

use super::Timetable;
use super::arrivals::Arrivals;
use super::deal::Deal;
use crate::results::Phase;

/// A bound on the backlog.
#[derive(Clone, Copy, Debug, Default)]
pub struct BacklogLimit {
    /// So many starts may wait.
    pub starts: Option<usize>,
    /// So long may one wait.
    pub wait_ns: Option<u64>,
}

/// See the module.
pub struct StartQueue {
    arrivals: Arrivals,
    deal: Option<Deal>,
    limit: BacklogLimit,
    /// The next arrival; None: there is none any more.
    next_ns: Option<u64>,
    /// Due before `next_ns`, in order.
    waiting: VecDeque<u64>,
}

/// Starts that were skipped, by phase.
pub type Skipped = [u64; 2];

impl StartQueue {
    /// Of these arrivals; `deal` says which of them are ours. `room` is how many may be given back.
    pub fn new(arrivals: Arrivals, deal: Option<Deal>, limit: BacklogLimit, room: usize) -> Self {
        Self {
            arrivals,
            deal,
            limit,
            next_ns: None,
            waiting: VecDeque::with_capacity(limit.starts.unwrap_or(0) + room),
        }
    }

    /// Find the first arrival, after `amount` of the rate's integral where the first gap is not to be drawn.
    pub fn begin(&mut self, first: Option<f64>, draw: &mut dyn FnMut() -> f64) {
        match first {
            Some(amount) => self.next_ns = self.arrivals.advance(amount),
            None => self.step(draw),
        }
    }

    /// Pass the next arrival on.
    fn step(&mut self, draw: &mut dyn FnMut() -> f64) {
        loop {
            self.next_ns = self.arrivals.next(draw);
            let mine = self.deal.as_mut().is_none_or(Deal::next_is_mine);
            if mine || self.next_ns.is_none() {
                return;
            }
        }
    }

    /// Take the earliest start for a client that is free at `now_ns`; it may be to come. What waited too long is
    /// skipped, at most `most` starts. None: nothing more starts.
    pub fn take(
        &mut self,
        now_ns: u64,
        timetable: &Timetable,
        draw: &mut dyn FnMut() -> f64,
        (skipped, most): (&mut Skipped, u64),
    ) -> Option<u64> {
        let before: u64 = skipped.iter().sum();
        self.admit(now_ns, timetable, draw, skipped);
        loop {
            let start_ns = self.waiting.front().copied().or(self.next_ns)?;
            let phase = timetable.phase_at(start_ns)?;
            if self.waiting.pop_front().is_none() {
                self.step(draw);
            }
            let waited_ns = now_ns.saturating_sub(start_ns);
            if self
                .limit
                .wait_ns
                .is_some_and(|most_ns| waited_ns > most_ns)
            {
                skipped[phase.index()] += 1;
                if skipped.iter().sum::<u64>() - before >= most {
                    return None;
                }
            } else {
                return Some(start_ns);
            }
        }
    }

    /// Where a number bounds the backlog: let in what came due by `now_ns`, and skip what finds it full.
    pub fn admit(
        &mut self,
        now_ns: u64,
        timetable: &Timetable,
        draw: &mut dyn FnMut() -> f64,
        skipped: &mut Skipped,
    ) {
        let Some(most) = self.limit.starts else {
            return;
        };
        while let Some((start_ns, phase)) = self.due(now_ns, timetable) {
            if self.waiting.len() < most {
                self.waiting.push_back(start_ns);
            } else {
                skipped[phase.index()] += 1;
            }
            self.step(draw);
        }
    }

    /// The next arrival, if it is due by `now_ns` and may start at all.
    fn due(&self, now_ns: u64, timetable: &Timetable) -> Option<(u64, Phase)> {
        let start_ns = self.next_ns.filter(|&start_ns| start_ns <= now_ns)?;
        Some((start_ns, timetable.phase_at(start_ns)?))
    }

    /// A client that took a start cannot make it.
    pub fn give_back(&mut self, start_ns: u64) {
        let place = self
            .waiting
            .partition_point(|&other_ns| other_ns <= start_ns);
        self.waiting.insert(place, start_ns);
    }

    /// The end: everything that was due before `now_ns` and that nobody has taken is skipped.
    pub fn skip_overdue(
        &mut self,
        now_ns: u64,
        timetable: &Timetable,
        draw: &mut dyn FnMut() -> f64,
        skipped: &mut Skipped,
    ) {
        while let Some(&start_ns) = self.waiting.front().filter(|&&start_ns| start_ns < now_ns) {
            self.waiting.pop_front();
            if let Some(phase) = timetable.phase_at(start_ns) {
                skipped[phase.index()] += 1;
            }
        }
        let Some(before_ns) = now_ns.checked_sub(1) else {
            return;
        };
        while let Some((_, phase)) = self.due(before_ns, timetable) {
            skipped[phase.index()] += 1;
            self.step(draw);
        }
    }
}
