//! Backslash commands from text: the name, then words, or an expression.

use super::command::{Amount, Capture, CaptureKind, Meta, Unit, Word};
use super::expression::Expression;
use super::expression_parser::parse_expression;
use super::functions::Function;
use super::problem::Fault;
use super::variables::{Names, Slot, is_name};

/// Most words a backslash command may have, its name included.
const WORDS_MAX: usize = 255;

/// What a backslash command turned out to be; branches get their targets once the whole script is
/// read.
#[derive(Debug)]
pub enum Parsed {
    /// A command of its own.
    Meta(Meta),
    /// It belongs to the SQL before it.
    Capture(Capture),
}

/// Where a backslash command's line ends: before its newline, continued lines included.
pub fn line_end(source: &str, begin: usize) -> usize {
    let bytes = source.as_bytes();
    let mut offset = begin;
    while offset < bytes.len() {
        match bytes[offset] {
            b'\\' if bytes[offset + 1..].starts_with(b"\r\n") => offset += 3,
            b'\\' if bytes[offset + 1..].starts_with(b"\n") => offset += 2,
            b'\n' => break,
            _ => offset += 1,
        }
    }
    offset.min(bytes.len())
}

/// Parse the command whose backslash is at `begin` and whose line ends at `end`; `None` for a lone
/// backslash.
///
/// # Errors
/// The first fault, at its place in `source`.
pub fn parse_meta(
    source: &str,
    (begin, end): (usize, usize),
    names: &mut Names,
) -> Result<Option<Parsed>, Fault> {
    let mut line = Line {
        source,
        offset: begin + 1,
        end,
    };
    let Some((name_offset, name)) = line.word() else {
        return Ok(None);
    };
    let meta = match name.to_ascii_lowercase().as_str() {
        "set" => {
            let slot = line.variable(names)?;
            Meta::Set(slot, line.expression(names)?)
        }
        "setrandom" => set_random(&mut line, names)?,
        "if" => Meta::If(line.expression(names)?, 0),
        "elif" => Meta::Elif(line.expression(names)?, 0, 0),
        "else" => line.nothing_more().map(|()| Meta::Else(0))?,
        "endif" => line.nothing_more().map(|()| Meta::Endif)?,
        "startpipeline" => line.nothing_more().map(|()| Meta::StartPipeline)?,
        "syncpipeline" => line.nothing_more().map(|()| Meta::SyncPipeline)?,
        "endpipeline" => line.nothing_more().map(|()| Meta::EndPipeline)?,
        "sleep" => sleep(&mut line, names)?,
        "setshell" => {
            let slot = line.variable(names)?;
            Meta::SetShell(slot, line.shell_words(names)?)
        }
        "shell" => Meta::Shell(line.shell_words(names)?),
        "gset" => return capture(&mut line, CaptureKind::Last).map(Some),
        "aset" => return capture(&mut line, CaptureKind::All).map(Some),
        _ => {
            return Err(Fault::new(
                name_offset - 1,
                format!("invalid command \\{name}"),
            ));
        }
    };
    Ok(Some(Parsed::Meta(meta)))
}

/// The rest of a backslash command's line.
struct Line<'a> {
    source: &'a str,
    offset: usize,
    end: usize,
}

impl<'a> Line<'a> {
    /// The next word, up to a blank, and where it begins.
    fn word(&mut self) -> Option<(usize, &'a str)> {
        let bytes = &self.source.as_bytes()[..self.end];
        let joins = |offset: usize| {
            bytes[offset] == b'\\' && matches!(bytes.get(offset + 1), Some(b'\n' | b'\r'))
        };
        let blank = |offset: usize| {
            bytes[offset].is_ascii_whitespace() || bytes[offset] == 0x0b || joins(offset)
        };
        while self.offset < self.end && blank(self.offset) {
            self.offset += 1;
        }
        let begin = self.offset;
        while self.offset < self.end && !blank(self.offset) {
            self.offset += 1;
        }
        (begin < self.offset).then(|| (begin, &self.source[begin..self.offset]))
    }

    fn needed_word(&mut self, what: &str) -> Result<(usize, &'a str), Fault> {
        self.word()
            .ok_or_else(|| Fault::new(self.end, format!("missing {what}")))
    }

    fn nothing_more(&mut self) -> Result<(), Fault> {
        match self.word() {
            None => Ok(()),
            Some((offset, word)) => {
                Err(Fault::new(offset, format!("unexpected argument ({word})")))
            }
        }
    }

    /// The name of the variable that is assigned.
    fn variable(&mut self, names: &mut Names) -> Result<Slot, Fault> {
        let (offset, name) = self.needed_word("argument: the name of a variable")?;
        if is_name(name.as_bytes()) {
            Ok(names.slot(name))
        } else {
            Err(Fault::when_run(
                offset,
                format!("invalid variable name: \"{name}\""),
            ))
        }
    }

