//! Rows in COPY's text format: evaluated, escaped, put into buffers of one CopyData message each.

use super::ranges::Range;
use super::section::{Copy, RangeSlots};
use crate::random::Generator;
use crate::random::hashing::fnv1a;
use crate::script::evaluation::{Place, Scope};
use crate::script::values::Value;
use crate::script::variables::{Slot, Variables};

/// A buffer is sent when it has grown to this.
const BUFFER_BYTES: usize = 256 << 10;
/// Type and length of a CopyData message.
const HEADER_BYTES: usize = 5;

/// One whole CopyData message.
#[derive(Debug)]
pub struct RowMessage<'a> {
    /// Header included.
    pub bytes: &'a [u8],
    /// Number of rows in it.
    pub rows: u64,
}

/// A row that cannot be made.
#[derive(Debug)]
pub struct RowError {
    /// Its number.
    pub row: u64,
    /// Why.
    pub message: String,
}

/// Makes the rows of one range.
#[derive(Debug)]
pub struct RowWriter<'a> {
    copy: &'a Copy,
    slots: RangeSlots,
    variables: Variables,
    /// What sets the random values of this section apart from another's.
    seed: u64,
    next: u64,
    high: u64,
    buffer: Vec<u8>,
}

impl<'a> RowWriter<'a> {
    /// Rows of `range`; `section` is the section's name.
    pub fn new(
        copy: &'a Copy,
        slots: RangeSlots,
        mut variables: Variables,
        section: &str,
        range: Range,
    ) -> Self {
        variables.set(slots.low, Value::Integer(range.low as i64));
        variables.set(slots.high, Value::Integer(range.high as i64));
        let seed = section
            .bytes()
            .fold(0, |seed, byte| fnv1a(i64::from(byte), seed)) as u64;
        let buffer = Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4);
        Self {
            copy,
            slots,
            variables,
            seed,
            next: range.low,
            high: range.high,
            buffer,
        }
    }

    /// The next CopyData message; `None` when all rows are made.
    ///
    /// # Errors
    /// A row whose expressions have no value.
    pub fn next_message(&mut self) -> Result<Option<RowMessage<'_>>, RowError> {
        if self.next > self.high {
            return Ok(None);
        }
        let first = self.next;
        self.buffer.clear();
        self.buffer.extend_from_slice(b"d\0\0\0\0");
        while self.next <= self.high && self.buffer.len() < BUFFER_BYTES {
            self.row().map_err(|message| RowError {
                row: self.next,
                message,
            })?;
            self.next += 1;
        }
        let length = (self.buffer.len() - 1) as u32;
        self.buffer[1..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        Ok(Some(RowMessage {
            bytes: &self.buffer,
            rows: self.next - first,
        }))
    }

    #[inline]
    fn row(&mut self) -> Result<(), String> {
        let row = self.next;
        self.variables
            .set(self.slots.row, Value::Integer(row as i64));
        if !self.copy.assignments.is_empty() {
            // A generator for every row: its values do not depend on how rows are cut into ranges.
            let mut generator = Generator::from_seed(self.seed ^ row);
            for (slot, expression) in &self.copy.assignments {
                let mut scope = Scope {
                    variables: &mut self.variables,
                    generator: &mut generator,
                    place: Place::default(),
                };
                let value = scope
                    .evaluate(expression)
                    .map_err(|error| error.to_string())?;
                self.variables.set(*slot, value);
            }
        }
        self.copy
            .row
            .substitute_with(&self.variables, &mut self.buffer, append_field);
        Ok(())
    }
}

/// Append a value as a field of COPY's text format.
#[inline]
fn append_field(variables: &Variables, slot: Slot, out: &mut Vec<u8>) -> bool {
    if variables.is_null(slot) {
        out.extend_from_slice(b"\\N");
        return true;
    }
    let begin = out.len();
    variables.append_text(slot, out);
    if !variables.is_computed(slot) {
        escape_from(begin, out);
    }
    true
}

/// Put backslashes before what has a meaning in COPY's text format.
fn escape_from(begin: usize, out: &mut Vec<u8>) {
    let special = |byte: u8| match byte {
        b'\\' => Some(b'\\'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        _ => None,
    };
    if !out[begin..].iter().any(|&byte| special(byte).is_some()) {
        return;
    }
    let plain = out.split_off(begin);
    for byte in plain {
        match special(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(byte),
        }
    }
}
