//! The operators and functions of expressions: their names, their arguments, their results.
//!
//! All are strict (a null argument gives null) but IS and `debug`. Wording of errors is pgbench's.

use super::arithmetic;
use super::values::{EvaluationError, Value, fail};
use crate::random::Generator;
use crate::random::distributions::{
    self, GAUSSIAN_PARAMETER_MIN, ZIPFIAN_PARAMETER_MAX, ZIPFIAN_PARAMETER_MIN,
};
use crate::random::hashing;

/// Most arguments a function may have.
pub const ARGUMENTS_MAX: usize = 16;

/// An operator or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are those of the operators and functions.
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly so many.
    Exactly(usize),
    /// One or more.
    Some,
    /// So many, and a seed that defaults to `:default_seed`.
    Seeded(usize),
}

impl Function {
    /// The function of a name, in any case.
    pub fn by_name(name: &str) -> Option<(Self, Arity)> {
        use Arity::{Exactly, Seeded, Some as AtLeastOne};
        Some(match name.to_ascii_lowercase().as_str() {
            "abs" => (Self::Abs, Exactly(1)),
            "debug" => (Self::Debug, Exactly(1)),
            "double" => (Self::Double, Exactly(1)),
            "exp" => (Self::Exp, Exactly(1)),
            "greatest" => (Self::Greatest, AtLeastOne),
            "hash" | "hash_murmur2" => (Self::HashMurmur2, Seeded(1)),
            "hash_fnv1a" => (Self::HashFnv1a, Seeded(1)),
            "int" => (Self::Int, Exactly(1)),
            "least" => (Self::Least, AtLeastOne),
            "ln" => (Self::Ln, Exactly(1)),
            "mod" => (Self::Modulo, Exactly(2)),
            "permute" => (Self::Permute, Seeded(2)),
            "pi" => (Self::Pi, Exactly(0)),
            "pow" | "power" => (Self::Power, Exactly(2)),
            "random" => (Self::Random, Exactly(2)),
            "random_exponential" => (Self::RandomExponential, Exactly(3)),
            "random_gaussian" => (Self::RandomGaussian, Exactly(3)),
            "random_zipfian" => (Self::RandomZipfian, Exactly(3)),
            "sqrt" => (Self::Sqrt, Exactly(1)),
            _ => return None,
        })
    }

    /// Whether it is one of the operators in [`arithmetic`].
    #[inline]
    pub fn is_binary_operator(self) -> bool {
        use Function::{
            Add, BitAnd, BitOr, BitXor, Divide, Equal, Less, LessOrEqual, Modulo, Multiply,
            ShiftLeft, ShiftRight, Subtract, Unequal,
        };
        matches!(
            self,
            Add | Subtract
                | Multiply
                | Divide
                | Modulo
                | Equal
                | Unequal
                | Less
                | LessOrEqual
                | BitAnd
                | BitOr
                | BitXor
                | ShiftLeft
                | ShiftRight
        )
    }

    /// The result for these arguments, as many as the parser has checked.
    ///
    /// # Errors
    /// Wrong types, values out of range, overflow.
    pub fn apply(
        self,
        arguments: &[Value],
        generator: &mut Generator,
    ) -> Result<Value, EvaluationError> {
        if self == Self::Is {
            return Ok(Value::Boolean(arguments[0] == arguments[1]));
        }
        if arguments.iter().any(|value| matches!(value, Value::Null)) {
            return Ok(Value::Null);
        }
        match self {
            Self::Random | Self::RandomExponential | Self::RandomGaussian | Self::RandomZipfian => {
                self.draw(arguments, generator)
            }
            Self::Greatest | Self::Least => self.extreme(arguments),
            Self::Not => Ok(Value::Boolean(!arguments[0].to_boolean()?)),
            Self::Debug => Ok(arguments[0]),
            Self::Int => arguments[0].to_integer().map(Value::Integer),
            Self::Abs => match arguments[0] {
                Value::Double(number) => Ok(Value::Double(number.abs())),
                other => other
                    .to_integer()
                    .map(|number| Value::Integer(number.wrapping_abs())),
            },
            Self::Pi => Ok(Value::Double(std::f64::consts::PI)),
            Self::Double => arguments[0].to_double().map(Value::Double),
            Self::Exp => Ok(Value::Double(arguments[0].to_double()?.exp())),
            Self::Ln => Ok(Value::Double(arguments[0].to_double()?.ln())),
            Self::Sqrt => Ok(Value::Double(arguments[0].to_double()?.sqrt())),
            Self::Power => Ok(Value::Double(
                arguments[0].to_double()?.powf(arguments[1].to_double()?),
            )),
            Self::HashFnv1a | Self::HashMurmur2 | Self::Permute => self.hash(arguments),
            operator => arithmetic::apply(operator, arguments[0], arguments[1]),
        }
    }

