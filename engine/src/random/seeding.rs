//! Who draws from the seed, and in which order: what makes a seed reproduce pgbench's values.
//!
//! A base generator is filled from the seed. From it come, in this order: a generator for each
//! client, the variable `default_seed` (unless the person defined it), and for each thread three
//! more: the choice of scripts, the schedule, the sampling of the log.

use super::Generator;

/// The generators of one thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadGenerators {
    /// Chooses the transaction type when there are several.
    pub choice: Generator,
    /// Draws the intervals between intended starts.
    pub schedule: Generator,
    /// Decides which transactions go to the log.
    pub sampling: Generator,
}

/// All generators of a measurement, drawn from one seed in pgbench's order.
#[derive(Clone, Debug)]
pub struct Generators {
    /// One for each client, in the order of clients.
    pub clients: Vec<Generator>,
    /// The value of the variable `default_seed`; `None` when it was defined, and so not drawn.
    pub default_seed: Option<i64>,
    /// One set for each thread, in the order of threads.
    pub threads: Vec<ThreadGenerators>,
}

/// Whether the person defined the variable `default_seed` (then the base generator does not draw
/// it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultSeed {
    /// Drawn from the base generator.
    Drawn,
    /// Given as a variable of the plan.
    Defined,
}

impl Generators {
    /// Draw everything from `seed` for this many clients and threads.
    pub fn new(seed: u64, clients: usize, threads: usize, default_seed: DefaultSeed) -> Self {
        let mut base = Generator::from_seed(seed);
        let clients = (0..clients).map(|_| base.child()).collect();
        let default_seed = match default_seed {
            DefaultSeed::Drawn => Some(base.next_u64() as i64),
            DefaultSeed::Defined => None,
        };
        let threads = (0..threads)
            .map(|_| ThreadGenerators {
                choice: base.child(),
                schedule: base.child(),
                sampling: base.child(),
            })
            .collect();
        Self {
            clients,
            default_seed,
            threads,
        }
    }
}
