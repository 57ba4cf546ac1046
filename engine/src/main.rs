//! The load generator of pgdyno; this file only dispatches.

#[cfg(test)]
mod allocations;
mod blocks;
mod books;
mod cli;
mod client;
mod clock;
mod control;
mod destination;
mod error_log;
mod history;
mod load;
mod null_server;
mod outages;
mod outcome;
mod output;
mod plan;
mod process;
mod program;
mod random;
mod reactor;
mod recorder;
mod results;
mod route;
mod schedule;
mod script;
mod series;
mod session;
mod signals;
mod statements;
mod timers;
mod wire;
mod worker;

fn main() -> std::process::ExitCode {
    cli::main(std::env::args_os())
}
