"""Random expressions of pgbench's language: well-typed ones, and ones with every kind of mistake.

A seed gives the same expressions for ever, so that a difference can be looked at again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

INT_EDGES = ("0", "1", "-1", "7", "63", "64", "-9223372036854775808", "9223372036854775807")
DOUBLES = ("0.0", "1.5", "-2.25", "1e3", "1.0E-7", ".5", "3.", "1e300", "123456789.123456789")
OPERATORS = (
    "+", "-", "*", "/", "%", "|", "&", "#", "<<", ">>", "<", "<=", ">", ">=", "=", "<>", "!=",
    "and", "or",
)  # fmt: skip
BOOLEANS = ("true", "FALSE", "True", "(1 = 1)", "NOT true", "null IS NULL")
MISTAKES = (
    "1 +", "(1", "1)", "1 2", "foo(1)", "abs()", "abs(1, 2)", "random(1)", "1 = = 2", "* 1",
    "case when 1 then 2", "case 1 when 1 then 2 end", "1 is 2", "not", ":", "'1", "1 % % 1",
    "-9223372036854775809", "1e400", "1..2", "0x10", "1_000", "pi", "pi(1)",
    "greatest()", "1 <> ", "1 ! 2", "1 === 2", "true and", "[1", "{1", "1;2", "1,2", "#1", "~",
    ":nosuch", ":text", "debug()", "int(1,)", "1 between 0 and 2", "hash()", "permute(1)", "$1",
)  # fmt: skip
# Calls whose arguments are out of their domain, or at its edge.
EDGES = (
    "1 / 0", "1 % 0", "mod(1, 0)", "1.0 / 0", "-9223372036854775808 / -1", "5 % -1",
    "-9223372036854775808 % -1", "9223372036854775807 + 1", "-9223372036854775808 - 1",
    "9223372036854775807 * 2", "- (-9223372036854775808)", "abs(-9223372036854775808)",
    "int(1e32)", "int(-1e32)", "double(1) + null", "ln(0)", "ln(-1)", "sqrt(-1)", "exp(1000)",
    "pow(0, 0)", "pow(0, -1)", "power(-8, 1.0 / 3)", "random(2, 1)", "random(5, 5)",
    "random(-9223372036854775808, 9223372036854775807)", "random(1.5, 3)",
    "random_gaussian(1, 9, 1)",
    "random_exponential(1, 9, 0)", "random_zipfian(1, 9, 1)", "random_zipfian(1, 9, 1000.1)",
    "random_zipfian(1, 9, 1.001)", "random_gaussian(3, 3, 2.0)", "permute(0, 0)", "permute(5, -1)",
    "permute(-1, 10)", "permute(3, 10, null)", "hash(null)", "hash(1, null)", "not 1", "not 1.5",
    "not null", "true + 1", "1 and true", "1.5 | 1", "1 << 63", "1 << 64", "-1 >> 70", "~1.5",
    "case when 1 then 2 end", "case when null then 2 end", "case when 1.5 then 2 end",
    "case when 0.0 then 2 else true end", "null = null", "null is null", "1 isnull", "null notnull",
    "1 is true", "0 is not false", "null is false", "null is not true", "true is true",
    "1.0 is null", "null and false", "false and null", "true or null", "null or true", "1 < 2 < 3",
    "greatest(1, 2.0, -3)", "least(null, 1)", "greatest(true, 1)", "double(true)",
    "int(true)", "-true", "- null", "debug(null)", "1 <> 2", "1 != 2", "1 = 1.0", "true = true",
    "true > false", "2 - -2", "2--2", "1 - - - 1", "not not true", "NOT true = false", "1 + 2 * 3",
    "(1 + 2) * 3", "7 / 2", "-7 / 2", "7 % 3", "-7 % 3", "7.0 % 3", "1 | 2 & 3 # 4", "1 + 2 << 3",
    "1 << 2 + 3", "2 * 3 % 4", "1 < 2 and 3 > 2 or false", "PI()", "Abs(-1)",
    "CASE WHEN true THEN 1 END",
    ":client_id", ":scale", ":random_seed", ":default_seed * 0", ":one + 1", ":half * 2", ":word",
    ":yes and true", "hash_murmur2(42, 5432)", "hash_fnv1a(42, 5432)", "hash(10.5)", "hash(true)",
)  # fmt: skip


class Expressions:
    """A stream of random expressions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def typed(self, depth: int = 4) -> str:
        """One whose types fit; a value may still be out of range."""
        return self._random.choice((self._int, self._double, self._boolean))(depth)

    def wild(self, depth: int = 3) -> str:
        """One where any operator stands beside any operand: most fail, each in its own way."""
        if depth == 0 or self._random.random() < 0.2:
            leaves = (*INT_EDGES, *DOUBLES, *BOOLEANS, "null", ":one", ":half", ":word", ":yes")
            return self._random.choice(leaves)
        makers: tuple[Callable[[], str], ...] = (
            lambda: (
                f"{self.wild(depth - 1)} {self._random.choice(OPERATORS)} {self.wild(depth - 1)}"
            ),
            lambda: f"({self.wild(depth - 1)})",
            lambda: f"{self._random.choice(('-', '+', '~', 'not '))}{self.wild(depth - 1)}",
            lambda: self._call(lambda: self.wild(depth - 1)),
            lambda: (
                f"{self.wild(depth - 1)} is {self._random.choice(('', 'not '))}"
                f"{self._random.choice(('null', 'true', 'false'))}"
            ),
            lambda: (
                f"case when {self.wild(depth - 1)} then {self.wild(depth - 1)} "
                f"else {self.wild(depth - 1)} end"
            ),
        )
        return self._random.choice(makers)()

    def _call(self, argument: Callable[[], str]) -> str:
        # Without abs: stock reads memory it did not write where the argument is a boolean.
        names = (
            "int 1", "double 1", "exp 1", "ln 1", "sqrt 1", "debug 1", "mod 2", "pow 2",
            "power 2", "hash 1", "hash 2", "hash_fnv1a 1", "hash_murmur2 2", "least 2",
            "greatest 3", "random 2", "random_gaussian 3", "random_exponential 3",
            "random_zipfian 3", "permute 2", "permute 3", "pi 0",
        )  # fmt: skip
        name, count = self._random.choice(names).split()
        return f"{name}({', '.join(argument() for _ in range(int(count)))})"

    def _int(self, depth: int) -> str:
        pick = self._random
        if depth == 0:
            return str(pick.choice((pick.randint(-9, 9), pick.randint(0, 10**6), ":one")))
        left, right = self._int(depth - 1), self._int(depth - 1)
        low = pick.randint(-100, 100)
        high = low + pick.randint(0, 1000)
        return pick.choice(
            (
                f"({left} {pick.choice('+-|&#')} {right})",
                f"{left} * {pick.randint(-9, 9)}",
                f"({left}) / {pick.randint(1, 9)}",
                f"({left}) % {pick.choice((-7, -1, 1, 13))}",
                f"({left} << {pick.randint(0, 5)}) >> {pick.randint(0, 9)}",
                f"abs({left})",
                f"int({self._double(depth - 1)})",
                f"greatest({left}, {right}, 0)",
                f"least({left}, {right})",
                f"mod({left}, {pick.randint(1, 99)})",
                f"hash({left}) % 1000",
                f"hash_fnv1a({left}, {pick.randint(0, 99)}) % 1000",
                f"permute(abs({left}), {pick.randint(1, 10**6)}, {pick.randint(0, 99)})",
                f"random({low}, {high})",
                f"random_gaussian({low}, {high}, {pick.uniform(2, 6):.3f})",
                f"random_exponential({low}, {high}, {pick.uniform(0.1, 9):.3f})",
                f"random_zipfian({low}, {high}, {pick.uniform(1.001, 3):.3f})",
                f"case when {self._boolean(depth - 1)} then {left} else {right} end",
            )
        )

    def _double(self, depth: int) -> str:
        pick = self._random
        if depth == 0:
            return pick.choice((f"{pick.uniform(-9, 9):.4f}", "1e-3", ":half", "pi()"))
        left, right = self._double(depth - 1), self._double(depth - 1)
        return pick.choice(
            (
                f"({left} {pick.choice('+-')} {right})",
                f"{left} * {right}",
                f"({left}) / {pick.uniform(1, 5):.2f}",
                f"double({self._int(depth - 1)})",
                f"sqrt(abs({left}))",
                f"ln(1 + abs({left}))",
                f"exp(-abs({left}))",
                f"pow(abs({left}), 0.5)",
                f"greatest({left}, {right})",
                f"{self._int(depth - 1)} * {left}",
            )
        )

    def _boolean(self, depth: int) -> str:
        pick = self._random
        if depth == 0:
            return pick.choice((*BOOLEANS, ":yes"))
        make = pick.choice((self._int, self._double))
        left, right = self._boolean(depth - 1), self._boolean(depth - 1)
        return pick.choice(
            (
                f"({make(depth - 1)} {pick.choice(('<', '<=', '=', '<>', '!=', '>=', '>'))} "
                f"{make(depth - 1)})",
                f"({left} {pick.choice(('and', 'OR', 'or'))} {right})",
                f"not ({left})",
                f"({make(depth - 1)}) is {pick.choice(('', 'not '))}null",
                f"({left}) IS {pick.choice(('', 'NOT '))}{pick.choice(('true', 'false'))}",
            )
        )


def typed_script(seed: int, count: int) -> str:
    """A script that shows the values of many expressions, and ends at the first that fails."""
    expressions = Expressions(seed)
    return "\n".join(f"\\set v debug({expressions.typed()})" for _ in range(count)) + "\n"


def single_expressions(seed: int, wild: int) -> Iterator[str]:
    """Expressions to be run alone, because most of them end a script or do not parse."""
    yield from MISTAKES
    yield from EDGES
    expressions = Expressions(seed)
    for _ in range(wild):
        yield expressions.wild()
