//! `pgdyno-engine load PLAN.json`: rows in parallel ranges, made here and sent by COPY, or made by
//! SQL.
//!
//! ```text
//! plan ─► section (compiled) ─► jobs (batches of ranges) ─► one thread and one connection each:
//!                                                           rows ─► CopyData ─► connection ─► server
//! ```
//!
//! Loading is not measured: sockets block, and the server is the bottleneck. A range is one
//! transaction; a section whose COPY says FREEZE is one range, loaded by one connection in the
//! transaction that truncates its table. The first failure ends everything.

mod interrupt;
mod jobs;
mod plan;
mod progress;
mod ranges;
mod rows;
mod section;
#[cfg(test)]
mod tests;
mod worker;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::destination::Destination;
use crate::program::ScriptProblem;
use crate::script::variables::{Names, Variables};
use crate::signals;

use interrupt::Stop;
use plan::LoadPlan;
use progress::SectionProgress;
use section::{RangeSlots, Work, compile};
use worker::{Shared, run_batch};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(250);

/// Everything loaded.
const EXIT_DONE: u8 = 0;
/// The server refused, or was lost.
const EXIT_COULD_NOT: u8 = 1;
/// The plan or a script is wrong; nothing was done.
const EXIT_INVALID: u8 = 2;
/// A signal came.
const EXIT_INTERRUPTED: u8 = 130;

/// Why a load ended without loading everything.
#[derive(Debug)]
pub enum LoadError {
    /// The plan is wrong: one text for each problem.
    Invalid(Vec<String>),
    /// It failed on the way.
    Failed(String),
    /// A signal came.
    Interrupted,
}

/// Load what the plan says; progress goes to stdout, what is wrong to stderr.
pub fn run(path: &Path) -> ExitCode {
    let result = LoadPlan::read(path)
        .map_err(|problem| LoadError::Invalid(vec![problem]))
        .and_then(load);
    ExitCode::from(match result {
        Ok(()) => EXIT_DONE,
        Err(LoadError::Invalid(problems)) => {
            problems
                .iter()
                .for_each(|problem| eprintln!("pgdyno-engine: error: {problem}"));
            EXIT_INVALID
        }
        Err(LoadError::Failed(message)) => {
            eprintln!("pgdyno-engine: error: {message}");
            EXIT_COULD_NOT
        }
        Err(LoadError::Interrupted) => {
            eprintln!("pgdyno-engine: error: interrupted; the statements were cancelled");
            EXIT_INTERRUPTED
        }
    })
}

/// A plan ready to be loaded.
struct Prepared {
    /// Sections and their rows.
    works: Vec<(Work, u64)>,
    /// The plan's variables.
    variables: Variables,
    slots: RangeSlots,
}

/// Compile all sections: every problem of plan and scripts at once.
fn prepare(plan: &LoadPlan) -> Result<Prepared, LoadError> {
    let mut problems = plan.validate();
    let mut names = Names::default();
    let slots = RangeSlots::new(&mut names);
    let given: Vec<_> = plan.variables.keys().map(|name| names.slot(name)).collect();
    let mut works = Vec::new();
    for section in &plan.sections {
        match compile(section, &mut names, &given) {
            Ok(work) => works.push((work, section.rows)),
            Err(found) => problems.extend(found.iter().map(ScriptProblem::to_string)),
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Invalid(problems));
    }
    let mut variables = Variables::new(Arc::new(names));
    for (name, value) in &plan.variables {
        variables.set_text_by_name(name, value.as_bytes());
    }
    Ok(Prepared {
        works,
        variables,
        slots,
    })
}

/// Load what the plan says.
fn load(plan: LoadPlan) -> Result<(), LoadError> {
    let Prepared {
        works,
        variables,
        slots,
    } = prepare(&plan)?;
    let destination = Destination::resolve(&plan.conninfo).map_err(|errors| {
        let shown = errors.into_iter().map(|error| {
            let hint = error.hint.map(|hint| format!("\nhint: {hint}"));
            format!("{}{}", error.message, hint.unwrap_or_default())
        });
        LoadError::Invalid(shown.collect())
    })?;
    let destination = Arc::new(destination.look_up().map_err(LoadError::Failed)?);
    let batches = jobs::batches(&works, plan.connections);
    let mut ranges = vec![0; works.len()];
    batches
        .iter()
        .flatten()
        .for_each(|job| ranges[job.section] += 1);
    let sections = plan.sections.iter().zip(&ranges);
    let progress: Vec<_> = sections
        .map(|(section, ranges)| SectionProgress::new(section.name.clone(), section.rows, *ranges))
        .collect();
    signals::block(signals::END)
        .map_err(|error| LoadError::Failed(format!("cannot block signals: {error}")))?;
    let shared = Shared {
        plan: &plan,
        works: &works,
        progress: &progress,
        variables: &variables,
        slots,
    };
    let stop = Stop::new(destination.clone());
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&stop, &progress, &finished));
        let mut connections = Vec::new();
        for batch in &batches {
            run_batch(&shared, batch, &mut connections, &destination, &stop);
            if stop.is_set() {
                break;
            }
        }
        finished.store(true, Ordering::Release);
    });
    if stop.interrupted() {
        return Err(LoadError::Interrupted);
    }
    stop.failure()
        .map_or(Ok(()), |message| Err(LoadError::Failed(message)))
}

/// Tell progress and wait for signals until everything is over. A second signal does not wait for
/// the server.
fn watch(stop: &Stop, progress: &[SectionProgress], finished: &AtomicBool) {
    const WAIT: Duration = Duration::from_millis(25);
    let mut waited = Duration::ZERO;
    while !finished.load(Ordering::Acquire) {
        match signals::wait(signals::END, WAIT) {
            Some(_) if stop.interrupted() => {
                std::process::exit(i32::from(EXIT_INTERRUPTED));
            }
            Some(_) => stop.interrupt(),
            None => waited += WAIT,
        }
        if waited >= PROGRESS {
            waited = Duration::ZERO;
            progress.iter().for_each(SectionProgress::tell_if_under_way);
        }
    }
}
