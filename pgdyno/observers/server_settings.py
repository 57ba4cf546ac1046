"""The server's settings: all of them, and those that differ from what it was compiled with.

What only our own session set is left out. Passwords and keys that a setting holds are never
returned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pgdyno.model import Settings, SettingValue
from pgdyno.observers.base import Row
from pgdyno.observers.session import Session

HIDDEN: Final = "(hidden)"
_OWN_SESSION: Final = frozenset({"client", "session"})
# Follow from what our session asked for, whatever their source says.
_OWN_TRANSACTION: Final = frozenset(
    {"transaction_read_only", "transaction_isolation", "transaction_deferrable"}
)
_SECRET_NAME: Final = re.compile(r"password|passphrase|secret|token|api_?key|credential", re.I)
_SECRET_IN_CONNINFO: Final = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.|'')*'|\S+)", re.I)
_SECRET_IN_URI: Final = re.compile(r"(\w+://[^:/@\s]*:)[^@\s]*@")
# Names that speak of passwords without holding one.
_HARMLESS: Final = frozenset({"password_encryption", "db_user_namespace"})
_STEPS: Final = {
    "B": (("TB", 1024**4), ("GB", 1024**3), ("MB", 1024**2), ("kB", 1024), ("B", 1)),
    "ms": (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)),
}
_BASE: Final = {
    **{"B": ("B", 1), "kB": ("B", 1024), "MB": ("B", 1024**2), "GB": ("B", 1024**3)},
    **{"ms": ("ms", 1), "s": ("ms", 1000), "min": ("ms", 60_000)},
}


def read_settings(session: Session) -> Settings:
    """Settings of the server behind a session."""
    return settings_from(session.ask("settings"), session.version_num)


def settings_from(rows: Sequence[Row], version_num: int) -> Settings:
    """Settings from the rows of the question `settings`."""
    rows = [
        row
        for row in rows
        if row["source"] not in _OWN_SESSION and row["name"] not in _OWN_TRANSACTION
    ]
    shown = {value.name: value.value for value in map(_value, rows)}
    differing = [_value(row) for row in rows if row["setting"] != row["compiled_in"]]
    return Settings(
        server_version=shown.get("server_version", str(version_num)),
        server_version_num=version_num,
        non_default=tuple(differing),
        all=shown,
    )


def with_unit(value: str, unit: str | None) -> str:
    """A value in a setting's base unit as SHOW prints it: in the largest unit that divides it.

    >>> with_unit("16384", "8kB"), with_unit("300", "s"), with_unit("-1", "kB")
    ('128MB', '5min', '-1')
    """
    match = re.fullmatch(r"(\d*)([A-Za-z]+)", unit or "")
    if match is None or match[2] not in _BASE or not re.fullmatch(r"\d+", value) or value == "0":
        return value
    kind, factor = _BASE[match[2]]
    amount = int(value) * int(match[1] or 1) * factor
    name, size = next(step for step in _STEPS[kind] if amount % step[1] == 0)
    return f"{amount // size}{name}"


def without_secrets(name: str, value: str) -> str:
    """A setting's value with passwords replaced.

    >>> without_secrets("primary_conninfo", "host=a password='b c' user=d")
    'host=a password=(hidden) user=d'
    """
    if value and name not in _HARMLESS and _SECRET_NAME.search(name):
        return HIDDEN
    value = _SECRET_IN_CONNINFO.sub(rf"\g<1>{HIDDEN}", value)
    return _SECRET_IN_URI.sub(rf"\g<1>{HIDDEN}@", value)


def _value(row: Row) -> SettingValue:
    name, compiled_in, unit = str(row["name"]), row["compiled_in"], row["unit"]
    default = None if compiled_in is None else with_unit(str(compiled_in), str(unit or ""))
    return SettingValue(
        name=name,
        value=without_secrets(name, "" if row["shown"] is None else str(row["shown"])),
        default=None if default is None else without_secrets(name, default),
        source=str(row["source"]),
    )
