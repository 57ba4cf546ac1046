//! What comes before a run, in one session: the line that names the versions; what the standard tables are, and vacuum.

use super::emulation::Emulation;
use super::options::{Options, Origin, PartitionMethod, Switch};
use super::stop::Stop;
use super::voice::Voice;
use crate::session::{Failure, Session};

/// SQLSTATE of a table that is not there.
const UNDEFINED_TABLE: &str = "42P01";

/// What is known of the standard tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Counted where a built-in script runs, else given.
    pub scale: i64,
    /// Of pgbench_accounts; None: an ordinary table, or not looked at.
    pub partitions: Option<(PartitionMethod, u64)>,
}

/// Look at the tables, and vacuum them.
///
/// # Errors
/// The tables of a built-in script are not there; it was told.
pub fn prepare(
    options: &Options,
    session: &mut Session,
    database: &str,
    voice: &Voice,
) -> Result<Tables, Stop> {
    let built_in = options
        .scripts
        .iter()
        .any(|script| script.origin == Origin::BuiltIn);
    let tables = if built_in {
        look(options, session, database, voice)?
    } else {
        Tables {
            scale: options.scale.map_or(1, i64::from),
            partitions: None,
        }
    };
    vacuum(options, session, voice);
    Ok(tables)
}

/// `pgbench (18.4)`, or `pgbench (18.4, server 16.14)` where the versions differ.
pub fn print_versions(emulation: Emulation, session: &Session) {
    println!("{}", versions(emulation, session.server_version.as_deref()));
}

fn versions(emulation: Emulation, server: Option<&str>) -> String {
    let own = emulation.version();
    match server {
        // Minor versions of the emulated one have no differences: it is that one.
        Some(server) if major(server) == emulation.number() => format!("pgbench ({server})"),
        Some(server) => format!("pgbench ({own}, server {server})"),
        None => format!("pgbench ({own})"),
    }
}

/// The number a version begins with.
fn major(version: &str) -> u32 {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn look(
    options: &Options,
    session: &mut Session,
    database: &str,
    voice: &Voice,
) -> Result<Tables, Stop> {
    let uninitialized = || {
        voice.hint(&format!(
            "Perhaps you need to do initialization (\"pgbench -i\") in database \"{database}\"."
        ));
        Stop::Failed
    };
    let counted = session.rows("select count(*) from pgbench_branches");
    let counted = counted.map_err(|failure| {
        voice.error(&format!(
            "could not count number of branches: {}",
            failure.wording
        ));
        match failure.sqlstate.as_deref() {
            Some(UNDEFINED_TABLE) => uninitialized(),
            _ => Stop::Failed,
        }
    })?;
    let scale = first(&counted, 0)
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    if options.scale.is_some() {
        voice.warning(&format!(
            "scale option ignored, using count from pgbench_branches table ({scale})"
        ));
    }
    let partitions = match session.rows(include_str!("partitions.sql")) {
        // An old server has no partitions.
        Err(Failure { .. }) => None,
        Ok(rows) if rows.is_empty() => {
            voice.error("no pgbench_accounts table found in search_path");
            return Err(uninitialized());
        }
        Ok(rows) => {
            let count = first(&rows, 1).and_then(|count| count.parse().ok());
            let method = match first(&rows, 0) {
                Some("r") => Some(PartitionMethod::Range),
                Some("h") => Some(PartitionMethod::Hash),
                _ => None,
            };
            method.zip(count)
        }
    };
    Ok(Tables { scale, partitions })
}

/// A column of the first row.
fn first(rows: &[Vec<Option<String>>], column: usize) -> Option<&str> {
    rows.first()?.get(column)?.as_deref()
}

fn vacuum(options: &Options, session: &mut Session, voice: &Voice) {
    let mut attempt = |sql: &str| {
        if let Err(failure) = session.query(sql.as_bytes()) {
            voice.error(&failure.wording);
            voice.detail("(ignoring this error and continuing anyway)");
        }
    };
    if !options.has(Switch::NoVacuum) {
        eprint!("starting vacuum...");
        attempt("vacuum pgbench_branches");
        attempt("vacuum pgbench_tellers");
        attempt("truncate pgbench_history");
        eprintln!("end.");
    }
    if options.has(Switch::VacuumAll) && !options.has(Switch::NoVacuum) {
        eprint!("starting vacuum pgbench_accounts...");
        attempt("vacuum analyze pgbench_accounts");
        eprintln!("end.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_named_where_it_is_another_version() {
        let told = |server| versions(Emulation::V15, server);
        assert_eq!(
            "pgbench (15.18 (Debian 15.18-0+deb12u1))",
            told(Some("15.18 (Debian 15.18-0+deb12u1)"))
        );
        assert_eq!("pgbench (15.18, server 16.14)", told(Some("16.14")));
        assert_eq!("pgbench (15.18, server 19beta1)", told(Some("19beta1")));
        assert_eq!("pgbench (15.18)", told(None));
    }
}
