//! The tree of an expression, as the parser builds it and the evaluation walks it.

use super::functions::Function;
use super::values::Value;
use super::variables::Slot;

/// An expression of `\set`, `\if` or a loader's row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number, a truth or null.
    Constant(Value),
    /// `:name`.
    Variable(Slot),
    /// An operator or a function with all its arguments; evaluated in this order.
    Call(Function, Box<[Expression]>),
    /// AND: the second only where the first is true.
    And(Box<[Expression; 2]>),
    /// OR: the second only where the first is false.
    Or(Box<[Expression; 2]>),
    /// CASE: (condition, result) pairs, and what holds when no condition does.
    Case(Box<[(Expression, Expression)]>, Box<Expression>),
}
