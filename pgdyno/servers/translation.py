"""Settings in a person's words → settings that a version of PostgreSQL understands. Pure.

A configuration of 2013 has names that are gone and values that have become others. They are
translated or dropped, each with a notice; what is in force is read from the server afterwards. The
facts are in `translation.toml`. Everything else is left to the server, which judges it itself.

>>> old = {"checkpoint_segments": "16", "wal_level": "minimal"}
>>> translate(old, 150018, None).settings
{'max_wal_size': '768MB', 'wal_level': 'minimal', 'max_wal_senders': '0'}
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pgdyno.errors import InvalidInput
from pgdyno.units import parse_bytes

_LOCALE_SUFFIX: Final = re.compile(r"[-_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """Settings for one version, in the person's order, and a line for each that was changed."""

    settings: dict[str, str]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What becomes of one setting; `to` None: nothing."""

    to: str | None
    value: str
    why: str


def translate(
    settings: Mapping[str, str], version_num: int, locales: frozenset[str] | None
) -> Translated:
    """Settings as a server of `version_num` knows them.

    `locales` are those installed, as `comparable_locale` writes them; None: nobody knows, so they
    are left to the server. A name that was given in its new form too wins over its old one.
    """
    given = {name.lower() for name in settings}
    result: dict[str, str] = {}
    notices = []
    for name, value in settings.items():
        change = _change(name, value, version_num, locales)
        if change is None:
            result[name] = value
        elif change.to is None:
            notices.append(f"setting {name} = '{value}' is dropped: {change.why}")
        elif change.to != name.lower() and change.to in given:
            notices.append(f"setting {name} = '{value}' is dropped: {change.to} is given as well")
        else:
            result[change.to] = change.value
            now = "" if change.to == name.lower() else f"{change.to} = "
            notices.append(
                f"setting {name} = '{value}' is {now}'{change.value}' here: {change.why}"
            )
    lower = {name.lower(): value.lower() for name, value in result.items()}
    for rule in _facts()["needed"]:
        wanted = lower.get(rule["name"]) == rule["value"] and rule["setting"] not in lower
        if wanted and version_num >= rule["since"]:
            result[rule["setting"]] = rule["to"]
            notices.append(f"setting {rule['setting']} = '{rule['to']}' is added: {rule['why']}")
    return Translated(settings=result, notices=tuple(notices))


def comparable_locale(name: str) -> str:
    """A locale's name as it can be compared: `locale -a` and people spell the encoding differently.

    >>> comparable_locale("en_US.UTF-8") == comparable_locale("en_US.utf8")
    True
    """
    place, dot, encoding = name.partition(".")
    return place + dot + _LOCALE_SUFFIX.sub("", encoding).lower()


def _change(
    name: str, value: str, version_num: int, locales: frozenset[str] | None
) -> _Change | None:
    """What becomes of a setting; None: it stays as it is."""
    facts, lower = _facts(), name.lower()
    gone = facts["gone"].get(lower)
    if gone is not None and version_num >= gone["since"]:
        return _Change(to=None, value=value, why=gone["why"])
    for rule in facts["renamed"]:
        if rule["name"] == lower and version_num >= rule["since"]:
            return _Change(to=rule["to"], value=_scaled(name, value, rule), why=rule["why"])
    for rule in facts["before"]:
        if rule["name"] == lower and version_num < rule["until"]:
            return _Change(to=rule["to"], value=_segments(value, rule), why=rule["why"])
    for rule in facts["value"]:
        if rule["name"] == lower and value.lower() in rule["from"] and version_num >= rule["since"]:
            return _Change(to=lower, value=rule["to"], why=rule["why"])
    is_locale = lower in facts["locale"]["names"] and value not in facts["locale"]["always"]
    if is_locale and locales is not None and comparable_locale(value) not in locales:
        why = "that locale is not installed (locale -a lists those that are)"
        return _Change(to=None, value=value, why=why)
    return None


def _scaled(name: str, value: str, rule: Mapping[str, Any]) -> str:
    """An old number in the new setting's unit; `InvalidInput` where it is none."""
    if "times" not in rule:
        return value
    if not re.fullmatch(r"\s*\d+\s*", value):
        raise InvalidInput(
            f"setting '{name}' cannot be '{value}': it was a whole number",
            hint=f"give {rule['to']} instead, with its unit",
        )
    return f"{int(value) * rule['times']}{rule['unit']}"


def _segments(value: str, rule: Mapping[str, Any]) -> str:
    """A size in whole WAL segments; a bare number is in MB."""
    size_bytes = parse_bytes(f"{value}MB" if value.strip().isdigit() else value)
    return str(math.ceil(size_bytes / rule["segment_bytes"]))


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads(files("pgdyno.servers").joinpath("translation.toml").read_text())