    /// A random number in [low, high].
    fn draw(
        self,
        arguments: &[Value],
        generator: &mut Generator,
    ) -> Result<Value, EvaluationError> {
        let (low, high) = (arguments[0].to_integer()?, arguments[1].to_integer()?);
        if low > high {
            return fail("empty range given to random");
        }
        if high
            .checked_sub(low)
            .and_then(|span| span.checked_add(1))
            .is_none()
        {
            return fail("random range is too large");
        }
        if self == Self::Random {
            return Ok(Value::Integer(generator.between(low, high)));
        }
        let parameter = arguments[2].to_double()?;
        let number = match self {
            Self::RandomExponential if parameter <= 0.0 || parameter.is_nan() => {
                return fail(format!(
                    "exponential parameter must be greater than zero (not {parameter:.6})"
                ));
            }
            Self::RandomExponential => distributions::exponential(generator, low, high, parameter),
            Self::RandomGaussian if !(GAUSSIAN_PARAMETER_MIN..).contains(&parameter) => {
                let least = GAUSSIAN_PARAMETER_MIN;
                return fail(format!(
                    "gaussian parameter must be at least {least:.6} (not {parameter:.6})"
                ));
            }
            Self::RandomGaussian => distributions::gaussian(generator, low, high, parameter),
            _ if !(ZIPFIAN_PARAMETER_MIN..=ZIPFIAN_PARAMETER_MAX).contains(&parameter) => {
                let range = format!("[{ZIPFIAN_PARAMETER_MIN:.3}, {ZIPFIAN_PARAMETER_MAX:.0}]");
                return fail(format!(
                    "zipfian parameter must be in range {range} (not {parameter:.6})"
                ));
            }
            _ => distributions::zipfian(generator, low, high, parameter),
        };
        Ok(Value::Integer(number))
    }

    /// Greatest or least; a double if any argument is one.
    fn extreme(self, arguments: &[Value]) -> Result<Value, EvaluationError> {
        let greatest = self == Self::Greatest;
        if arguments
            .iter()
            .any(|value| matches!(value, Value::Double(_)))
        {
            let mut best = arguments[0].to_double()?;
            for value in &arguments[1..] {
                let number = value.to_double()?;
                if (greatest && number > best) || (!greatest && number < best) {
                    best = number;
                }
            }
            return Ok(Value::Double(best));
        }
        let mut best = arguments[0].to_integer()?;
        for value in &arguments[1..] {
            let number = value.to_integer()?;
            best = if greatest {
                best.max(number)
            } else {
                best.min(number)
            };
        }
        Ok(Value::Integer(best))
    }

    /// The hashes and `permute`; the seed is the last argument.
    fn hash(self, arguments: &[Value]) -> Result<Value, EvaluationError> {
        let (value, second) = (arguments[0].to_integer()?, arguments[1].to_integer()?);
        let result = match self {
            Self::HashFnv1a => hashing::fnv1a(value, second),
            Self::HashMurmur2 => hashing::murmur2(value, second),
            _ if second <= 0 => return fail("permute size parameter must be greater than zero"),
            _ => hashing::permute(value, second, arguments[2].to_integer()?),
        };
        Ok(Value::Integer(result))
    }
}
