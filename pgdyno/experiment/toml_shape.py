"""What is common to TOML files that people write: all that is wrong with one, each with its line.

A file is held to its shape, a pydantic class; what is wrong is taken out and told, so that the rest
can be looked at as well. Pure: texts come in, problems go out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pgdyno.experiment.toml_lines import KeyPath


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of a key; of the nearest table around it where the key is not there."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def not_toml(path: Path, text: str, said: str) -> str:
    """A decoder's message with its place in front, as in every other problem."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", said)
    message = match[1] if match else said
    if message == "Cannot overwrite a value":
        message = "this key stands in the file twice"
    line = (match and match[2]) or len(text.rstrip().splitlines())
    return f"{path}:{line}: {message[:1].lower()}{message[1:]}"


def place_of(loc: tuple[str | int, ...]) -> KeyPath:
    """Where a problem of pydantic's is; types of a union are no keys."""
    types = ("bool", "int", "float", "str")
    return tuple(each for each in loc if each not in types and not str(each).startswith("dict["))


def without(raw: Mapping[str, Any], places: Sequence[KeyPath]) -> dict[str, Any]:
    """A copy without what is wrong at these places, so that the rest can be looked at as well.

    Of `variants` only the wrong key goes, and a wrong element becomes an empty table: its
    neighbours keep their numbers, and with them their lines.
    """
    copy = deepcopy(dict(raw))
    for place in places:
        *above, last = place if _leaves_the_rest(place) else _whole_key(place)
        table: Any = copy
        for key in above:
            table = table[key] if _holds(table, key) else None
        if not _holds(table, last):
            continue
        if isinstance(table, dict):
            del table[last]
        else:
            table[last] = {}
    return copy


def _leaves_the_rest(place: KeyPath) -> bool:
    """Whether the table around this place stays one without it; a response needs its metric."""
    of_response = place[0] == "responses" and len(place) == 3 and place[2] != "metric"
    return place[0] == "variants" or of_response


def _whole_key(place: KeyPath) -> KeyPath:
    """A place up to where its first array begins."""
    return tuple(itertools.takewhile(lambda part: isinstance(part, str), place))


def _holds(table: Any, key: str | int) -> bool:
    if isinstance(table, dict):
        return key in table
    return isinstance(table, list) and isinstance(key, int) and key < len(table)


def spelled(loc: KeyPath) -> str:
    """A place as a person writes it, before what is wrong there: `standbys[0].cpus: `."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return f"{key.lstrip('.')}: " if key else ""
