//! The faces of the engine: arguments in, exit status and messages out. Nothing is decided here.

mod check;
mod pgbench;
mod run;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::plan::Plan;
use crate::program::Language;
use crate::script::language::ScriptLanguage;

/// It was done.
pub const DONE: u8 = 0;
/// It could not be done.
pub const COULD_NOT: u8 = 1;
/// What was asked is wrong; nothing was started.
pub const USAGE: u8 = 2;
/// A signal ended it.
pub const INTERRUPTED: u8 = 130;

const HELP: &str = "\
pgdyno-engine puts a known load on PostgreSQL and times it

usage:
  pgdyno-engine run PLAN.json [--events FD]   run a plan; results go to its output_dir
  pgdyno-engine check PLAN.json               say everything that is wrong with a plan and its scripts
  pgdyno-engine load PLAN.json                load data, as a load plan says
  pgdyno-engine pgbench [OPTION]... [DBNAME]  what pgbench does, in its words; so does a symlink named pgbench
  pgdyno-engine null-server [--help]          a server that answers at once: the ceiling of a load generator
  pgdyno-engine --version

A password comes by PGPASSWORD or a password file, never in a plan.
";

/// Run the program with these arguments, its name first: one that ends in `pgbench` makes it pgbench.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let Some((called, arguments)) = arguments.split_first() else {
        return ExitCode::from(usage("a command is missing"));
    };
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    if called.rsplit('/').next() == Some("pgbench") {
        return ExitCode::from(pgbench::main(called, &words));
    }
    let code = match words.as_slice() {
        ["run", rest @ ..] => run::run(rest),
        ["check", plan] => check::check(Path::new(plan)),
        ["load", plan] => return crate::load::run(Path::new(plan)),
        ["pgbench", rest @ ..] => pgbench::main("pgbench", rest),
        ["null-server", rest @ ..] => return crate::null_server::run(rest),
        ["--version" | "-V"] => {
            println!("pgdyno-engine {}", env!("CARGO_PKG_VERSION"));
            DONE
        }
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            DONE
        }
        [] => usage("a command is missing"),
        [command @ ("check" | "load"), ..] => usage(&format!("'{command}' takes one plan")),
        [other, ..] => usage(&format!("'{other}' is not a command")),
    };
    ExitCode::from(code)
}

/// Say what is wrong with the arguments.
fn usage(message: &str) -> u8 {
    complain(message, Some("pgdyno-engine --help tells what there is"));
    USAGE
}

/// An error on the standard error stream: one line, and its hint.
pub fn complain(message: &str, hint: Option<&str>) {
    eprintln!("pgdyno-engine: error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}

/// A plan and its scripts, valid; every problem was told when it is None.
fn prepare(path: &Path) -> Option<(Plan, Arc<dyn Language>)> {
    let plan = match Plan::read(path) {
        Ok(plan) => plan,
        Err(error) => {
            complain(&error, None);
            return None;
        }
    };
    let problems = plan.validate();
    problems
        .iter()
        .for_each(|problem| complain(&format!("{}: {problem}", path.display()), None));
    match ScriptLanguage::new(&plan) {
        Ok(language) if problems.is_empty() => Some((plan, Arc::new(language))),
        Ok(_) => None,
        Err(found) => {
            found
                .iter()
                .for_each(|problem| complain(&problem.to_string(), None));
            None
        }
    }
}

/// A path as it was given.
fn path(word: &str) -> PathBuf {
    PathBuf::from(word)
}
