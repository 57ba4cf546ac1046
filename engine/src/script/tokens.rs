//! The words of an expression: numbers, names, `:variables`, operators.

use super::problem::Fault;
use super::variables::{is_name, is_name_byte};

/// One word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// An integer that fits 64 bits.
    Integer(i64),
    /// 9223372036854775808, an integer only after a minus.
    BeyondInteger,
    /// A number with a point or an exponent.
    Double(f64),
    /// `:name`.
    Variable(&'a str),
    /// A keyword or the name of a function, as written.
    Word(&'a str),
    /// An operator or other punctuation.
    Symbol(&'static str),
    /// Nothing follows.
    End,
}

/// Operators and punctuation, longer ones before those they begin with.
const SYMBOLS: [&str; 21] = [
    "<=", "<>", "<<", ">=", ">>", "!=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "|",
    "#", "&", "~",
];

/// Reads tokens from a text; offsets in faults count from the beginning of the script.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    source: &'a str,
    offset: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// Read `source[begin..end]`.
    pub fn new(source: &'a str, begin: usize, end: usize) -> Self {
        Self {
            source,
            offset: begin,
            end,
        }
    }

    /// The next token and where it begins.
    ///
    /// # Errors
    /// Characters that begin no token, and numbers too large.
    pub fn next(&mut self) -> Result<(usize, Token<'a>), Fault> {
        self.skip_blanks();
        let begin = self.offset;
        let rest = &self.source[begin..self.end];
        let Some(first) = rest.chars().next() else {
            return Ok((begin, Token::End));
        };
        let point_first = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let token = if first.is_ascii_digit() || point_first {
            self.number(rest)?
        } else if first == ':' {
            self.variable(rest)?
        } else if is_name(&rest.as_bytes()[..1]) {
            let length = rest.bytes().take_while(|&byte| is_name_byte(byte)).count();
            self.offset += length;
            Token::Word(&rest[..length])
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            self.offset += symbol.len();
            Token::Symbol(symbol)
        } else {
            return Err(Fault::new(begin, format!("unexpected character ({first})")));
        };
        Ok((begin, token))
    }

    /// Blanks, and a backslash that joins the next line.
    fn skip_blanks(&mut self) {
        while let Some(&byte) = self.source.as_bytes()[..self.end].get(self.offset) {
            let joins = byte == b'\\'
                && matches!(
                    self.source.as_bytes().get(self.offset + 1),
                    Some(b'\r' | b'\n')
                );
            if !(joins || byte.is_ascii_whitespace() || byte == 0x0b) {
                break;
            }
            self.offset += 1;
        }
    }

    fn variable(&mut self, rest: &'a str) -> Result<Token<'a>, Fault> {
        let length = rest
            .bytes()
            .skip(1)
            .take_while(|&byte| is_name_byte(byte))
            .count();
        let name = &rest[1..=length];
        if !is_name(name.as_bytes()) {
            return Err(Fault::new(self.offset, "unexpected character (:)"));
        }
        self.offset += length + 1;
        Ok(Token::Variable(name))
    }

    fn number(&mut self, rest: &'a str) -> Result<Token<'a>, Fault> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let begin = self.offset;
        let whole = digits(rest);
        let mut length = whole;
        if rest[length..].starts_with('.') {
            length += 1 + digits(&rest[length + 1..]);
        }
        let exponent = rest[length..].strip_prefix(['e', 'E']);
        if let Some(exponent) = exponent {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let count = digits(unsigned);
            if count > 0 {
                length += 1 + (exponent.len() - unsigned.len()) + count;
            }
        }
        self.offset += length;
        let text = &rest[..length];
        if length == whole {
            return match text.parse::<u64>() {
                Ok(number) if number == i64::MAX as u64 + 1 => Ok(Token::BeyondInteger),
                Ok(number) if number <= i64::MAX as u64 => Ok(Token::Integer(number as i64)),
                _ => Err(Fault::new(
                    begin,
                    format!("bigint constant overflow ({text})"),
                )),
            };
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Double(number)),
            _ => Err(Fault::new(
                begin,
                format!("double constant overflow ({text})"),
            )),
        }
    }
}
