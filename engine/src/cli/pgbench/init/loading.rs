//! Step `g`: rows made here and sent by COPY, frozen where the server can, in one transaction.
//!
//! With `--jobs` above 1 the small tables are loaded so, and pgbench_accounts over several sessions at once, a
//! transaction for each range: not frozen, which only the transaction that truncated a table may do.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::options::Options;
use super::super::stop::Stop;
use super::super::voice::Voice;
use super::cancelling::Canceller;
use super::query_failed;
use super::rows::{Columns, ROWS_PER_MESSAGE, Table};
use super::statements::truncate_tables;
use super::telling::{Teller, show};
use crate::clock::{NS_PER_S, now_ns};
use crate::session::{Failure, Session};

/// Rows of one COPY when several sessions load.
const ROWS_PER_RANGE: u64 = 500_000;
/// The first server whose frozen rows are worth it: their pages are marked all-visible, too.
const FREEZE_SINCE: u32 = 14;
/// Columns whose values are the same in all rows get them as defaults while they are loaded: the server need not
/// read them from the rows.
const SET_DEFAULTS: &str =
    "alter table pgbench_accounts alter abalance set default 0, alter filler set default ''";
/// And then they are as they were.
const DROP_DEFAULTS: &str =
    "alter table pgbench_accounts alter abalance drop default, alter filler drop default";

/// What loading depends on.
#[derive(Clone, Copy)]
pub struct Loading<'a> {
    /// The command line.
    pub options: &'a Options,
    /// Says what fails.
    pub voice: &'a Voice,
    /// Ends it early.
    pub canceller: &'a Canceller,
    /// Of the server.
    pub server_major: u32,
    /// The tables were created by this program, moments ago.
    pub tables_are_ours: bool,
    /// Where it has put accounts, if it has created them.
    pub account_ranges: &'a [(String, (u64, u64))],
}

/// Rows on their way, told by whoever sends them.
struct Tracker {
    begin_ns: u64,
    /// Rows sent, and who tells of them.
    state: Mutex<(u64, Teller)>,
}

impl Tracker {
    fn new(options: &Options, table: Table, rows: u64) -> Self {
        Self {
            begin_ns: now_ns(),
            state: Mutex::new((0, Teller::new(options, table, rows))),
        }
    }

    fn sent(&self, rows: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, teller) = &mut *state;
        *done += rows;
        let elapsed_s = (now_ns() - self.begin_ns) as f64 / NS_PER_S as f64;
        show(teller.tell(*done, elapsed_s));
    }

    fn clear(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        show(state.1.clear());
    }
}

