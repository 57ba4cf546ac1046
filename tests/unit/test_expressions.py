"""Small safe expressions: what they compute, and what they refuse and how they say so."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno import expressions
from pgdyno.expressions import (
    ExpressionError,
    evaluate,
    evaluate_truth,
    evaluate_whole,
    parse,
)

pytestmark = pytest.mark.unit

NAMES = {
    "scale": 3,
    "mode": "both",
    "big": 2**62,
    "row.users": 10,
    "change.users": -1,
    "reused": False,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-scale + +5", 2),
        ("7 // 2", 3),
        ("7 / 2", 3.5),
        ("7 % 4", 3),
        ("100_000 * scale", 300000),
        ("big * 4", 2**64),
        ("min(3, scale, 9)", 3),
        ("max(1, 2.5)", 2.5),
        ("abs(0 - 4)", 4),
        ("round(2.4)", 2),
        ("round(2.456, 1)", 2.5),
        ("ceil(2.1)", 3),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("row.users == 10 and change.users != 0", True),
        ("not reused or row.users == 0", True),
        ("mode == 'both'", True),
        ("mode != 'both'", False),
        ("true", True),
        ("scale == 3 or unknown_name == 1", True),
        ("  1 +\n 1", 2),
    ],
)
def test_values(text: str, expected: object) -> None:
    value = evaluate(text, NAMES)
    assert value == expected
    assert isinstance(value, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 + ) 2", "column 5"),
        ("", "column 1"),
        ("scale ** 2", "not allowed in an expression: column 1"),
        ("__import__('os').system('true')", "not allowed"),
        ("exit(3)", "'exit' is not one of the functions"),
        ("(1).real", "not allowed"),
        ("[1][0]", "not allowed"),
        ("lambda: 1", "not allowed"),
        ("1 if 2 else 3", "not allowed"),
        ("scale is 3", "not allowed"),
        ("2j", "not allowed"),
        ("min()", "wrong number of arguments for min"),
        ("min(*row)", "not allowed"),
        ("round(number=1)", "not one of the functions"),
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("mode + 1", "mode in 'mode + 1' is not a number but 'both'"),
        ("scale and true", "neither true nor false but 3"),
        ("mode < 'c'", "have no order"),
        ("mode == 1", "cannot be compared"),
        ("reused == 0", "cannot be compared"),
        ("change.user == 0", "'change.user' in"),
        ("1e400 - 1e400 > ceil(1e400)", "cannot be rounded"),
        ("(" * 150 + "1", "column"),
        ("-" * 900 + "1", ""),
        ("1" * 1001, "longer than 1000"),
        ("1 + \x00", ""),
    ],
)
def test_refusals(text: str, message: str) -> None:
    if text == "-" * 900 + "1":
        try:
            assert evaluate(text, NAMES) == 1
        except ExpressionError as error:
            assert "deeply" in str(error)
        return
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, NAMES)
    assert message in str(caught.value)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate("scal * 2", NAMES)
    assert caught.value.hint == "did you mean 'scale'?"


def test_names_are_known_before_evaluation() -> None:
    expression = parse("committed.login <= change.rows + min(unknown, 3) and true")
    assert expression.names == {"committed.login", "change.rows", "unknown"}


def test_whole_numbers_and_truths_are_insisted_on() -> None:
    assert evaluate_whole("6 / 2", {}) == 3
    assert evaluate_truth("1 == 1.0", {})
    with pytest.raises(ExpressionError, match="not a whole number"):
        evaluate_whole("1 / 2", {})
    with pytest.raises(ExpressionError, match="not a whole number"):
        evaluate_whole("1 == 1", {})
    with pytest.raises(ExpressionError, match="neither true nor false"):
        evaluate_truth("1 + 1", {})


@given(st.text(max_size=60))
def test_any_text_gives_a_value_or_an_expression_error(text: str) -> None:
    try:
        value = evaluate(text, {"x": 1, "y.z": 2.5})
    except ExpressionError:
        return
    assert isinstance(value, bool | int | float | str)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 1000))
def test_arithmetic_is_pythons(a: int, b: int, c: int) -> None:
    assert evaluate("(a - b) * c // c % 7", {"a": a, "b": b, "c": c}) == (a - b) * c // c % 7


def test_the_manual_in_the_docstring() -> None:
    assert doctest.testmod(expressions).failed == 0
