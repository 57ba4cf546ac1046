"""Small safe expressions for data files: row counts, sizes, weights and the rules of checks.

A workload says `rows = 100000 * scale` or `committed <= change.history_rows`; this is what reads
that. The grammar is a corner of Python's: whole numbers, decimals, strings, names (also dotted),
`+ - * / // %`, comparisons (also chained), `and or not`, the functions `min max abs round ceil`.
Nothing else is accepted: no attribute of any object is ever read and nothing is called by name.

>>> evaluate("100000 * scale", {"scale": 3})
300000
>>> evaluate("committed <= change.rows <= committed + unknown",
...          {"committed": 5, "change.rows": 6, "unknown": 1})
True
>>> evaluate("scale * 2.5 mb", {"scale": 1})
Traceback (most recent call last):
    ...
pgdyno.expressions.ExpressionError: invalid syntax at column 13 of 'scale * 2.5 mb'
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgdyno.errors import InvalidInput, nearest_hint

Value = bool | int | float | str

_LENGTH_MAX = 1000
_Binary = Callable[[float, float], float]
_ARITHMETIC: dict[type[ast.operator], _Binary] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, tuple[int, int | None]] = {  # name → fewest and most arguments
    "min": (1, None),
    "max": (1, None),
    "abs": (1, 1),
    "round": (1, 2),
    "ceil": (1, 1),
}


class ExpressionError(InvalidInput):
    """An expression that cannot be read or computed; columns are counted from 1."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `names` are the variables that it reads."""

    text: str
    names: frozenset[str]
    _body: ast.expr


def parse(text: str) -> Expression:
    """Read an expression; raises `ExpressionError` for anything outside the grammar."""
    if len(text) > _LENGTH_MAX:
        raise ExpressionError(
            f"an expression of {len(text)} characters is longer than {_LENGTH_MAX}"
        )
    source = " ".join(text.split("\n"))
    lead = len(source) - len(source.lstrip())
    try:
        body = ast.parse(source.lstrip(), mode="eval").body
        names: set[str] = set()
        _Grammar(text=text, lead=lead, names=names).admit(body)
    except SyntaxError as error:
        column = (error.offset or 1) + lead
        reason = (error.msg or "invalid syntax").split(".")[0].lower()
        reason = "invalid syntax" if "invalid syntax" in reason else reason
        raise ExpressionError(f"{reason} at column {column} of '{text}'") from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError(
            f"'{text[:40]}' cannot be read: nested too deeply or not text"
        ) from None
    return Expression(text, frozenset(names), body)


def evaluate(expression: Expression | str, names: Mapping[str, Value]) -> Value:
    """Compute an expression; dotted names are looked up whole (`change.rows`).

    Raises `ExpressionError` for an unknown name, a division by zero or operands of the wrong type.
    """
    parsed = parse(expression) if isinstance(expression, str) else expression
    try:
        return _Evaluation(text=parsed.text, names=names).value(parsed._body)
    except RecursionError:
        raise ExpressionError(f"'{parsed.text[:40]}' is nested too deeply") from None


def evaluate_whole(expression: Expression | str, names: Mapping[str, Value]) -> int:
    """As `evaluate`, for counts and sizes: the value must be a whole number."""
    value = evaluate(expression, names)
    text = expression if isinstance(expression, str) else expression.text
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ExpressionError(f"'{text}' gives {value!r}, which is not a whole number")
    return value


def evaluate_truth(expression: Expression | str, names: Mapping[str, Value]) -> bool:
    """As `evaluate`, for rules and conditions: the value must be true or false."""
    value = evaluate(expression, names)
    if not isinstance(value, bool):
        text = expression if isinstance(expression, str) else expression.text
        raise ExpressionError(f"'{text}' gives {value!r}, which is neither true nor false")
    return value


