//! pgbench, drop-in: the engine called as `pgbench` (a symlink), or `pgdyno-engine pgbench …`.
//!
//! ```text
//! words ─getopt─► pairs ─arguments, checks─► Options ─┬─ -i ─► init
//!                                                     └─ else ─► connecting ─► preparation ─► benchmark ─► report
//! ```
//!
//! `docs/pgbench.md` says where it differs from the stock program on purpose.

mod advice;
mod aggregate;
#[cfg(test)]
mod argument_tests;
mod arguments;
mod benchmark;
mod builtin;
mod checks;
mod connecting;
mod emulation;
mod getopt;
mod help;
mod init;
mod json;
mod log;
mod numbers;
mod options;
mod outlet;
mod preparation;
mod progress;
mod report;
mod results;
mod script_errors;
mod scripts;
mod seed;
mod stop;
mod table;
mod tally;
#[cfg(test)]
mod test_options;
mod voice;
mod witness;

use options::{InitOptions, Options};
use stop::Stop;
use voice::Voice;

use super::{DONE, INTERRUPTED};

/// Be pgbench: `called` is the name it goes by in messages. The exit status: 0 done, 1 could not, 2 a client aborted.
pub fn main(called: &str, words: &[&str]) -> u8 {
    let voice = Voice::new(called);
    // Only as the first word, as in pgbench.
    match words.first() {
        Some(&("--help" | "-?")) => {
            print!("{}", help::help(voice.program()));
            return DONE;
        }
        Some(&("--version" | "-V")) => {
            println!("{}", help::version(arguments::environment_emulation()));
            return DONE;
        }
        _ => {}
    }
    let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
    let done = arguments::read(&words, &voice, called).and_then(|options| match &options.init {
        Some(init) => initialize(&options, init, &voice).map(|()| DONE),
        None => benchmark::run(&options, &voice),
    });
    let status = done.unwrap_or_else(Stop::status);
    if status == INTERRUPTED {
        crate::signals::end_by_interrupt();
    }
    status
}

/// `-i`. The first session is kept for the first who wants one; it has asked for the password, if anybody had to.
fn initialize(options: &Options, init: &InitOptions, voice: &Voice) -> Result<(), Stop> {
    let connecting::Arrival { place, session } =
        connecting::arrive(options, voice).inspect_err(|_| {
            voice.error("could not create connection for initialization");
        })?;
    let first = std::sync::Mutex::new(Some(session));
    let open = || {
        let kept = first.lock().ok().and_then(|mut first| first.take());
        kept.or_else(|| {
            connecting::open(&place.destination)
                .inspect_err(|message| voice.error(message))
                .ok()
        })
    };
    let connector = init::Connector {
        open: &open,
        destination: place.destination.clone(),
    };
    init::run(options, init, &connector, voice)
}
