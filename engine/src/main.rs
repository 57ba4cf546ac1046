//! The load generator of pgdyno; this file only dispatches.

mod clock;
mod load;
mod outcome;
mod plan;
mod program;
mod random;
mod results;
mod script;
mod wire;

fn main() {}
