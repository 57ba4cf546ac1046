//! `-i`: the standard tables, step by step; what is said of it goes to stderr in pgbench's words.
//!
//! ```text
//! steps ─► statements.rs (SQL) ─► session
//!      └─► loading.rs: rows.rs (COPY data) ─► one session in one transaction, or with --jobs several
//! ```

mod cancelling;
mod loading;
mod rows;
mod statements;
mod telling;

use std::sync::Arc;

use super::options::{InitOptions, Options};
use super::stop::Stop;
use super::tally::fixed;
use super::voice::Voice;
use crate::clock::{NS_PER_S, now_ns};
use crate::destination::Destination;
use crate::session::{Failure, Session};

use cancelling::Canceller;
use loading::Loading;
use statements::Schema;

/// How `-i` gets its sessions.
pub struct Connector<'a> {
    /// Opens one; says itself why it could not.
    pub open: &'a dyn Fn() -> Option<Session>,
    /// Where they lead, for cancel requests.
    pub destination: Arc<Destination>,
}

/// One session that does steps, and what it needs for them.
struct Steps<'a> {
    options: &'a Options,
    init: &'a InitOptions,
    connector: &'a Connector<'a>,
    canceller: Arc<Canceller>,
    voice: &'a Voice,
    session: Session,
    server_major: u32,
    /// Step `t` was done: the tables are known to have no other shape.
    tables_are_ours: bool,
}

/// Do all steps.
///
/// # Errors
/// The first thing that fails; it was said.
pub fn run(
    options: &Options,
    init: &InitOptions,
    connector: &Connector<'_>,
    voice: &Voice,
) -> Result<(), Stop> {
    let canceller = Canceller::new(connector.destination.clone());
    if let Err(error) = canceller.clone().watch() {
        voice.error(&format!("could not wait for signals: {error}"));
        return Err(Stop::Failed);
    }
    let Some(session) = open(connector, &canceller) else {
        voice.error("could not create connection for initialization");
        return Err(Stop::Failed);
    };
    let mut steps = Steps {
        options,
        init,
        connector,
        server_major: major(session.server_version.as_deref()),
        canceller,
        voice,
        session,
        tables_are_ours: false,
    };
    let mut done: Vec<String> = Vec::new();
    let mut total_s = 0.0;
    for step in init.steps.chars() {
        let begin_ns = now_ns();
        let done_now = steps.step(step);
        steps.canceller.settle();
        if let Some(name) = done_now? {
            let elapsed_s = (now_ns() - begin_ns) as f64 / NS_PER_S as f64;
            done.push(format!("{name} {} s", fixed(elapsed_s, 2)));
            total_s += elapsed_s;
        }
    }
    eprintln!("done in {} s ({}).", fixed(total_s, 2), done.join(", "));
    Ok(())
}

/// A session whose notices are told and which a signal cancels.
fn open(connector: &Connector<'_>, canceller: &Canceller) -> Option<Session> {
    let mut session = (connector.open)()?;
    session.tell_notices(|words| eprintln!("{words}"));
    canceller.register(session.cancel_key.clone());
    Some(session)
}

/// The major version a server tells of itself; 0 when it tells none.
fn major(version: Option<&str>) -> u32 {
    let digits = |text: &str| {
        text.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    version.and_then(digits).unwrap_or(0)
}

impl Steps<'_> {
    /// Do one step; the name it has in the last line. None: there is nothing to do.
    fn step(&mut self, step: char) -> Result<Option<&'static str>, Stop> {
        let schema = Schema::new(self.options, self.init, self.server_major);
        let name = match step {
            'd' => {
                eprintln!("dropping old tables...");
                self.execute(&[statements::drop_tables()])?;
                "drop tables"
            }
            't' => {
                eprintln!("creating tables...");
                self.execute(&schema.tables())?;
                if self.init.partitions > 0 {
                    eprintln!("creating {} partitions...", self.init.partitions);
                    self.execute(&schema.partitions())?;
                }
                self.tables_are_ours = true;
                "create tables"
            }
            'g' => {
                eprintln!("generating data (client-side)...");
                self.load()?;
                "client-side generate"
            }
            'G' => {
                eprintln!("generating data (server-side)...");
                let mut sql = vec!["begin".to_owned(), statements::truncate_tables()];
                sql.extend(schema.server_side_rows());
                sql.push("commit".to_owned());
                self.execute(&sql)?;
                "server-side generate"
            }
            'v' => {
                eprintln!("vacuuming...");
                self.execute(&statements::vacuum())?;
                "vacuum"
            }
            'p' => {
                eprintln!("creating primary keys...");
                self.execute(&schema.primary_keys())?;
                "primary keys"
            }
            'f' => {
                eprintln!("creating foreign keys...");
                self.execute(&statements::foreign_keys())?;
                "foreign keys"
            }
            _ => return Ok(None),
        };
        Ok(Some(name))
    }

    /// Run statements; the first that fails ends it.
    fn execute(&mut self, statements: &[String]) -> Result<(), Stop> {
        for sql in statements {
            self.canceller.check()?;
            self.session
                .query(sql.as_bytes())
                .map_err(|failure| query_failed(self.voice, &failure, sql))?;
        }
        Ok(())
    }

    fn load(&mut self) -> Result<(), Stop> {
        let schema = Schema::new(self.options, self.init, self.server_major);
        let account_ranges = schema.account_ranges();
        let loading = Loading {
            options: self.options,
            voice: self.voice,
            canceller: &self.canceller,
            server_major: self.server_major,
            tables_are_ours: self.tables_are_ours,
            account_ranges: &account_ranges,
        };
        if self.init.jobs < 2 {
            return loading.in_one_transaction(&mut self.session);
        }
        loading.small_tables(&mut self.session)?;
        let mut sessions = Vec::new();
        for _ in 0..self.init.jobs {
            let Some(session) = open(self.connector, &self.canceller) else {
                self.voice
                    .error("could not create connection for initialization");
                return Err(Stop::Failed);
            };
            sessions.push(session);
        }
        loading.accounts_in_parallel(&mut self.session, sessions)
    }
}

/// Say that a statement failed.
fn query_failed(voice: &Voice, failure: &Failure, sql: &str) -> Stop {
    voice.error(&format!("query failed: {}", failure.wording));
    voice.detail(&format!("Query was: {sql}"));
    Stop::Failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_tells_its_major_version() {
        assert_eq!(15, major(Some("15.18 (Debian 15.18-0+deb12u1)")));
        assert_eq!(19, major(Some("19devel")));
        assert_eq!(9, major(Some("9.6.24")));
        assert_eq!(0, major(None));
    }
}
