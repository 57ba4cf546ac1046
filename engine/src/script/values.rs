//! The four types of pgbench's expressions, and how one becomes another.
//!
//! Numbers are `Copy`: evaluating an expression allocates nothing. Only errors allocate, and an
//! error ends the client.

use std::fmt;

/// A value of an expression or variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// SQL's null.
    Null,
    /// true or false.
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A double.
    Double(f64),
}

/// Why an expression has no value; pgbench's own wording, since scripts and their readers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(Box<Message>);

/// Behind one pointer, so that a value or an error fits two registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message(Box<str>);

impl fmt::Display for EvaluationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.0)
    }
}

/// An error as a `Result`, for brevity at the many places that can fail.
pub fn fail<T>(message: impl Into<Box<str>>) -> Result<T, EvaluationError> {
    Err(EvaluationError(Box::new(Message(message.into()))))
}

impl Value {
    /// Name of the type in messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// As an integer; doubles are rounded half to even.
    ///
    /// # Errors
    /// Null and booleans, and doubles outside the range of 64 bits.
    #[inline]
    pub fn to_integer(self) -> Result<i64, EvaluationError> {
        match self {
            Self::Integer(number) => Ok(number),
            Self::Double(number) => {
                let rounded = number.round_ties_even();
                // 2⁶³ itself is a double and one too large; NaN fails both comparisons.
                if rounded >= -(2f64.powi(63)) && rounded < 2f64.powi(63) {
                    Ok(rounded as i64)
                } else {
                    fail(if number.is_infinite() {
                        let sign = if number < 0.0 { "-" } else { "" };
                        format!("double to int overflow for {sign}Infinity")
                    } else {
                        format!("double to int overflow for {number:.6}")
                    })
                }
            }
            Self::Null | Self::Boolean(_) => {
                fail(format!("cannot coerce {} to int", self.type_name()))
            }
        }
    }

    /// As a double.
    ///
    /// # Errors
    /// Null and booleans.
    #[inline]
    pub fn to_double(self) -> Result<f64, EvaluationError> {
        match self {
            Self::Integer(number) => Ok(number as f64),
            Self::Double(number) => Ok(number),
            Self::Null | Self::Boolean(_) => {
                fail(format!("cannot coerce {} to double", self.type_name()))
            }
        }
    }

    /// As a boolean: only booleans are.
    ///
    /// # Errors
    /// Everything else.
    #[inline]
    pub fn to_boolean(self) -> Result<bool, EvaluationError> {
        match self {
            Self::Boolean(truth) => Ok(truth),
            other => fail(format!("cannot coerce {} to boolean", other.type_name())),
        }
    }

    /// What `\if` and CASE make of it: null is false, numbers are true unless zero.
    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(truth) => truth,
            Self::Integer(number) => number != 0,
            Self::Double(number) => number != 0.0,
        }
    }

    /// A variable's text as a value; `None` when it is neither a word for null or a truth nor a
    /// number.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        if let Some(word) = word_value(text) {
            return Some(word);
        }
        let number = text.trim_start();
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return number.parse().ok().map(Self::Integer);
        }
        number.parse().ok().map(Self::Double)
    }

    /// Append the text that is sent to the server for this value; null is `NULL`.
    pub fn append_text(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Boolean(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
            Self::Integer(number) => {
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            Self::Double(number) => append_double(number, out),
        }
    }
}