    /// Everything that is left, as one expression.
    fn expression(&mut self, names: &mut Names) -> Result<Expression, Fault> {
        parse_expression(self.source, (self.offset, self.end), names)
    }

    /// Everything that is left, as words for a shell: `:x` is a variable, `::x` means `:x`.
    fn shell_words(&mut self, names: &mut Names) -> Result<Box<[Word]>, Fault> {
        let mut words = vec![
            self.shell_word(names)?
                .ok_or_else(|| Fault::new(self.end, "missing command"))?,
        ];
        while let Some(word) = self.shell_word(names)? {
            if words.len() >= WORDS_MAX {
                return Err(Fault::new(
                    self.offset,
                    format!("too many arguments (maximum is {WORDS_MAX})"),
                ));
            }
            words.push(word);
        }
        Ok(words.into())
    }

    fn shell_word(&mut self, names: &mut Names) -> Result<Option<Word>, Fault> {
        let Some((offset, word)) = self.word() else {
            return Ok(None);
        };
        Ok(Some(match word.strip_prefix(':') {
            Some(literal) if literal.starts_with(':') => Word::Literal(literal.into()),
            Some(name) if is_name(name.as_bytes()) => Word::Variable(names.slot(name)),
            Some(name) => {
                return Err(Fault::new(
                    offset,
                    format!("invalid variable name: \"{name}\""),
                ));
            }
            None => Word::Literal(word.into()),
        }))
    }
}

/// `\setrandom v low high [uniform | gaussian x | exponential x]`, gone since pgbench 9.6.
fn set_random(line: &mut Line<'_>, names: &mut Names) -> Result<Meta, Fault> {
    let slot = line.variable(names)?;
    let mut arguments = Vec::with_capacity(3);
    for what in ["argument: the least value", "argument: the greatest value"] {
        arguments.push(number(line, what, names)?);
    }
    let function = match line.word() {
        None => Function::Random,
        Some((_, word)) if word.eq_ignore_ascii_case("uniform") => Function::Random,
        Some((_, word)) if word.eq_ignore_ascii_case("gaussian") => Function::RandomGaussian,
        Some((_, word)) if word.eq_ignore_ascii_case("exponential") => Function::RandomExponential,
        Some((offset, word)) => {
            let message =
                format!("unexpected argument ({word}), must be uniform, gaussian or exponential");
            return Err(Fault::new(offset, message));
        }
    };
    if function != Function::Random {
        arguments.push(number(
            line,
            "argument: the parameter of the distribution",
            names,
        )?);
    }
    line.nothing_more()?;
    Ok(Meta::Set(
        slot,
        Expression::Call(function, arguments.into()),
    ))
}

/// One word as a number or variable.
fn number(line: &mut Line<'_>, what: &str, names: &mut Names) -> Result<Expression, Fault> {
    let (offset, word) = line.needed_word(what)?;
    parse_expression(line.source, (offset, offset + word.len()), names)
}

fn sleep(line: &mut Line<'_>, names: &mut Names) -> Result<Meta, Fault> {
    // pgbench counts the words before it looks at any.
    let mut ahead = Line { ..*line };
    if let Some((offset, word)) = std::iter::from_fn(|| ahead.word()).nth(2) {
        return Err(Fault::new(offset, format!("too many arguments ({word})")));
    }
    let (offset, word) = line.needed_word("argument")?;
    let (amount, rest) = match word.strip_prefix(':') {
        Some(name) if is_name(name.as_bytes()) => (Amount::Variable(names.slot(name)), ""),
        Some(name) => {
            return Err(Fault::new(
                offset,
                format!("invalid variable name: \"{name}\""),
            ));
        }
        None => {
            let signed = word.len() - word.trim_start_matches(['+', '-']).len();
            let length = signed
                + word[signed..]
                    .bytes()
                    .take_while(u8::is_ascii_digit)
                    .count();
            let amount = word[..length].parse();
            let amount =
                amount.map_err(|_| Fault::new(offset, format!("not a whole number ({word})")))?;
            (Amount::Constant(amount), &word[length..])
        }
    };
    let (unit_offset, unit) = match line.word() {
        Some((offset, second)) if !rest.is_empty() => {
            return Err(Fault::new(offset, format!("too many arguments ({second})")));
        }
        Some(found) => found,
        None if rest.is_empty() => (offset, "s"),
        None => (offset + word.len() - rest.len(), rest),
    };
    let unit = Unit::by_name(unit).ok_or_else(|| {
        Fault::new(
            unit_offset,
            format!("unrecognized time unit, must be us, ms or s ({unit})"),
        )
    })?;
    Ok(Meta::Sleep(amount, unit))
}

fn capture(line: &mut Line<'_>, kind: CaptureKind) -> Result<Parsed, Fault> {
    let prefix = line.word().map_or("", |(_, word)| word).to_owned();
    match line.word() {
        None => Ok(Parsed::Capture(Capture { kind, prefix })),
        Some((offset, word)) => Err(Fault::new(offset, format!("too many arguments ({word})"))),
    }
}
