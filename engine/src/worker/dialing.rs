//! How far the connections of one worker's clients are: what each tries next, and what it was told.

use std::sync::Arc;
use std::time::Duration;

use super::{Assignment, Part};
use crate::destination::Destination;
use crate::route::{Attempt, AttemptFailure, Route};

/// How far the connection of one client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An attempt is to be begun; what still comes of an earlier one is not looked at.
    Due,
    /// The server's queue of connections is full: the attempt begins again when a timer goes off.
    Queued,
    /// A session was lost; the next attempt is due when a timer goes off.
    Pausing,
    /// An attempt is under way.
    Opening,
    /// The client is ready.
    Up,
    /// It was never ready.
    Failed,
    /// It was ready and is not any more.
    Lost,
}

impl Link {
    /// Whether it is neither ready nor given up.
    pub fn is_opening(self) -> bool {
        matches!(
            self,
            Self::Due | Self::Queued | Self::Pausing | Self::Opening
        )
    }
}

/// See the module.
pub struct Dialing {
    /// Where to connect.
    pub destination: Arc<Destination>,
    /// How far each client is.
    pub links: Vec<Link>,
    routes: Vec<Route>,
    /// Of the first client's route.
    seed: u64,
    /// What each client was told by attempts that failed.
    told: Vec<Vec<String>>,
}

impl Dialing {
    /// Nobody has tried anything.
    pub fn new(assignment: &Assignment, part: &Part) -> Self {
        let destination = assignment.destination.clone();
        let seed = assignment.plan.seed.wrapping_add(part.first_client as u64);
        let route = |slot| destination.route(seed.wrapping_add(slot as u64));
        Self {
            links: vec![Link::Due; part.clients],
            routes: (0..part.clients).map(route).collect(),
            told: vec![Vec::new(); part.clients],
            seed,
            destination,
        }
    }

    /// What a client tries now.
    pub fn attempt(&self, slot: usize) -> Attempt {
        self.routes[slot].attempt(&self.destination.possibilities)
    }

    /// A client that had a session begins anew.
    pub fn restart(&mut self, slot: usize, link: Link) {
        self.routes[slot] = self.destination.route(self.seed.wrapping_add(slot as u64));
        self.told[slot].clear();
        self.links[slot] = link;
    }

    /// How long an attempt may take.
    pub fn timeout(&self) -> Option<Duration> {
        self.destination.target.connect_timeout
    }

    /// The attempt of a client failed. None: another one is due; else what all of them were told.
    pub fn failed(
        &mut self,
        slot: usize,
        failure: AttemptFailure,
        message: &str,
    ) -> Option<String> {
        let possibilities = &self.destination.possibilities;
        let attempt = self.routes[slot].attempt(possibilities);
        let told = &mut self.told[slot];
        let message = if self.destination.places.len() > 1 {
            format!(
                "{}: {message}",
                self.destination.host(attempt.place).address
            )
        } else {
            message.to_string()
        };
        if !told.contains(&message) {
            told.push(message);
        }
        if self.routes[slot].advance(possibilities, failure) {
            self.links[slot] = Link::Due;
            return None;
        }
        self.links[slot] = Link::Failed;
        Some(std::mem::take(told).join("; "))
    }
}