/// null and the words for true and false: any beginning of them but `o`, which could be on or off.
fn word_value(text: &str) -> Option<Value> {
    let begins = |word: &str| {
        !text.is_empty()
            && word
                .get(..text.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    if text.eq_ignore_ascii_case("null") {
        Some(Value::Null)
    } else if begins("true") || begins("yes") || text.eq_ignore_ascii_case("on") {
        Some(Value::Boolean(true))
    } else if begins("false") || begins("no") || (text.len() > 1 && begins("off")) {
        Some(Value::Boolean(false))
    } else {
        None
    }
}

/// Significant digits of a double in text, as C's `%.15g`.
const DOUBLE_DIGITS: i32 = 15;

/// C's `%.15g`: the shorter of fixed and scientific, without trailing zeros.
fn append_double(number: f64, out: &mut Vec<u8>) {
    if !number.is_finite() {
        let text: &[u8] = match number {
            n if n.is_nan() => b"NaN",
            n if n > 0.0 => b"Infinity",
            _ => b"-Infinity",
        };
        out.extend_from_slice(text);
        return;
    }
    let mut buffer = [0u8; 32];
    let mut rest = &mut buffer[..];
    // d.dddddddddddddde±x: always fits 32 bytes.
    let _ = std::io::Write::write_fmt(&mut rest, format_args!("{number:.14e}"));
    let length = 32 - rest.len();
    let text = &buffer[..length];
    let split = text.iter().position(|&byte| byte == b'e').unwrap_or(length);
    let exponent: i32 = std::str::from_utf8(&text[split + 1..])
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    let mantissa = text[..split].strip_prefix(b"-").unwrap_or(&text[..split]);
    if number.is_sign_negative() {
        out.push(b'-');
    }
    let significant = mantissa
        .iter()
        .rposition(|&byte| byte != b'0' && byte != b'.')
        .unwrap_or(0);
    let mut digits = mantissa[..=significant]
        .iter()
        .copied()
        .filter(|&byte| byte != b'.');
    if (-4..DOUBLE_DIGITS).contains(&exponent) {
        append_fixed(&mut digits, exponent, out);
    } else {
        out.extend(digits.next());
        if significant > 0 {
            out.push(b'.');
            out.extend(digits);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(exponent.abs()).as_bytes());
    }
}

/// The digits with the decimal point where the exponent says.
fn append_fixed(digits: &mut dyn Iterator<Item = u8>, exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend(digits);
        return;
    }
    out.extend((0..=exponent).map(|_| digits.next().unwrap_or(b'0')));
    if let Some(first) = digits.next() {
        out.extend([b'.', first]);
        out.extend(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    fn text(number: f64) -> String {
        let mut out = Vec::new();
        Value::Double(number).append_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_or_an_error_fits_two_registers() {
        let size_bytes = size_of::<Result<Value, super::EvaluationError>>();
        assert_eq!(16, size_bytes);
    }

    #[test]
    fn doubles_are_written_as_pgbench_writes_them() {
        let expected = [
            (8.0, "8"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1e5, "100000"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123_456_789_012_345_678.0, "1.23456789012346e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (2.618_033_988_749_895, "2.61803398874989"),
            (1500.25, "1500.25"),
            (-1.0 / 3.0, "-0.333333333333333"),
            (1e300, "1e+300"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
            (9.999_999_999_999_999e14, "1e+15"),
        ];
        for (number, written) in expected {
            assert_eq!(text(number), written, "{number:?}");
        }
    }

    #[test]
    fn texts_become_values_as_in_pgbench() {
        let expected = [
            ("null", Some(Value::Null)),
            ("NULL", Some(Value::Null)),
            ("t", Some(Value::Boolean(true))),
            ("yes", Some(Value::Boolean(true))),
            ("on", Some(Value::Boolean(true))),
            ("o", None),
            ("of", Some(Value::Boolean(false))),
            ("n", Some(Value::Boolean(false))),
            ("", None),
            ("12", Some(Value::Integer(12))),
            ("+5", Some(Value::Integer(5))),
            (" 12", Some(Value::Integer(12))),
            (" 12 ", None),
            ("1e3", Some(Value::Double(1000.0))),
            ("99999999999999999999", None),
            ("1.50", Some(Value::Double(1.5))),
            ("x1", None),
        ];
        for (text, value) in expected {
            assert_eq!(Value::from_text(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn doubles_round_half_to_even_and_overflow_is_an_error() {
        assert_eq!(Value::Double(2.5).to_integer(), Ok(2));
        assert_eq!(Value::Double(3.5).to_integer(), Ok(4));
        assert_eq!(
            Value::Double(-9_223_372_036_854_775_808.0).to_integer(),
            Ok(i64::MIN)
        );
        assert!(
            Value::Double(9_223_372_036_854_775_808.0)
                .to_integer()
                .is_err()
        );
        assert!(Value::Double(f64::NAN).to_integer().is_err());
    }
}
