//! Progress of loading on stderr: a line each 100,000 rows, or with `-q` each five seconds and at the end.

use std::io::{IsTerminal, Write};

use super::super::emulation::Emulation;
use super::super::options::{Options, Switch};
use super::super::tally::fixed;
use super::rows::Table;

/// Rows between two lines.
const ROWS_PER_LINE: u64 = 100_000;
/// Seconds between two lines of `-q`.
const QUIET_STEP_S: f64 = 5.0;
/// With `-q`, pgbench looks at the clock when it has made so many rows.
const QUIET_ROWS: u64 = 100;

/// What stands at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    /// A newline.
    Newline,
    /// A carriage return: the next line takes the place of this one, on a terminal.
    Return,
}

/// Tells of one table's rows.
#[derive(Clone, Debug)]
pub struct Teller {
    table: Table,
    rows: u64,
    quiet: bool,
    with_name: bool,
    line_end: LineEnd,
    /// Rows done at the last call.
    done: u64,
    /// Of the last line.
    chars: usize,
    next_quiet_s: f64,
}

impl Teller {
    /// For a table of so many rows.
    pub fn new(options: &Options, table: Table, rows: u64) -> Self {
        let line_end = if std::io::stderr().is_terminal() {
            LineEnd::Return
        } else {
            LineEnd::Newline
        };
        Self::ending(options, table, rows, line_end)
    }

    fn ending(options: &Options, table: Table, rows: u64, line_end: LineEnd) -> Self {
        Self {
            table,
            rows,
            quiet: options.has(Switch::Quiet),
            // Since 17, all three tables are told of, by name.
            with_name: options.emulation >= Emulation::V17,
            line_end,
            done: 0,
            chars: 0,
            next_quiet_s: QUIET_STEP_S,
        }
    }

    /// `done` rows are on their way after `elapsed_s`: what is to be written.
    pub fn tell(&mut self, done: u64, elapsed_s: f64) -> Option<String> {
        let before = std::mem::replace(&mut self.done, done);
        if !self.with_name && self.table != Table::Accounts {
            return None;
        }
        let due = if self.quiet {
            let at_end = done == self.rows && done % QUIET_ROWS == 0;
            let due = at_end || elapsed_s >= self.next_quiet_s;
            if due {
                let steps = (elapsed_s / QUIET_STEP_S).floor() + 1.0;
                self.next_quiet_s = steps * QUIET_STEP_S;
            }
            due
        } else {
            done / ROWS_PER_LINE > before / ROWS_PER_LINE
        };
        due.then(|| self.line(done, elapsed_s))
    }

    fn line(&mut self, done: u64, elapsed_s: f64) -> String {
        let rows = self.rows;
        let percent = done * 100 / rows;
        let name = if self.with_name {
            format!(" of {}", self.table.name())
        } else {
            String::new()
        };
        let remaining_s = (rows - done) as f64 * elapsed_s / done as f64;
        let mut line = format!(
            "{done} of {rows} tuples ({percent}%){name} done (elapsed {} s, remaining {} s)",
            fixed(elapsed_s, 2),
            fixed(remaining_s, 2)
        );
        let chars = line.len();
        // What is left of a longer line before is written over.
        line.push_str(&" ".repeat(self.chars.saturating_sub(chars)));
        self.chars = chars;
        line.push(match self.line_end {
            LineEnd::Newline => '\n',
            LineEnd::Return => '\r',
        });
        line
    }

    /// The table is loaded: what clears the terminal's line.
    pub fn clear(&self) -> Option<String> {
        let shown = self.chars > 0 && self.line_end == LineEnd::Return;
        shown.then(|| format!("{}\r", " ".repeat(self.chars)))
    }
}

/// Write to stderr as it is.
pub fn show(text: Option<String>) {
    if let Some(text) = text {
        // Whoever reads may have gone; the load goes on.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::test_options::options;
    use super::*;

    fn teller(emulation: Emulation, switches: &[Switch], table: Table, rows: u64) -> Teller {
        let options = options(emulation, &[], switches);
        Teller::ending(&options, table, rows, LineEnd::Newline)
    }

    #[test]
    fn a_line_each_100_000_rows() {
        let mut old = teller(Emulation::V16, &[], Table::Accounts, 200_000);
        assert_eq!(None, old.tell(90_000, 0.01));
        assert_eq!(
            Some("100000 of 200000 tuples (50%) done (elapsed 0.03 s, remaining 0.03 s)\n".into()),
            old.tell(100_000, 0.034)
        );
        assert_eq!(None, old.tell(110_000, 0.04));
        let mut new = teller(Emulation::V17, &[], Table::Accounts, 100_000);
        let line = "100000 of 100000 tuples (100%) of pgbench_accounts done (elapsed 0.05 s, remaining 0.00 s)\n";
        assert_eq!(Some(line.into()), new.tell(100_000, 0.05));
    }

    #[test]
    fn quiet_is_told_by_time_and_at_the_end() {
        let mut quiet = teller(Emulation::V18, &[Switch::Quiet], Table::Accounts, 300_000);
        assert_eq!(None, quiet.tell(100_000, 4.9));
        assert!(quiet.tell(110_000, 5.1).is_some());
        assert_eq!(None, quiet.tell(120_000, 9.9));
        assert!(quiet.tell(130_000, 10.0).is_some());
        assert!(quiet.tell(300_000, 10.1).is_some());
    }

    #[test]
    fn small_tables_are_told_since_17() {
        let tell = |emulation, table, rows, switches: &[Switch]| {
            teller(emulation, switches, table, rows).tell(rows, 0.001)
        };
        assert_eq!(None, tell(Emulation::V18, Table::Tellers, 10, &[]));
        let line = "100 of 100 tuples (100%) of pgbench_branches done (elapsed 0.00 s, remaining 0.00 s)\n";
        assert_eq!(
            Some(line.into()),
            tell(Emulation::V18, Table::Branches, 100, &[Switch::Quiet])
        );
        assert_eq!(None, tell(Emulation::V16, Table::Branches, 100_000, &[]));
    }

    #[test]
    fn a_terminal_has_one_line() {
        let options = options(Emulation::V16, &[], &[]);
        let mut teller = Teller::ending(&options, Table::Accounts, 1_000_000, LineEnd::Return);
        assert_eq!(None, teller.clear());
        let first = teller.tell(100_000, 99.0).unwrap();
        let second = teller.tell(900_000, 9.0).unwrap();
        assert_eq!(first.len(), second.len());
        assert!(second.ends_with("remaining 1.00 s)   \r"), "{second:?}");
        assert_eq!(second.trim_end().len() + 1, teller.clear().unwrap().len());
    }
}
