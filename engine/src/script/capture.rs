//! Rows that become variables (`\gset`, `\aset`): kept until their result is complete, then
//! assigned.

use super::command::{Capture, CaptureKind};
use super::variables::{Slot, Variables, is_name_byte};
use crate::wire::message::{Columns, Row};

/// What one captured statement of one client needs; all buffers are reused.
#[derive(Debug, Default)]
pub struct CaptureState {
    /// For each column the variable it goes to; columns that no script mentions go nowhere.
    slots: Vec<Option<Slot>>,
    /// A column whose name is no variable's.
    bad_name: Option<String>,
    /// Values of the last row: (variable, end in `text`).
    staged: Vec<(Slot, usize)>,
    text: Vec<u8>,
    /// Rows of the current result, and whether more may come.
    rows: u64,
    complete: bool,
}

impl CaptureState {
    /// A new execution begins.
    pub fn begin(&mut self) {
        self.rows = 0;
        self.complete = false;
        self.staged.clear();
        self.text.clear();
    }

    /// The next result has these columns.
    pub fn columns(&mut self, capture: &Capture, columns: &Columns<'_>, variables: &Variables) {
        self.slots.clear();
        self.bad_name = None;
        for column in columns.names() {
            self.slots
                .push(variables.names().find_joined(&capture.prefix, column));
            let first = capture.prefix.as_bytes().first().or(column.first());
            let valid = first.is_some_and(|first| !first.is_ascii_digit())
                && column.iter().all(|&byte| is_name_byte(byte));
            if !valid && self.bad_name.is_none() {
                self.bad_name = Some(format!(
                    "{}{}",
                    capture.prefix,
                    String::from_utf8_lossy(column)
                ));
            }
        }
    }

    /// One row. NULL becomes an empty text, as in pgbench.
    pub fn row(&mut self, row: &Row<'_>) {
        if self.complete {
            self.begin();
        }
        self.rows += 1;
        self.staged.clear();
        self.text.clear();
        for (slot, value) in self.slots.iter().zip(row.values()) {
            if let Some(slot) = slot {
                self.text.extend_from_slice(value.unwrap_or_default());
                self.staged.push((*slot, self.text.len()));
            }
        }
    }

    /// The result is complete: `\aset` assigns its last row now.
    pub fn complete(&mut self, kind: CaptureKind, variables: &mut Variables) {
        if self.complete {
            self.begin();
        }
        self.complete = true;
        if kind == CaptureKind::All && self.rows > 0 {
            self.assign(variables);
        }
    }

    /// The statement is over: `\gset` assigns the last result's only row now.
    ///
    /// # Errors
    /// Another number of rows than one for `\gset`; columns whose names no variable can have.
    pub fn end(&mut self, kind: CaptureKind, variables: &mut Variables) -> Result<(), String> {
        if kind == CaptureKind::Last {
            if self.rows != 1 {
                return Err(format!("expected one row, got {}", self.rows));
            }
            self.assign(variables);
        }
        match &self.bad_name {
            Some(name) if self.rows > 0 => {
                let command = kind.name();
                Err(format!("{command}: invalid variable name: \"{name}\""))
            }
            _ => Ok(()),
        }
    }

    fn assign(&mut self, variables: &mut Variables) {
        let mut begin = 0;
        for (slot, end) in &self.staged {
            variables.set_text(*slot, &self.text[begin..*end]);
            begin = *end;
        }
    }
}
