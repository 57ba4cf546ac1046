//! Where one SQL command of a script ends: quotes, dollar quotes, comments and parentheses as psql
//! reads them.
//!
//! A command ends at a `;` outside all of these, before a backslash command, or at the end of the
//! text; in scripts of the age of `\setrandom` also at the end of its line. `\;` puts a `;` into
//! the command.

use super::problem::Fault;
use super::variables::is_name_byte;

/// Whether the end of a line ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newline {
    /// A blank, as since pgbench 9.6.
    Blank,
    /// The end of a command, as before: files that use `\setrandom` are read so.
    EndsCommand,
}

/// One piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The command as it is sent, without blanks and comments before it; empty when there was none.
    pub text: String,
    /// Byte offset of the command's first character.
    pub begin: usize,
    /// Byte offset after the piece: of the backslash, or behind the `;` or line end.
    pub end: usize,
    /// Whether a backslash command follows at `end`.
    pub before_backslash: bool,
}

/// Read the piece of `source` that begins at `begin`.
///
/// # Errors
/// Quotes and comments that do not end, at their beginning.
pub fn next_piece(source: &str, begin: usize, newline: Newline) -> Result<Piece, Fault> {
    let mut reader = Reader {
        source,
        offset: begin,
        copied: begin,
        text: String::new(),
        begin: None,
        parentheses: 0,
        words: Words::default(),
    };
    let (end, before_backslash) = reader.read(newline)?;
    reader.copy_until(end);
    let text = reader.text.trim_end().to_owned();
    Ok(Piece {
        text,
        begin: reader.begin.unwrap_or(end),
        end: reader.offset,
        before_backslash,
    })
}

/// The first words of a command, to know the body of `CREATE FUNCTION … BEGIN ATOMIC … END`.
#[derive(Default)]
struct Words {
    count: usize,
    creates: bool,
    creates_routine: bool,
    bodies: usize,
}

impl Words {
    /// Note one unquoted word. Inside a routine's body, BEGIN and CASE open, END closes.
    fn note(&mut self, word: &str) {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        self.count += 1;
        match self.count {
            1 => self.creates = is("create"),
            2..=4 if self.creates && (is("function") || is("procedure")) => {
                self.creates_routine = true
            }
            _ => {}
        }
        if self.creates_routine {
            if is("begin") || (is("case") && self.bodies > 0) {
                self.bodies += 1;
            } else if is("end") {
                self.bodies = self.bodies.saturating_sub(1);
            }
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    offset: usize,
    /// Everything of the command before this offset is in `text`.
    copied: usize,
    text: String,
    begin: Option<usize>,
    parentheses: usize,
    words: Words,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        &self.source.as_bytes()[self.offset..]
    }

    /// Take the source up to `offset` over into the text, if the command has begun.
    fn copy_until(&mut self, offset: usize) {
        if self.begin.is_some() && offset > self.copied {
            self.text.push_str(&self.source[self.copied..offset]);
        }
        self.copied = offset;
    }

    fn begin_here(&mut self) {
        if self.begin.is_none() {
            self.begin = Some(self.offset);
            self.copied = self.offset;
        }
    }

    /// Read to the end of the piece: where its text ends, and whether a backslash command follows.
    fn read(&mut self, newline: Newline) -> Result<(usize, bool), Fault> {
        loop {
            let rest = self.rest();
            let Some(&byte) = rest.first() else {
                return Ok((self.offset, false));
            };
            match byte {
                b'\n'
                    if newline == Newline::EndsCommand
                        && self.begin.is_some()
                        && self.parentheses == 0 =>
                {
                    self.offset += 1;
                    return Ok((self.offset - 1, false));
                }
                b'-' if rest.starts_with(b"--") => self.skip_line(),
                _ if byte.is_ascii_whitespace() || byte == 0x0b => self.offset += 1,
                b'\\' => match rest.get(1) {
                    Some(b';' | b':') => self.escaped(),
                    _ => return Ok((self.offset, true)),
                },
                b';' => {
                    self.begin_here();
                    self.offset += 1;
                    if self.parentheses == 0 && self.words.bodies == 0 {
                        return Ok((self.offset, false));
                    }
                }
                _ => self.token(byte)?,
            }
        }
    }

    /// `\;` and `\:` put the character itself into the command.
    fn escaped(&mut self) {
        self.begin_here();
        self.copy_until(self.offset);
        self.offset += 1;
        self.copied = self.offset;
        self.offset += 1;
        self.words = Words::default();
    }

    fn skip_line(&mut self) {
        self.offset += self
            .rest()
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(self.rest().len());
    }

    /// Anything that is neither blank nor the end of a command.
    fn token(&mut self, byte: u8) -> Result<(), Fault> {
        self.begin_here();
        match byte {
            b'(' => self.parentheses += 1,
            b')' => self.parentheses = self.parentheses.saturating_sub(1),
            b'\'' => return self.quoted(b'\'', Backslash::Plain),
            b'"' => return self.quoted(b'"', Backslash::Plain),
            b'/' if self.rest().starts_with(b"/*") => return self.comment(),
            b'$' => return self.dollar(),
            _ if is_name_byte(byte) => return self.word(),
            _ => {}
        }
        self.offset += 1;
        Ok(())
    }

    /// A word or number; `E'…'` is a string with backslashes.
    fn word(&mut self) -> Result<(), Fault> {
        let rest = self.rest();
        let length = rest
            .iter()
            .take_while(|&&byte| is_name_byte(byte) || byte == b'$')
            .count();
        if length == 1 && matches!(rest[0], b'e' | b'E') && rest.get(1) == Some(&b'\'') {
            self.offset += 1;
            return self.quoted(b'\'', Backslash::Escapes);
        }
        let first_is_digit = rest[0].is_ascii_digit();
        let word = &self.source[self.offset..self.offset + length];
        if !first_is_digit {
            self.words.note(word);
        }
        self.offset += length;
        Ok(())
    }

    /// A string or quoted name; a doubled quote needs no care: it is the end of one and the start
    /// of the next.
    fn quoted(&mut self, quote: u8, backslash: Backslash) -> Result<(), Fault> {
        let begin = self.offset;
        let mut inside = 1;
        while let Some(&byte) = self.rest().get(inside) {
            inside += 1;
            if byte == quote {
                self.offset += inside;
                return Ok(());
            }
            if byte == b'\\' && backslash == Backslash::Escapes {
                inside += 1;
            }
        }
        let what = if quote == b'"' {
            "quoted name"
        } else {
            "quoted string"
        };
        Err(Fault::new(begin, format!("unterminated {what}")))
    }

    /// `/* … */`, which nest.
    fn comment(&mut self) -> Result<(), Fault> {
        let begin = self.offset;
        let rest = self.rest();
        let (mut depth, mut inside) = (0usize, 0);
        loop {
            match rest.get(inside..inside + 2) {
                Some(b"/*") => (depth, inside) = (depth + 1, inside + 2),
                Some(b"*/") => (depth, inside) = (depth - 1, inside + 2),
                Some(_) => inside += 1,
                None => return Err(Fault::new(begin, "unterminated comment")),
            }
            if depth == 0 {
                self.offset += inside;
                return Ok(());
            }
        }
    }

    /// `$tag$ … $tag$`, or a `$` that begins none.
    fn dollar(&mut self) -> Result<(), Fault> {
        let begin = self.offset;
        let rest = self.rest();
        let tag = rest[1..]
            .iter()
            .take_while(|&&byte| is_name_byte(byte))
            .count();
        if rest.get(1 + tag) != Some(&b'$') || (tag > 0 && rest[1].is_ascii_digit()) {
            self.offset += 1;
            return Ok(());
        }
        let delimiter = &self.source[begin..begin + tag + 2];
        match self.source[begin + delimiter.len()..].find(delimiter) {
            Some(length) => {
                self.offset += length + 2 * delimiter.len();
                Ok(())
            }
            None => Err(Fault::new(begin, "unterminated dollar-quoted string")),
        }
    }
}

/// What a backslash in a string means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// Itself.
    Plain,
    /// It takes the next character's meaning away.
    Escapes,
}

