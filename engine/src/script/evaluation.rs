//! Evaluating expressions: a walk over the tree that allocates nothing unless it fails.

use super::arithmetic;
use super::expression::Expression;
use super::functions::{ARGUMENTS_MAX, Function};
use super::values::{EvaluationError, Value};
use super::variables::Variables;
use crate::random::Generator;

/// Where `debug()` says it was called: script from 0, command from 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Index of the script.
    pub script: usize,
    /// Number of the command.
    pub command: u32,
}

/// What an expression may read and change.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The client's variables.
    pub variables: &'a mut Variables,
    /// The client's generator.
    pub generator: &'a mut Generator,
    /// For `debug()`.
    pub place: Place,
}

impl Scope<'_> {
    /// The value of an expression.
    ///
    /// # Errors
    /// Undefined or malformed variables, and what functions and operators refuse.
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Value, EvaluationError> {
        match expression {
            Expression::Constant(value) => Ok(*value),
            Expression::Variable(slot) => self.variables.value(*slot),
            Expression::Call(function, arguments) => self.call(*function, arguments),
            Expression::And(sides) => self.both(sides, false),
            Expression::Or(sides) => self.both(sides, true),
            Expression::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if self.evaluate(condition)?.is_true() {
                        return self.evaluate(result);
                    }
                }
                self.evaluate(otherwise)
            }
        }
    }

    /// The value of an argument: most are constants and variables.
    #[inline]
    fn argument(&mut self, expression: &Expression) -> Result<Value, EvaluationError> {
        match expression {
            Expression::Constant(value) => Ok(*value),
            Expression::Variable(slot) => self.variables.value(*slot),
            _ => self.evaluate(expression),
        }
    }

    fn call(
        &mut self,
        function: Function,
        arguments: &[Expression],
    ) -> Result<Value, EvaluationError> {
        if let [left, right] = arguments {
            // The common case without the longer array.
            let values = [self.argument(left)?, self.argument(right)?];
            if let [Value::Integer(left), Value::Integer(right)] = values
                && function.is_binary_operator()
            {
                return arithmetic::on_integers(function, left, right);
            }
            return function.apply(&values, self.generator);
        }
        let mut values = [Value::Null; ARGUMENTS_MAX];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.evaluate(argument)?;
        }
        if function == Function::Debug {
            self.print(values[0]);
        }
        function.apply(&values[..arguments.len()], self.generator)
    }

    /// AND and OR: null first gives null, `settles` first settles it, otherwise the second side
    /// decides.
    fn both(&mut self, sides: &[Expression; 2], settles: bool) -> Result<Value, EvaluationError> {
        match self.evaluate(&sides[0])? {
            Value::Null => return Ok(Value::Null),
            first if first.to_boolean()? == settles => return Ok(Value::Boolean(settles)),
            _ => {}
        }
        match self.evaluate(&sides[1])? {
            Value::Null => Ok(Value::Null),
            second => second.to_boolean().map(Value::Boolean),
        }
    }

    /// `debug()` writes to stderr, as the script asks.
    fn print(&self, value: Value) {
        let mut text = Vec::new();
        match value {
            Value::Null => text.extend_from_slice(b"null"),
            typed => {
                text.extend_from_slice(typed.type_name().as_bytes());
                text.push(b' ');
                typed.append_text(&mut text);
            }
        }
        let Place { script, command } = self.place;
        eprintln!(
            "debug(script={script},command={command}): {}",
            String::from_utf8_lossy(&text)
        );
    }
}
