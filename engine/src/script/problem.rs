//! What is wrong with a script, and exactly where; printed as one line, the source line and a
//! caret.

use std::fmt;

use crate::program::ScriptProblem;

impl fmt::Display for ScriptProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            line,
            column,
            message,
            source_line,
        } = self;
        // Tabs stay tabs before the caret, so that it stands under its character in any terminal.
        let under = |c| if c == '\t' { '\t' } else { ' ' };
        let indent: String = source_line
            .chars()
            .map(under)
            .chain(std::iter::repeat(' '))
            .take(column - 1)
            .collect();
        write!(
            out,
            "{source}:{line}:{column}: {message}\n{source_line}\n{indent}^"
        )
    }
}

/// A message at a byte offset of a source text; becomes a [`ScriptProblem`] once the file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Byte offset into the whole script.
    pub offset: usize,
    /// One lower-case line.
    pub message: String,
    /// When pgbench notices it.
    pub noticed: Noticed,
}

/// When pgbench notices a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// Before it connects.
    WhenParsed,
    /// When a client comes to the command.
    WhenRun,
}

impl Fault {
    /// A fault at `offset`.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            noticed: Noticed::WhenParsed,
        }
    }

    /// A fault at `offset` that pgbench notices only when a client comes to the command.
    pub fn when_run(offset: usize, message: impl Into<String>) -> Self {
        Self {
            noticed: Noticed::WhenRun,
            ..Self::new(offset, message)
        }
    }

    /// Find the line and column of this fault in the text it was found in.
    pub fn locate(self, file: &str, source: &str) -> ScriptProblem {
        let mut offset = self.offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = source[offset..]
            .find('\n')
            .map_or(source.len(), |length| offset + length);
        ScriptProblem {
            source: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: source[line_start..offset].chars().count() + 1,
            message: self.message,
            source_line: source[line_start..line_end]
                .trim_end_matches('\r')
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn a_fault_is_shown_with_its_line_and_a_caret_under_the_character() {
        let problem = Fault::new("a\n\té ".len(), "bad").locate("f.sql", "a\n\té x\r\nb");
        assert_eq!(problem.to_string(), "f.sql:2:4: bad\n\té x\n\t  ^");
    }

    #[test]
    fn a_fault_at_the_end_of_the_text_stands_after_the_last_character() {
        let problem = Fault::new(99, "unterminated").locate("f", "ab");
        assert_eq!((problem.line, problem.column), (1, 3));
        assert_eq!(problem.to_string(), "f:1:3: unterminated\nab\n  ^");
    }
}
