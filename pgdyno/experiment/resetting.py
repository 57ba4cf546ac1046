"""How trials come by their loaded state without loading again: the choice, made by what is there.

A clone takes no time; a plain copy the time of writing the data once; loading again the longest.
A template database leaves the server running, so it is what a server that is not ours allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.errors import InvalidInput
from pgdyno.model import ResetMethod
from pgdyno.units import format_bytes

ChosenMethod = Literal["template", "clone", "copy", "load", "none"]

# Beside data and copy there must be room for the WAL that measurements write.
_RESERVE_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A method and the reason for it, as part of a sentence."""

    method: ChosenMethod
    reason: str


def choose_for_private(
    asked: ResetMethod, *, can_clone: bool, data_bytes: int, free_bytes: int
) -> Choice:
    """How trials on private servers get their state. Pure.

    `data_bytes` is what the loaded data will take, `free_bytes` the room before they are loaded.
    Raises `InvalidInput` for clones where files cannot share blocks.

    >>> choose_for_private("auto", can_clone=True, data_bytes=10, free_bytes=100).method
    'clone'
    """
    if asked == "clone" and not can_clone:
        raise InvalidInput(
            "reset 'clone' needs a file system whose files can share blocks (XFS, Btrfs)",
            hint="say reset 'copy', or put TMPDIR or the data folder on such a file system",
        )
    if asked != "auto":
        return Choice(method=asked, reason="asked for")
    if can_clone:
        return Choice(method="clone", reason="the file system lets files share blocks")
    needed_bytes = round(2 * data_bytes * (1 + _RESERVE_SHARE))
    if needed_bytes <= free_bytes:
        return Choice(method="copy", reason="the file system cannot clone, and a copy has room")
    return Choice(
        method="load",
        reason=f"data and a copy of them would take {format_bytes(needed_bytes)}, "
        f"{format_bytes(free_bytes)} are free",
    )


def choose_for_dsn(
    asked: ResetMethod, *, has_data: bool, adopted: bool, obstacle: str | None
) -> Choice:
    """How trials on the person's own server get their state, decided once it is loaded. Pure.

    `adopted` data were made by somebody else and are never replaced; `obstacle` says why the
    database cannot be copied. Raises `InvalidInput` for what such a server does not allow.

    >>> choose_for_dsn("auto", has_data=True, adopted=True, obstacle="no CREATEDB").method
    'none'
    """
    if asked in ("clone", "copy"):
        raise InvalidInput(
            f"reset '{asked}' copies the files of a stopped private server, not of your own (dsn)",
            hint="say reset 'template', 'load' or 'none'",
        )
    if asked == "template" and obstacle is not None:
        raise InvalidInput(f"reset 'template' is not possible: {obstacle}")
    if asked == "load" and adopted:
        raise InvalidInput(
            "reset 'load' would replace tables that pgdyno did not make",
            hint="say reset 'template' or 'none', or use another database",
        )
    if asked != "auto":
        return Choice(method=asked, reason="asked for")
    if not has_data:
        return Choice(method="none", reason="the workload has no data of its own")
    if obstacle is None:
        return Choice(method="template", reason="our role may copy the database")
    if adopted:
        return Choice(method="none", reason=f"the tables are not pgdyno's, and {obstacle}")
    return Choice(method="load", reason=obstacle)
