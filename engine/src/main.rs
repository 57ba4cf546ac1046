//! The load generator of pgdyno; this file only dispatches.

mod clock;
mod load;
mod outcome;
mod plan;
mod program;
mod random;
mod reactor;
mod recorder;
mod results;
mod script;
mod series;
mod wire;

fn main() {}
