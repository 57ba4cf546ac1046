r"""A file of server settings as people keep them: postgresql.conf's syntax, also `//` comments.

Published configurations come with comments of both kinds and with lines about where that server
listened. Those lines are pgdyno's to choose, so they are left out, each with a notice.

>>> parse_settings("work_mem 4MB # each\nport = 1921 // ours\n", "bench.conf").settings
{'work_mem': '4MB'}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgdyno.errors import InvalidInput, Problems
from pgdyno.servers.settings import setting_facts

_LINE: Final = re.compile(
    r"""\s*(?P<name>[A-Za-z_][A-Za-z0-9_$.]*)      # the name
        (?:\s*=\s*|\s+)                            # the equals sign may be left out
        (?P<value>'(?:[^'\\]|\\.|'')*'|[^\s'=\#][^\s'\#]*)  # a text or word
        \s*(?P<rest>.*)""",
    re.VERBOSE,
)
_COMMENT: Final = re.compile(r"\s*(\#|//|$)")
_INCLUDES: Final = frozenset({"include", "include_dir", "include_if_exists"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """What a file says: name → value, the last of equal names, and a line for each left out."""

    settings: dict[str, str]
    notices: tuple[str, ...] = ()


def read_settings_file(path: Path) -> SettingsFile:
    """Read a file; `InvalidInput` where it cannot be read, `Problems` with all its faults."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(
            f"cannot read the settings file '{path}': {reason}",
            hint="it is a text of lines name = value, as postgresql.conf",
        ) from error
    return parse_settings(text, str(path))


def parse_settings(text: str, name: str) -> SettingsFile:
    """Settings from a file's text; `name` is for messages. Raises `Problems` with every fault."""
    owned = setting_facts().owned
    settings: dict[str, str] = {}
    notices, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if _COMMENT.match(line):
            continue
        fault, found = _read(line)
        if found is None:
            problems.append(f"{name}, line {number}: {fault}")
            continue
        setting, value = found
        if setting.lower() in owned:
            notices.append(
                f"{name}, line {number}: {setting} = '{value}' is left out: it is pgdyno's to "
                f"choose ({owned[setting.lower()]})"
            )
        else:
            settings.pop(setting, None)
            settings[setting] = value
    if problems:
        raise Problems(problems, hint="each line is name = value; texts with blanks in '…'")
    return SettingsFile(settings=settings, notices=tuple(notices))


def _read(line: str) -> tuple[str, tuple[str, str] | None]:
    """What is wrong with a line, or its name and value."""
    match = _LINE.match(line)
    if match is None:
        return f"'{line.strip()}' is not of the form name = value", None
    if match["name"].lower() in _INCLUDES:
        return f"'{match['name']}' is not followed: put those settings here", None
    if not _COMMENT.match(match["rest"]):
        return f"'{match['rest'].strip()}' stands behind the value of '{match['name']}'", None
    return "", (match["name"], "".join(_unquoted(match["value"])))


def _unquoted(value: str) -> Iterator[str]:
    """The letters of a value, as PostgreSQL's guc-file.l reads them (DeescapeQuotedString)."""
    if not value.startswith("'"):
        yield value
        return
    escapes = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
    for part in re.finditer(r"''|\\([0-7]{1,3}|.)|.", value[1:-1], re.DOTALL):
        inner = part[1]
        if inner is None:
            yield "'" if part[0] == "''" else part[0]
        elif inner[0] in "01234567":
            yield chr(int(inner, 8) & 0xFF)
        else:
            yield escapes.get(inner, inner)
