//! The load generator of pgdyno; this file only dispatches.

mod books;
mod client;
mod clock;
mod error_log;
mod load;
mod outcome;
mod plan;
mod process;
mod program;
mod random;
mod reactor;
mod recorder;
mod results;
mod schedule;
mod script;
mod series;
mod statements;
mod timers;
mod wire;
mod worker;

fn main() {}
