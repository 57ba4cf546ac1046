//! One timer for each client of a worker: at most one is set at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What stands for "not set".
const NEVER: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub struct Timers {
    /// By slot: when it goes off.
    due_ns: Vec<u64>,
    /// Earliest first; entries that no longer agree with `due_ns` are stale.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Timers {
    /// For slots 0 to `slots` − 1, none set.
    pub fn new(slots: usize) -> Self {
        Self {
            due_ns: vec![NEVER; slots],
            queue: BinaryHeap::with_capacity(2 * slots),
        }
    }

    /// Set the timer of `slot`, instead of the one set before.
    pub fn set(&mut self, slot: usize, due_ns: u64) {
        if self.queue.len() == self.queue.capacity() {
            // Only stale entries can fill it: there is at most one live one for each slot.
            let live = &self.due_ns;
            self.queue
                .retain(|&Reverse((due_ns, slot))| live[slot] == due_ns);
        }
        self.due_ns[slot] = due_ns;
        self.queue.push(Reverse((due_ns, slot)));
    }

    /// The timer of `slot` does not go off.
    pub fn unset(&mut self, slot: usize) {
        self.due_ns[slot] = NEVER;
    }

    /// When the next one goes off.
    pub fn next_ns(&mut self) -> Option<u64> {
        while let Some(&Reverse((due_ns, slot))) = self.queue.peek() {
            if self.due_ns[slot] == due_ns {
                return Some(due_ns);
            }
            self.queue.pop();
        }
        None
    }

    /// A slot whose timer has gone off by `now_ns`, and when it was due; it is unset.
    pub fn take_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let Reverse((due_ns, slot)) = self.queue.pop()?;
        self.due_ns[slot] = NEVER;
        Some((slot, due_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timers_go_off_in_order_once() {
        let mut timers = Timers::new(3);
        timers.set(0, 30);
        timers.set(1, 10);
        timers.set(2, 20);
        timers.set(0, 5);
        timers.unset(2);
        assert_eq!((Some(5), None), (timers.next_ns(), timers.take_due(4)));
        assert_eq!(
            (Some((0, 5)), Some((1, 10)), None),
            (
                timers.take_due(40),
                timers.take_due(40),
                timers.take_due(40)
            )
        );
    }

    proptest! {
        #[test]
        fn the_queue_never_grows(sets in proptest::collection::vec((0_usize..4, 0_u64..100), 0..200)) {
            let mut timers = Timers::new(4);
            let capacity = timers.queue.capacity();
            let mut model = [NEVER; 4];
            for (slot, due_ns) in sets {
                timers.set(slot, due_ns);
                model[slot] = due_ns;
                prop_assert_eq!(capacity, timers.queue.capacity());
                prop_assert_eq!(model.iter().copied().min(), timers.next_ns());
            }
        }
    }
}
