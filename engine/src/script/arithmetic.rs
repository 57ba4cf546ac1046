//! Binary operators: integers that overflow are errors, doubles follow IEEE 754.

use super::functions::Function;
use super::values::{EvaluationError, Value, fail};

/// The result of a binary operator on two values that are not null.
///
/// Arithmetic and comparison are done on doubles where one side is a double; `%`, bits and shifts
/// are always done on integers.
///
/// # Errors
/// Booleans, overflow, integer division by zero.
#[inline]
pub fn apply(operator: Function, left: Value, right: Value) -> Result<Value, EvaluationError> {
    let on_doubles = matches!(left, Value::Double(_)) || matches!(right, Value::Double(_));
    if on_doubles && let Some(result) = on_double(operator, left, right)? {
        return Ok(result);
    }
    on_integers(operator, left.to_integer()?, right.to_integer()?)
}

/// The operators that have a form for doubles; `None` for those that have not.
fn on_double(
    operator: Function,
    left: Value,
    right: Value,
) -> Result<Option<Value>, EvaluationError> {
    use Function::{Add, Divide, Equal, Less, LessOrEqual, Multiply, Subtract, Unequal};
    if !matches!(
        operator,
        Add | Subtract | Multiply | Divide | Equal | Unequal | Less | LessOrEqual
    ) {
        return Ok(None);
    }
    let (left, right) = (left.to_double()?, right.to_double()?);
    Ok(Some(match operator {
        Add => Value::Double(left + right),
        Subtract => Value::Double(left - right),
        Multiply => Value::Double(left * right),
        Divide => Value::Double(left / right),
        Equal => Value::Boolean(left == right),
        Unequal => Value::Boolean(left != right),
        Less => Value::Boolean(left < right),
        _ => Value::Boolean(left <= right),
    }))
}

/// The result of a binary operator on two integers.
///
/// # Errors
/// Overflow, division by zero.
#[inline]
pub fn on_integers(operator: Function, left: i64, right: i64) -> Result<Value, EvaluationError> {
    let checked = |result: Option<i64>, name: &str| match result {
        Some(number) => Ok(Value::Integer(number)),
        None => fail(format!("bigint {name} out of range")),
    };
    match operator {
        Function::Add => checked(left.checked_add(right), "add"),
        Function::Subtract => checked(left.checked_sub(right), "sub"),
        Function::Multiply => checked(left.checked_mul(right), "mul"),
        Function::Divide | Function::Modulo if right == 0 => fail("division by zero"),
        Function::Divide => checked(left.checked_div(right), "div"),
        Function::Modulo => Ok(Value::Integer(left.wrapping_rem(right))),
        Function::Equal => Ok(Value::Boolean(left == right)),
        Function::Unequal => Ok(Value::Boolean(left != right)),
        Function::Less => Ok(Value::Boolean(left < right)),
        Function::LessOrEqual => Ok(Value::Boolean(left <= right)),
        Function::BitAnd => Ok(Value::Integer(left & right)),
        Function::BitOr => Ok(Value::Integer(left | right)),
        Function::BitXor => Ok(Value::Integer(left ^ right)),
        // Shifts count modulo 64, as the processors pgbench runs on do.
        Function::ShiftLeft => Ok(Value::Integer(left.wrapping_shl(right as u32))),
        Function::ShiftRight => Ok(Value::Integer(left.wrapping_shr(right as u32))),
        other => fail(format!("{other:?} is not an operator of two numbers")),
    }
}
