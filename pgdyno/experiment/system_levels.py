"""Levels that say what stands around a server: its standbys, and what is in front of it. Pure.

>>> standbys("2 synchronous")[0][1].name, standbys(0)
('standby-2', ((), None))
>>> pooler("pgbouncer transaction").mode, pooler("none")
('transaction', None)
"""

from __future__ import annotations

import re
from typing import Final, get_args

from pgdyno.errors import InvalidInput, nearest_hint
from pgdyno.experiment.levels import Level, text_of
from pgdyno.model import PoolerChoice, StandbyChoice

STANDBYS_MAX: Final = 32
_STANDBYS = re.compile(
    r"(?P<count>\d+)"
    r"(?:\s+(?P<synchronous>(?:any\s+(?P<quorum>\d+)\s+)?synchronous))?"
    r"(?P<slots>\s+with\s+slots)?"
)
_KINDS: Final = get_args(PoolerChoice.model_fields["kind"].annotation)


def standbys(level: Level) -> tuple[tuple[StandbyChoice, ...], int | None]:
    """Standbys alike, and how many of them a commit waits for; None: for all synchronous ones.

    `2`, `2 synchronous`, `3 any 1 synchronous`, each also `with slots`.
    """
    match = _STANDBYS.fullmatch(text_of(level).strip())
    if match is None:
        raise InvalidInput(
            f"'{text_of(level)}' does not say which standbys",
            hint="write 2, 2 synchronous, 3 any 1 synchronous, or 2 with slots",
        )
    count = int(match["count"])
    if count > STANDBYS_MAX:
        raise InvalidInput(f"{count} standbys are more than {STANDBYS_MAX}")
    found = tuple(
        StandbyChoice(
            name=f"standby-{number}",
            synchronous=match["synchronous"] is not None,
            slot=match["slots"] is not None,
        )
        for number in range(1, count + 1)
    )
    quorum = None if match["quorum"] is None else int(match["quorum"])
    if quorum is not None and not 1 <= quorum <= count:
        raise InvalidInput(f"commits cannot wait for any {quorum} of {count} standbys")
    return found, quorum


def pooler(level: Level) -> PoolerChoice | None:
    """What stands in front of the servers: `none`, or its kind, with a mode behind it."""
    kind, _, mode = text_of(level).strip().partition(" ")
    if kind in ("none", "off"):
        return None
    if kind not in _KINDS:
        raise InvalidInput(f"'{kind}' is not a pooler", hint=nearest_hint(kind, ("none", *_KINDS)))
    modes = ("session", "transaction", "statement")
    mode = mode.strip()
    if mode and mode not in modes:
        raise InvalidInput(f"'{mode}' is not a pooling mode", hint=nearest_hint(mode, modes))
    return PoolerChoice.model_validate({"kind": kind, "mode": mode or None})
