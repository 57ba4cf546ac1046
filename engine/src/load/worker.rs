//! One thread of a load: takes ranges until none is left.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::interrupt::Stop;
use super::jobs::Job;
use super::plan::LoadPlan;
use super::progress::SectionProgress;
use super::rows::{RowError, RowWriter};
use super::section::{Copy, RangeSlots, Streams, Work};
use crate::destination::Destination;
use crate::script::template::Template;
use crate::script::values::Value;
use crate::script::variables::Variables;
use crate::session::{Failure, Session};

/// What all threads read.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The plan.
    pub plan: &'a LoadPlan,
    /// Its sections, compiled, and their rows.
    pub works: &'a [(Work, u64)],
    /// Their progress.
    pub progress: &'a [SectionProgress],
    /// The plan's variables.
    pub variables: &'a Variables,
    /// `:row`, `:lo` and `:hi`.
    pub slots: RangeSlots,
}

/// Run the ranges of a batch over as many connections as are useful; connections are kept for the
/// next batch.
pub fn run_batch(
    shared: &Shared<'_>,
    batch: &[Job],
    connections: &mut Vec<Session>,
    destination: &Destination,
    stop: &Stop,
) {
    let wanted = shared.plan.connections.min(batch.len());
    while connections.len() < wanted {
        match Session::open(destination, connections.len() as u64) {
            Ok(connection) => {
                stop.register(connection.cancel_key.clone());
                connections.push(connection);
            }
            Err(failure) => return stop.fail(with_hint("", failure)),
        }
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for connection in connections.iter_mut().take(wanted) {
            let next = &next;
            scope.spawn(move || {
                while let Some(job) = batch.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.is_set() {
                        break;
                    }
                    if let Err(failure) = run_job(shared, *job, connection, stop) {
                        stop.fail(with_hint(&place(shared, *job), failure));
                    }
                }
            });
        }
    });
}

/// Section, table and rows of a job, for messages.
fn place(shared: &Shared<'_>, job: Job) -> String {
    let section = &shared.plan.sections[job.section].name;
    let table = match &shared.works[job.section].0 {
        Work::Copy(copy) => format!(", table {}", copy.table),
        Work::Sql(_) => String::new(),
    };
    format!(
        "section {section}{table}, rows {} to {}: ",
        job.range.low, job.range.high
    )
}

fn with_hint(place: &str, failure: Failure) -> String {
    let state = failure
        .sqlstate
        .map(|state| format!(" (SQLSTATE {state})"))
        .unwrap_or_default();
    let hint = if failure.hint.is_empty() {
        String::new()
    } else {
        format!("\nhint: {}", failure.hint)
    };
    format!("{place}{}{state}{hint}", failure.message)
}

fn run_job(
    shared: &Shared<'_>,
    job: Job,
    connection: &mut Session,
    stop: &Stop,
) -> Result<(), Failure> {
    let progress = &shared.progress[job.section];
    progress.begin_range();
    match &shared.works[job.section].0 {
        Work::Sql(template) => {
            connection.query(&range_sql(shared, job, template))?;
            progress.add_rows(job.range.rows());
        }
        Work::Copy(copy) if copy.streams == Streams::OneFrozen => {
            let truncate = format!("BEGIN; TRUNCATE {}", copy.table);
            connection.query(truncate.as_bytes())?;
            let copied = copy_rows(shared, job, copy, connection, stop);
            let ended = connection.query(if copied.is_ok() {
                b"COMMIT"
            } else {
                b"ROLLBACK"
            });
            copied.and(ended)?;
        }
        Work::Copy(copy) => copy_rows(shared, job, copy, connection, stop)?,
    }
    progress.end_range();
    Ok(())
}

/// SQL with the bounds of a range in it.
fn range_sql(shared: &Shared<'_>, job: Job, template: &Template) -> Vec<u8> {
    let mut variables = shared.variables.clone();
    variables.set(shared.slots.low, Value::Integer(job.range.low as i64));
    variables.set(shared.slots.high, Value::Integer(job.range.high as i64));
    let mut sql = Vec::new();
    template.substitute(&variables, &mut sql);
    sql
}

/// Copy the rows of a range.
fn copy_rows(
    shared: &Shared<'_>,
    job: Job,
    copy: &Copy,
    connection: &mut Session,
    stop: &Stop,
) -> Result<(), Failure> {
    let section = &shared.plan.sections[job.section].name;
    let mut rows = RowWriter::new(
        copy,
        shared.slots,
        shared.variables.clone(),
        section,
        job.range,
    );
    connection.begin_copy(copy.statement.as_bytes())?;
    loop {
        if stop.is_set() {
            return connection.give_up_copy("stopped");
        }
        match rows.next_message() {
            Ok(None) => return connection.end_copy(),
            Ok(Some(message)) => {
                connection.send(message.bytes)?;
                shared.progress[job.section].add_rows(message.rows);
            }
            Err(RowError { row, message }) => {
                // The server's answer to giving up says less than the reason.
                let _ = connection.give_up_copy(&message);
                return Err(Failure::local(format!("row {row}: {message}")));
            }
        }
    }
}