def _dotted(node: ast.expr) -> str | None:
    """The name that a chain of attributes spells, or None where it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grammar:
    """Admits the nodes of our grammar and collects the names they read."""

    text: str
    lead: int
    names: set[str]

    def admit(self, node: ast.expr) -> None:
        name = _dotted(node)
        if name is not None:
            if name not in ("true", "false"):
                self.names.add(name)
            return
        for child in self._children(node):
            self.admit(child)

    def _children(self, node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return []
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Not(), operand=operand):
                return [operand]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return [left, right]
            case ast.BoolOp(values=values):
                return values
            case ast.Compare(left=left, ops=ops, comparators=rest) if all(
                type(op) in _ORDER or isinstance(op, ast.Eq | ast.NotEq) for op in ops
            ):
                return [left, *rest]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                fewest, most = _FUNCTIONS[name]
                if len(args) >= fewest and (most is None or len(args) <= most):
                    return args
                raise self._refusal(node, f"wrong number of arguments for {name}")
            case ast.Call(func=ast.Name(id=name)):
                known = ", ".join(_FUNCTIONS)
                raise self._refusal(node, f"'{name}' is not one of the functions {known}")
        raise self._refusal(node, "not allowed in an expression")

    def _refusal(self, node: ast.expr, reason: str) -> ExpressionError:
        column = node.col_offset + 1 + self.lead
        return ExpressionError(f"{reason}: column {column} of '{self.text}'")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluation:
    """Computes admitted nodes. `text` is for messages."""

    text: str
    names: Mapping[str, Value]

    def value(self, node: ast.expr) -> Value:
        name = _dotted(node)
        if name is not None:
            return self._named(name)
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return constant
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._truth(operand)
            case ast.UnaryOp(op=op, operand=operand):
                number = self._number(operand)
                return -number if isinstance(op, ast.USub) else number
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(type(op), self._number(left), self._number(right))
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self._truth(each) for each in values)
            case ast.BoolOp(values=values):
                return any(self._truth(each) for each in values)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return self._comparison([left, *rest], ops)
            case ast.Call(func=ast.Name(id=function), args=args):
                return self._call(function, [self._number(each) for each in args])
        raise AssertionError(ast.dump(node))  # the grammar admits nothing else

    def _named(self, name: str) -> Value:
        if name in ("true", "false"):
            return name == "true"
        if name not in self.names:
            raise ExpressionError(
                f"'{name}' in '{self.text}' is not known", hint=nearest_hint(name, self.names)
            )
        return self.names[name]

    def _number(self, node: ast.expr) -> float:
        value = self.value(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ExpressionError(
                f"{ast.unparse(node)} in '{self.text}' is not a number but {value!r}"
            )
        return value

    def _truth(self, node: ast.expr) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            raise ExpressionError(
                f"{ast.unparse(node)} in '{self.text}' is neither true nor false but {value!r}"
            )
        return value

    def _arithmetic(self, kind: type[ast.operator], left: float, right: float) -> float:
        try:
            return _ARITHMETIC[kind](left, right)
        except ZeroDivisionError:
            raise ExpressionError(f"division by zero in '{self.text}'") from None
        except OverflowError:
            raise ExpressionError(f"a number in '{self.text}' is too large") from None

    def _comparison(self, nodes: list[ast.expr], ops: list[ast.cmpop]) -> bool:
        left = self.value(nodes[0])
        for op, node in zip(ops, nodes[1:], strict=True):
            right = self.value(node)
            if not self._compared(op, left, right):
                return False
            left = right
        return True

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> bool:
        number = isinstance(left, int | float) and isinstance(right, int | float)
        alike = isinstance(left, bool) == isinstance(right, bool)
        if not alike or not (number or (isinstance(left, str) and isinstance(right, str))):
            raise ExpressionError(f"{left!r} and {right!r} in '{self.text}' cannot be compared")
        if isinstance(op, ast.Eq):
            return left == right
        if isinstance(op, ast.NotEq):
            return left != right
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise ExpressionError(f"{left!r} and {right!r} in '{self.text}' have no order")
        return _ORDER[type(op)](left, right)

    def _call(self, function: str, numbers: list[float]) -> float:
        match function:
            case "min":
                return min(numbers)
            case "max":
                return max(numbers)
            case "abs":
                return abs(numbers[0])
            case "ceil":
                return self._rounded(math.ceil, numbers[0])
            case _:
                if len(numbers) == 1:
                    return self._rounded(round, numbers[0])
                return round(numbers[0], int(numbers[1]))

    def _rounded(self, rounding: Callable[[float], int], number: float) -> int:
        try:
            return rounding(number)
        except (OverflowError, ValueError):
            raise ExpressionError(f"{number} in '{self.text}' cannot be rounded") from None