impl Loading<'_> {
    /// All three tables.
    ///
    /// # Errors
    /// What fails first; it was said.
    pub fn in_one_transaction(&self, session: &mut Session) -> Result<(), Stop> {
        self.begin(session)?;
        for table in Table::ALL {
            self.table(session, table)?;
        }
        self.execute(session, "commit")
    }

    /// Branches and tellers; pgbench_accounts is emptied.
    ///
    /// # Errors
    /// What fails first; it was said.
    pub fn small_tables(&self, session: &mut Session) -> Result<(), Stop> {
        self.begin(session)?;
        for table in [Table::Branches, Table::Tellers] {
            self.table(session, table)?;
        }
        self.execute(session, "commit")
    }

    /// pgbench_accounts over these sessions; `session` looks after its defaults.
    ///
    /// # Errors
    /// What fails first; it was said.
    pub fn accounts_in_parallel(
        &self,
        session: &mut Session,
        sessions: Vec<Session>,
    ) -> Result<(), Stop> {
        if self.columns(Table::Accounts) == Columns::All {
            return self.spread(sessions);
        }
        self.execute(session, SET_DEFAULTS)?;
        let loaded = self.spread(sessions);
        // Also when it was cancelled: the defaults are no part of the tables.
        let dropped = session.query(DROP_DEFAULTS.as_bytes());
        loaded?;
        dropped.map_err(|failure| query_failed(self.voice, &failure, DROP_DEFAULTS))
    }

    fn spread(&self, mut sessions: Vec<Session>) -> Result<(), Stop> {
        let table = Table::Accounts;
        let rows = self.rows(table);
        let columns = self.columns(table);
        let named = columns.named();
        let tracker = Tracker::new(self.options, table, rows);
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let load = |session: &mut Session| {
            loop {
                let first = next.fetch_add(ROWS_PER_RANGE, Ordering::Relaxed);
                if first >= rows || failed.load(Ordering::Relaxed) {
                    return;
                }
                let span = (first + 1, rows.min(first + ROWS_PER_RANGE));
                let copied = session
                    .begin_copy(format!("copy {}{named} from stdin", table.name()).as_bytes())
                    .map_err(Trouble::Begin)
                    .and_then(|()| self.copy(session, table, span, columns, &tracker));
                if let Err(trouble) = copied
                    && !failed.swap(true, Ordering::Relaxed)
                {
                    self.say(&trouble);
                }
            }
        };
        std::thread::scope(|scope| {
            for session in &mut sessions {
                scope.spawn(|| load(session));
            }
        });
        tracker.clear();
        if failed.into_inner() {
            return Err(Stop::Failed);
        }
        Ok(())
    }

    fn rows(&self, table: Table) -> u64 {
        table.rows_per_scale() * u64::from(self.options.scale.unwrap_or(1))
    }

    fn begin(&self, session: &mut Session) -> Result<(), Stop> {
        self.execute(session, "begin")?;
        self.execute(session, &truncate_tables())
    }

    fn execute(&self, session: &mut Session, sql: &str) -> Result<(), Stop> {
        self.canceller.check()?;
        session
            .query(sql.as_bytes())
            .map_err(|failure| query_failed(self.voice, &failure, sql))
    }

    /// Load a table that this transaction has truncated.
    fn table(&self, session: &mut Session, table: Table) -> Result<(), Stop> {
        let columns = self.columns(table);
        if columns == Columns::Varying {
            self.execute(session, SET_DEFAULTS)?;
        }
        let whole = [(table.name().to_owned(), (1, self.rows(table)))];
        let parts = if columns == Columns::Varying {
            self.account_ranges
        } else {
            &whole
        };
        let tracker = Tracker::new(self.options, table, self.rows(table));
        for (name, span) in parts {
            let freeze = if self.can_freeze(session, name)? {
                " with (freeze on)"
            } else {
                ""
            };
            let sql = format!("copy {name}{} from stdin{freeze}", columns.named());
            session
                .begin_copy(sql.as_bytes())
                .map_err(Trouble::Begin)
                .and_then(|()| self.copy(session, table, *span, columns, &tracker))
                .map_err(|trouble| self.say(&trouble))?;
        }
        tracker.clear();
        if columns == Columns::Varying {
            self.execute(session, DROP_DEFAULTS)?;
        }
        Ok(())
    }

    /// Which columns are sent: tables of another origin may have defaults and columns of their own.
    fn columns(&self, table: Table) -> Columns {
        if table == Table::Accounts && self.tables_are_ours {
            Columns::Varying
        } else {
            Columns::All
        }
    }

    /// Whether rows of a table may be frozen: not those of a partitioned one, but those of a partition.
    fn can_freeze(&self, session: &mut Session, name: &str) -> Result<bool, Stop> {
        if self.server_major < FREEZE_SINCE {
            return Ok(false);
        }
        let sql = format!(
            "select relkind from pg_catalog.pg_class where oid = '{name}'::pg_catalog.regclass"
        );
        let rows = session
            .rows(&sql)
            .map_err(|failure| query_failed(self.voice, &failure, &sql))?;
        let kind = rows.first().and_then(|row| row.first().cloned().flatten());
        Ok(kind.as_deref() == Some("r"))
    }

    /// Send rows of a COPY that was begun, and end it.
    fn copy(
        &self,
        session: &mut Session,
        table: Table,
        (low, high): (u64, u64),
        columns: Columns,
        tracker: &Tracker,
    ) -> Result<(), Trouble> {
        let mut message = Vec::new();
        let mut first = low;
        while first <= high && !self.canceller.asked() {
            let last = high.min(first + ROWS_PER_MESSAGE - 1);
            table.message((first, last), columns, &mut message);
            session.send(&message).map_err(|_| Trouble::Send)?;
            tracker.sent(last + 1 - first);
            first = last + 1;
        }
        if self.canceller.asked() {
            // The cancel request may have come between two statements: this one must not end well.
            return session.give_up_copy("canceled").map_err(Trouble::End);
        }
        session.end_copy().map_err(Trouble::End)
    }

    fn say(&self, trouble: &Trouble) -> Stop {
        match trouble {
            Trouble::Begin(failure) => self
                .voice
                .error(&format!("unexpected copy in result: {}", failure.wording)),
            Trouble::Send => self.voice.error("PQputline failed"),
            Trouble::End(failure) => {
                eprintln!("{}", failure.wording);
                self.voice.error("PQendcopy failed");
            }
        }
        Stop::Failed
    }
}

/// Where a COPY failed.
enum Trouble {
    /// The server did not want rows.
    Begin(Failure),
    /// The connection was lost while rows were sent.
    Send,
    /// The server did not want these rows.
    End(Failure),
}
