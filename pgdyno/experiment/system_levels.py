"""Levels that say what stands around a server: its standbys, and what is in front of it. Pure.

>>> standbys("2 synchronous")[0][1].name, standbys(0)
('standby-2', ((), None))
>>> pooler("pgbouncer transaction").mode, pooler("none")
('transaction', None)
>>> pooler("pgpool num_init_children=64").settings
{'num_init_children': '64'}
"""

from __future__ import annotations

import re
import shlex
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
_MODES: Final = ("session", "transaction", "statement")


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
    """What stands in front of the servers: `none`, or its kind, with a mode and settings behind it.

    `pgbouncer transaction default_pool_size=8`; a value with blanks stands in quotes.
    """
    try:
        kind, *rest = shlex.split(text_of(level)) or [""]
    except ValueError as error:
        raise InvalidInput(f"'{text_of(level)}' does not say which pooler: {error}") from error
    if kind in ("none", "off") and not rest:
        return None
    if kind not in _KINDS:
        raise InvalidInput(f"'{kind}' is not a pooler", hint=nearest_hint(kind, ("none", *_KINDS)))
    settings = dict(word.split("=", 1) for word in rest if "=" in word)
    modes = [word for word in rest if "=" not in word]
    for mode in modes:
        if mode not in _MODES:
            raise InvalidInput(
                f"'{mode}' is neither a pooling mode nor NAME=VALUE",
                hint=nearest_hint(mode, _MODES),
            )
    if len(modes) > 1:
        raise InvalidInput(f"{kind} has one mode, not {' and '.join(modes)}")
    return PoolerChoice.model_validate(
        {"kind": kind, "mode": next(iter(modes), None), "settings": settings}
    )
