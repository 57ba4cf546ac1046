//! The load generator of pgdyno; this file only dispatches.

mod load;
mod plan;
mod program;
mod random;
mod results;
mod script;
mod wire;

fn main() {}
