//! One schedule for all workers, without a word between them: each draws the same arrivals and takes those dealt to it.
//!
//! So the starts of a plan are the same for any number of threads. Neighbouring arrivals go to workers far apart: arrival
//! number i belongs to client i · stride mod clients, and so to that client's worker (any free client of it takes it).

use super::Share;

/// Which arrivals belong to one worker.
#[derive(Clone, Copy, Debug)]
pub struct Deal {
    share: Share,
    stride: u64,
    position: u64,
}

impl Deal {
    /// For the worker with this share of the clients.
    pub fn new(share: Share) -> Self {
        let all = share.all_clients as u64;
        // The golden section spreads best; a stride without a common divisor reaches every client.
        let golden = (all as f64 * 0.618_034) as u64;
        let stride = (golden.max(1)..=golden + all)
            .find(|&stride| divisor(stride, all) == 1)
            .unwrap_or(1);
        Self {
            share,
            stride: stride % all.max(1),
            position: 0,
        }
    }

    /// Whether the next arrival is this worker's.
    pub fn next_is_mine(&mut self) -> bool {
        let client = self.position as usize;
        self.position = (self.position + self.stride) % self.share.all_clients as u64;
        let first = self.share.first_client;
        (first..first + self.share.clients).contains(&client)
    }
}

/// The greatest common divisor (Euclid).
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
