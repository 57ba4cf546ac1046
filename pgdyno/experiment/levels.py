"""Levels of factors as a person writes them: numbers, quantities, texts, lists of CPUs. Pure.

Where a number is wanted, an expression over `names` (facts of the host) may stand. Everything here
raises `InvalidInput` saying what is wrong with a level; `factors` knows which word it stood at.

>>> whole("2 * cpus", {"cpus": 4}, least=1), cpus("0-2,8")
(8, (0, 1, 2, 8))
>>> filled("{memory_mb // 4}MB", {"memory_mb": 4096})
'1024MB'
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Final

from pgdyno.contract import Stage
from pgdyno.errors import InvalidInput
from pgdyno.expressions import ExpressionError, Value, evaluate, parse
from pgdyno.units import parse_bytes, parse_count, parse_duration_s, parse_rate_per_s

Level = bool | int | float | str

STEADY_MAX_S: Final = 60.0
"""How long a warm-up until steady state may take where nothing is said."""
_STEADY = re.compile(r"steady(?:\s*(?:,\s*at most|:)\s*(?P<most>.+))?")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def text_of(level: Level) -> str:
    """A level as a person would write it: `on` for true, no quotes."""
    if isinstance(level, bool):
        return "on" if level else "off"
    return str(level)


def number_of(
    level: Level, names: Mapping[str, Value], parse_text: Callable[[str], float]
) -> float:
    """A number as given, as a quantity (`5000/s`), or as an expression over `names`."""
    if isinstance(level, bool):
        raise InvalidInput(f"{text_of(level)} is not a number")
    if not isinstance(level, str):
        return level
    try:
        return parse_text(level)
    except InvalidInput as error:
        not_a_quantity = error
    try:
        read = parse(level).names
    except ExpressionError:
        raise not_a_quantity from None
    mistyped = {level.strip()} == read and not difflib.get_close_matches(level.strip(), names)
    if not read or mistyped:
        raise not_a_quantity  # A word alone that is like no fact was not meant as an expression.
    value = evaluate(level, names)
    if isinstance(value, bool | str):
        raise InvalidInput(f"'{level}' gives {value!r}, which is not a number")
    return value


def whole(level: Level, names: Mapping[str, Value], *, least: int) -> int:
    """A whole number of at least `least`."""
    number = number_of(level, names, parse_count)
    if number != int(number):
        raise InvalidInput(f"'{level}' is {number:g}, which is not a whole number")
    if number < least:
        raise InvalidInput(f"{int(number)} is below the smallest allowed, {least}")
    return int(number)


def seconds(level: Level, names: Mapping[str, Value]) -> float:
    """A duration in seconds, 0 or more."""
    length_s = number_of(level, names, parse_duration_s)
    if length_s < 0:
        raise InvalidInput(f"{length_s:g} s is below zero")
    return float(length_s)


def seconds_above_zero(level: Level, names: Mapping[str, Value]) -> float:
    """A duration in seconds that cannot be 0."""
    length_s = seconds(level, names)
    if length_s == 0:
        raise InvalidInput("must be above zero")
    return length_s


def warmup(level: Level, names: Mapping[str, Value]) -> tuple[float, bool]:
    """`10s`, or `steady` with `, at most 30s`: seconds, and whether it ends at steady state."""
    steady = _STEADY.fullmatch(level.strip()) if isinstance(level, str) else None
    if steady is None:
        return seconds(level, names), False
    return (STEADY_MAX_S if steady["most"] is None else seconds(steady["most"], names)), True


def rate_per_s(level: Level, names: Mapping[str, Value]) -> float:
    """A rate above zero."""
    rate = number_of(level, names, parse_rate_per_s)
    if rate <= 0:
        raise InvalidInput(f"{rate:g} is not above zero")
    return float(rate)


def stages(level: Level) -> tuple[Stage, ...]:
    """Stages of an open load: `30s@100/s..900/s, 60s@900/s`."""
    found = tuple(stage(each.strip()) for each in text(level).split(","))
    if not any(one.rate_per_s or one.end_rate_per_s for one in found):
        raise InvalidInput("the rates of all stages are 0")
    return found


def sessions(level: Level) -> tuple[float, int]:
    """Sessions of a partly open load: their rate, and the transactions of each.

    >>> sessions("50/s of 10")
    (50.0, 10)
    """
    rate, of, transactions = text(level).partition(" of ")
    if not of:
        raise InvalidInput(f"'{level}' says not how long a session is", hint="write 50/s of 10")
    length = parse_count(transactions)
    if length < 1:
        raise InvalidInput(f"'{level}': a session has at least one transaction")
    return parse_rate_per_s(rate), length


def stage(level: str) -> Stage:
    """A stage of an open load: `30s@1000/s`, or a ramp, `30s@100/s..900/s`.

    >>> stage("1min@0..900/s")
    Stage(duration_s=60.0, rate_per_s=0.0, end_rate_per_s=900.0)
    """
    length, at, rates = level.partition("@")
    begin, dots, end = rates.partition("..")
    hint = "write 30s@1000/s or 30s@0..900/s"
    if not at:
        raise InvalidInput(f"'{level}' is not a stage", hint=hint)
    duration_s = parse_duration_s(length)
    if duration_s <= 0:
        raise InvalidInput(f"the stage '{level}' has no length", hint=hint)
    return Stage(
        duration_s=duration_s,
        rate_per_s=_stage_rate_per_s(begin),
        end_rate_per_s=_stage_rate_per_s(end) if dots else None,
    )


def _stage_rate_per_s(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0/s") else parse_rate_per_s(text)


def cpus(level: Level) -> tuple[int, ...]:
    """CPUs as the kernel lists them: `0-3,8`."""
    found: list[int] = []
    for part in text_of(level).split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:\s*-\s*(\d{1,4}))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise InvalidInput(f"'{level}' is not a list of CPUs", hint="write it as 0-3,8")
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(set(found)))


def text(level: Level) -> str:
    """A text that says something."""
    if not isinstance(level, str) or not level.strip():
        raise InvalidInput(f"{level!r} is not a text")
    return level


def truth(level: Level) -> bool:
    """True or false, also as `on` and `off`."""
    if isinstance(level, bool):
        return level
    if str(level).lower() in ("on", "true", "yes", "off", "false", "no"):
        return str(level).lower() in ("on", "true", "yes")
    raise InvalidInput(f"{level!r} is neither true nor false")


def filled(level: str, names: Mapping[str, Value]) -> str:
    """A setting with what stands in braces computed; `{{` and `}}` are braces."""

    def computed(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        value = evaluate(match[1].strip(), names)
        whole = isinstance(value, float) and value.is_integer()
        return text_of(int(value) if whole else value)

    return _BRACES.sub(computed, level)


def share(level: Level) -> float:
    """A relative difference above 0 and below 1: `2 %`, `0.02`.

    >>> share("2 %"), share(0.5)
    (0.02, 0.5)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text_of(level))
    if match is None or isinstance(level, bool):
        raise InvalidInput(f"'{text_of(level)}' is not a share", hint="write it as 2 % or 0.02")
    found = float(match[1]) / (100 if match[2] else 1)
    if not 0 < found < 1:
        raise InvalidInput(
            f"'{text_of(level)}' is not above 0 and below 1", hint="write it as 2 % or 0.02"
        )
    return found


def cpu_time(level: Level) -> float:
    """CPU time in CPUs: `0.5`, `2`."""
    text_given = text_of(level).strip()
    if not re.fullmatch(r"\d+(\.\d+)?", text_given) or not float(text_given) >= 0.01:
        raise InvalidInput(
            f"'{text_given}' is not a number of CPUs, 0.01 at least", hint="write 0.5 or 2"
        )
    return float(text_given)


def size_bytes(level: Level) -> int:
    """A size above zero: `512MB`."""
    found = parse_bytes(text_of(level))
    if found <= 0:
        raise InvalidInput(f"'{text_of(level)}' is not above zero", hint="write 512MB or 2GB")
    return found
