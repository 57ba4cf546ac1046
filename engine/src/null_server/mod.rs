//! `pgdyno-engine null-server`: a PostgreSQL that answers at once, so that what is measured is the client alone.
//!
//! It lets everybody in (it listens on Unix sockets and loopback only), answers every query with the same rows, and does
//! as little else as the protocol allows. It can also be a bad server, for tests of clients.
//!
//! ```text
//! main thread: accept ──round robin──▶ workers: io_uring, one system call a batch; or epoll
//! ```

mod answers;
mod arguments;
mod crew;
mod listener;
mod misbehaviour;
mod report;
mod ring_worker;
mod session;
#[cfg(test)]
mod session_tests;
mod statement;
mod worker;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use answers::Answers;
use arguments::{Arguments, HELP};
use crew::{Crew, Setting};
use listener::{Listeners, Woken};
use report::Report;

use crate::reactor::{ReactorKind, choose};

const EXIT_COULD_NOT: u8 = 1;
const EXIT_INVALID: u8 = 2;

/// Serve until SIGINT or SIGTERM. `words` are those behind `null-server`.
pub fn run(words: &[&str]) -> ExitCode {
    let arguments = match Arguments::parse(words) {
        Ok(arguments) => arguments,
        Err(problems) => {
            for problem in problems {
                eprintln!("pgdyno-engine: error: {problem}");
            }
            eprintln!("hint: pgdyno-engine null-server --help lists the options");
            return ExitCode::from(EXIT_INVALID);
        }
    };
    if arguments.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pgdyno-engine: error: {error}");
            ExitCode::from(EXIT_COULD_NOT)
        }
    }
}

/// Being bad is done with epoll only.
fn reactor(arguments: &Arguments) -> io::Result<ReactorKind> {
    match arguments.misbehaviour {
        Some(_) => Ok(ReactorKind::Epoll),
        None => choose(arguments.reactor).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("io_uring does not work here: {error}"),
            )
        }),
    }
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    crate::process::raise_open_files_limit()?;
    let mut listeners = Listeners::open(&arguments.listen)?;
    let setting = Setting {
        answers: Arc::new(Answers::new(arguments.shape)),
        misbehaviour: arguments.misbehaviour,
        reactor: reactor(arguments)?,
        spins: arguments.spins,
    };
    let mut crew = Crew::start(arguments.threads, &setting)?;
    report::tell_listening(&listeners.addresses(), arguments.json)?;
    loop {
        match listeners.wait() {
            Ok(Woken::Connections(accepted)) => accepted
                .into_iter()
                .try_for_each(|socket| crew.take(socket))?,
            Ok(Woken::ReportWanted) => Report::of(&crew).tell(arguments.json)?,
            Ok(Woken::EndWanted) => break,
            Err(error) => return Err(error),
        }
    }
    drop(listeners);
    crew.stop();
    Report::of(&crew).tell(arguments.json)
}
