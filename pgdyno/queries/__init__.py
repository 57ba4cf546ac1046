"""One question a file: `question.FIRST-LAST.sql` serves PostgreSQL FIRST to LAST, or from FIRST on.

Every file opens with a comment that says what it returns, since which version, and what it costs.
All files of one question return the same columns: NULL where a version does not know a value.

>>> served_versions("9.6", "16")
range(90600, 170000)
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"(?P<question>[a-z_]+)\.(?P<first>9\.\d|\d+)-(?P<last>9\.\d|\d+)?\.sql")
_NO_END = 2**31


def served_versions(first: str, last: str | None) -> range:
    """The `server_version_num`s from major version `first` to `last`, both included."""
    return range(_version_num(first), _NO_END if last is None else _next_major_num(last))


def query_for(question: str, version_num: int) -> str:
    """SQL that answers a question on a server; `LookupError` when no file serves its version."""
    for versions, sql in catalogue().get(question, ()):
        if version_num in versions:
            return sql
    raise LookupError(f"no query '{question}' for server version {version_num}")


@cache
def catalogue() -> dict[str, tuple[tuple[range, str], ...]]:
    """Every question with the versions its files serve and their text."""
    found: dict[str, tuple[tuple[range, str], ...]] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda entry: entry.name):
        match = _NAME.fullmatch(file.name)
        if match is not None:
            served = served_versions(match["first"], match["last"])
            entry = (served, file.read_text(encoding="utf-8"))
            found[match["question"]] = (*found.get(match["question"], ()), entry)
    return found


def _version_num(major: str) -> int:
    if "." in major:
        era, major_of_era = major.split(".")
        return int(era) * 10000 + int(major_of_era) * 100
    return int(major) * 10000


def _next_major_num(major: str) -> int:
    return _version_num(major) + (100 if "." in major else 10000)
