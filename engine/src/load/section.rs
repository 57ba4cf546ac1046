//! A section compiled: SQL for ranges, or a COPY statement and the template of its rows.

use super::plan::LoadSection;
use crate::program::ScriptProblem;
use crate::script::command::Meta;
use crate::script::expression::Expression;
use crate::script::meta::{Parsed, line_end, parse_meta};
use crate::script::problem::Fault;
use crate::script::sql_text::{Newline, next_piece};
use crate::script::template::Template;
use crate::script::variables::{Names, Slot};

/// How a section's rows come into being.
#[derive(Clone, Debug)]
pub enum Work {
    /// SQL that is run for every range.
    Sql(Template),
    /// Rows made here.
    Copy(Copy),
}

/// COPY … FROM STDIN and its rows.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The statement, without its semicolon.
    pub statement: String,
    /// The table as written.
    pub table: String,
    /// One connection or several.
    pub streams: Streams,
    /// `\set` lines, evaluated for every row in this order.
    pub assignments: Vec<(Slot, Expression)>,
    /// One row in COPY's text format, newline included.
    pub row: Template,
}

/// Over how many connections a COPY may be spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Any number.
    Many,
    /// One: rows are loaded frozen, which PostgreSQL allows only in the transaction that truncated
    /// the table.
    OneFrozen,
}

/// The variables every section may use.
#[derive(Clone, Copy, Debug)]
pub struct RangeSlots {
    /// `:row`
    pub row: Slot,
    /// `:lo`
    pub low: Slot,
    /// `:hi`
    pub high: Slot,
}

impl RangeSlots {
    /// Their slots in `names`.
    pub fn new(names: &mut Names) -> Self {
        Self {
            row: names.slot("row"),
            low: names.slot("lo"),
            high: names.slot("hi"),
        }
    }
}

/// Compile a section. `given` are the variables of the plan.
///
/// # Errors
/// Every problem found, with its place in the section's script.
pub fn compile(
    section: &LoadSection,
    names: &mut Names,
    given: &[Slot],
) -> Result<Work, Vec<ScriptProblem>> {
    let source = section.script.as_str();
    let locate = |fault: Fault| vec![fault.locate(&section.source, source)];
    if let Some(offset) = source.find('\0') {
        return Err(locate(Fault::new(
            offset,
            "a zero byte cannot stand in a script",
        )));
    }
    let first = next_piece(source, 0, Newline::Blank).map_err(locate)?;
    if first.text.is_empty() {
        return Err(locate(Fault::new(
            0,
            format!("section {} has no SQL", section.name),
        )));
    }
    let Some((statement, table)) = copy_statement(&first.text) else {
        return Ok(Work::Sql(Template::parse(source.trim(), names)));
    };
    let copy = Copy {
        streams: if has_word(&statement, "freeze") {
            Streams::OneFrozen
        } else {
            Streams::Many
        },
        statement,
        table,
        assignments: Vec::new(),
        row: Template::parse("", names),
    };
    rows(copy, source, first.end, names, given)
        .map(Work::Copy)
        .map_err(|faults| faults.into_iter().flat_map(locate).collect())
}

/// The statement and table of a `COPY table … FROM STDIN …`.
fn copy_statement(text: &str) -> Option<(String, String)> {
    let statement = text.trim_end_matches(';').trim_end();
    let rest = statement
        .get(..4)
        .filter(|word| word.eq_ignore_ascii_case("copy"))
        .map(|_| &statement[4..])?;
    if !rest.starts_with(|c: char| c.is_whitespace()) || !has_word(rest, "stdin") {
        return None;
    }
    let rest = rest.trim_start();
    let mut quoted = false;
    let end = rest.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || c == '(')
    })?;
    Some((statement.to_owned(), rest[..end].to_owned()))
}

/// Whether a keyword stands in a statement.
fn has_word(statement: &str, keyword: &str) -> bool {
    statement
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word.eq_ignore_ascii_case(keyword))
}

/// Read what follows the COPY statement: `\set` lines and one row, up to `\.` or the end.
fn rows(
    mut copy: Copy,
    source: &str,
    begin: usize,
    names: &mut Names,
    given: &[Slot],
) -> Result<Copy, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut known = given.to_vec();
    let slots = RangeSlots::new(names);
    known.extend([slots.row, slots.low, slots.high]);
    let mut found = false;
    let mut offset = begin;
    while offset < source.len() {
        let end = source[offset..]
            .find('\n')
            .map_or(source.len(), |length| offset + length);
        let line = source[offset..end].trim_end_matches('\r');
        let mut next = end + 1;
        if line.trim() == "\\." {
            break;
        } else if is_meta(line) {
            let backslash = offset + (line.len() - line.trim_start().len());
            let end = line_end(source, backslash);
            next = end + 1;
            match parse_meta(source, (backslash, end), names) {
                Ok(Some(Parsed::Meta(Meta::Set(slot, expression)))) => {
                    check_known(&expression, &known, backslash, names, &mut faults);
                    known.push(slot);
                    copy.assignments.push((slot, expression));
                }
                Ok(_) => faults.push(Fault::new(backslash, "only \\set can stand before a row")),
                Err(fault) => faults.push(fault),
            }
        } else if found && !line.is_empty() {
            faults.push(Fault::new(
                offset,
                "a section has one row; this is a second one",
            ));
        } else if !line.is_empty() {
            found = true;
            copy.row = Template::parse(&format!("{line}\n"), names);
            for slot in copy.row.slots().filter(|slot| !known.contains(slot)) {
                let name = names.name(slot);
                let column = line.find(&format!(":{name}")).unwrap_or(0);
                faults.push(Fault::new(
                    offset + column,
                    format!("undefined variable \"{name}\""),
                ));
            }
        }
        offset = next;
    }
    if !found {
        faults.push(Fault::new(begin, "the row of the COPY is missing"));
    }
    if faults.is_empty() {
        Ok(copy)
    } else {
        Err(faults)
    }
}

/// Whether a line is a backslash command; `\N` and other escapes of COPY are not.
fn is_meta(line: &str) -> bool {
    let name = line.trim_start().strip_prefix('\\');
    name.is_some_and(|name| name.chars().take_while(char::is_ascii_alphabetic).count() > 1)
}

/// Variables of an expression must be known, since they are the same for every row.
fn check_known(
    expression: &Expression,
    known: &[Slot],
    offset: usize,
    names: &Names,
    faults: &mut Vec<Fault>,
) {
    let mut check = |inner: &Expression| check_known(inner, known, offset, names, faults);
    match expression {
        Expression::Constant(_) => {}
        Expression::Variable(slot) if known.contains(slot) => {}
        Expression::Variable(slot) => {
            let name = names.name(*slot);
            faults.push(Fault::new(offset, format!("undefined variable \"{name}\"")));
        }
        Expression::Call(_, arguments) => arguments.iter().for_each(check),
        Expression::And(sides) | Expression::Or(sides) => sides.iter().for_each(check),
        Expression::Case(branches, otherwise) => {
            for (condition, result) in branches {
                check(condition);
                check(result);
            }
            check(otherwise);
        }
    }
}