#[cfg(test)]
mod tests {
    use super::{Newline, next_piece};

    fn pieces(source: &str, newline: Newline) -> Vec<String> {
        let mut found = Vec::new();
        let mut offset = 0;
        while offset < source.len() {
            let piece = next_piece(source, offset, newline).unwrap();
            assert!(!piece.before_backslash);
            offset = piece.end;
            if !piece.text.is_empty() {
                found.push(piece.text);
            }
        }
        found
    }

    #[test]
    fn semicolons_end_commands_only_outside_quotes_comments_and_parentheses() {
        let source = "-- c;\n select 'a;b', \"c;d\", $$e;f$$, $t$g;$$h$t$, E'\\';' /* ; /* ; */ ; */ -- ;\n, (1;2);\nend";
        let expected = [source[6..source.len() - 4].trim(), "end"];
        assert_eq!(pieces(source, Newline::Blank), expected);
    }

    #[test]
    fn an_escaped_semicolon_joins_commands() {
        assert_eq!(
            pieces("select 1 \\; select 2;", Newline::Blank),
            ["select 1 ; select 2;"]
        );
    }

    #[test]
    fn bodies_of_routines_keep_their_semicolons() {
        let routine = "create or replace function f() begin atomic select case when a then 1 end; select 2; end;";
        assert_eq!(
            pieces(&format!("begin;{routine}end;"), Newline::Blank),
            ["begin;", routine, "end;"]
        );
    }

    #[test]
    fn in_old_scripts_a_line_is_a_command() {
        let source = "BEGIN\nselect f(1,\n 2)\n\n-- c\nEND;\n";
        assert_eq!(
            pieces(source, Newline::EndsCommand),
            ["BEGIN", "select f(1,\n 2)", "END;"]
        );
    }

    #[test]
    fn what_does_not_end_is_a_fault_at_its_beginning() {
        for (source, offset) in [
            ("select 'a", 7),
            ("a \"b", 2),
            ("/* /* */", 0),
            ("x $a$ $b$", 2),
        ] {
            assert_eq!(
                next_piece(source, 0, Newline::Blank).unwrap_err().offset,
                offset,
                "{source}"
            );
        }
    }

    #[test]
    fn a_dollar_inside_a_name_or_parameter_begins_no_quote() {
        assert_eq!(
            pieces("select a$b$; select $1, $2;", Newline::Blank),
            ["select a$b$;", "select $1, $2;"]
        );
    }
}
