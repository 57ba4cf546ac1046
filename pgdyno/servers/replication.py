"""Streaming replication: what a primary needs for it, who is waited for, and who lags behind.

What `needed_settings` adds is what PostgreSQL does by itself from 10 on; where a person's own
settings would not do, `problems_of` says so before anything is made.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg

from pgdyno.errors import PgdynoError
from pgdyno.model import StandbyChoice, SystemChoice
from pgdyno.queries import query_for
from pgdyno.servers import trouble
from pgdyno.servers.base import ENGINE, POOLER, PRIMARY, SERVER, Server
from pgdyno.servers.initdb import SETTINGS_FILE, Account
from pgdyno.servers.settings import render_settings
from pgdyno.units import format_bytes

SYNCHRONOUS_NAMES: Final = "synchronous_standby_names"
_SLOT_PREFIX: Final = "pgdyno_"
_SENDERS: Final = 10
"""The default of max_wal_senders and max_replication_slots from 10 on."""
_TAKEN_NAMES: Final = frozenset({SERVER, PRIMARY, POOLER, ENGINE, "observers", "host"})
_SYNCHRONOUS_DEADLINE_S = 60.0
_STALLED_S = 60.0
_POLL_S = 0.02


def needed_settings(choice: SystemChoice, version_num: int) -> dict[str, str]:
    """Settings without which the chosen standbys could not stream, where nobody named them."""
    if not choice.standbys:
        return {}
    senders = _senders_needed(choice)
    found = {}
    if version_num < 100000:
        found = {"wal_level": "replica", "hot_standby": "on"}
    if version_num < 100000 or senders > _SENDERS:
        found["max_wal_senders"] = found["max_replication_slots"] = str(max(senders, _SENDERS))
    return {name: value for name, value in found.items() if name not in choice.settings}


def problems_of(choice: SystemChoice) -> list[str]:
    """What cannot be of the chosen standbys, one line each."""
    names = [standby.name for standby in choice.standbys]
    found = [
        f"there are two standbys '{name}'" for name in sorted(set(names)) if names.count(name) > 1
    ]
    found += [f"a standby cannot be called '{name}'" for name in names if name in _TAKEN_NAMES]
    synchronous = [standby for standby in choice.standbys if standby.synchronous]
    if choice.quorum is not None and choice.quorum > len(synchronous):
        waited = f"{len(synchronous)} synchronous standbys"
        found.append(f"commits cannot wait for any {choice.quorum} of {waited}")
    return found + (_wrong_settings(choice) if choice.standbys else [])


def _wrong_settings(choice: SystemChoice) -> list[str]:
    """Settings of the person's that leave standbys nothing to stream."""
    settings, needed = choice.settings, _senders_needed(choice)
    found = []
    if settings.get("wal_level") == "minimal":
        found.append("wal_level = minimal leaves a standby too little: set it to replica")
    if settings.get("hot_standby", "on") in ("off", "false", "no", "0"):
        found.append("hot_standby = off lets nobody look at a standby: leave it on")
    if SYNCHRONOUS_NAMES in settings:
        found.append(f"{SYNCHRONOUS_NAMES} is made from the standbys: say which are synchronous")
    for name, least in (
        ("max_wal_senders", needed),
        ("max_replication_slots", sum(standby.slot for standby in choice.standbys)),
    ):
        if settings.get(name, "").isdigit() and int(settings[name]) < least:
            found.append(f"{name} = {settings[name]} is too few: set it to {least}")
    return found


def _senders_needed(choice: SystemChoice) -> int:
    """One for each standby, and two more while a base backup is made."""
    return len(choice.standbys) + 2


def synchronous_names(
    standbys: Sequence[StandbyChoice], quorum: int | None, version_num: int
) -> str:
    """The value of synchronous_standby_names; empty where no commit waits.

    >>> one, two = StandbyChoice(name="a", synchronous=True), StandbyChoice(name="b")
    >>> synchronous_names([one, two], None, 150000)
    'FIRST 1 ("a")'
    >>> synchronous_names([one], 1, 150000), synchronous_names([one], None, 90600)
    ('ANY 1 ("a")', '1 ("a")')
    """
    names = [f'"{standby.name}"' for standby in standbys if standby.synchronous]
    if not names:
        return ""
    how = "FIRST " if quorum is None else "ANY "
    if version_num < 100000:
        how = ""  # It knows no ANY; the first ones are waited for.
    return f"{how}{quorum or len(names)} ({', '.join(names)})"


def slot_name(standby: str) -> str:
    """The slot of a standby: ours are known by how they begin.

    >>> slot_name("standby-1")
    'pgdyno_standby_1'
    """
    return _SLOT_PREFIX + standby.replace("-", "_")


@contextlib.contextmanager
def slot(primary: Server, standby: StandbyChoice) -> Iterator[str | None]:
    """The standby's slot on the primary where it wants one, dropped at the end."""
    if not standby.slot:
        yield None
        return
    name = slot_name(standby.name)
    _run(primary, "select pg_create_physical_replication_slot(%s)", [name])
    try:
        yield name
    finally:
        with contextlib.suppress(PgdynoError):
            drop_slots(primary)


def drop_slots(primary: Server) -> None:
    """Drop slots of ours that nobody uses: one that is left would keep WAL for ever."""
    for row in _ask(primary, "abandoned_slots"):
        _run(primary, "select pg_drop_replication_slot(%s)", [row[0]])


@contextlib.contextmanager
def synchronous(primary: Server, names: str, account: Account) -> Iterator[None]:
    """Commits wait for these standbys as long as the context lasts; `names` empty: for none.

    They must be streaming. Raises `PgdynoError` where they do not become synchronous.
    """
    if not names or primary.data is None:
        yield
        return
    file = primary.data / SETTINGS_FILE
    before = account.host.read_text(file)
    if before is None:
        raise PgdynoError(f"cannot read '{file}'")
    account.write(file, before.rstrip("\n") + "\n" + render_settings({SYNCHRONOUS_NAMES: names}))
    try:
        _run(primary, "select pg_reload_conf()")
        _await_synchronous(primary, names)
        yield
    finally:
        with contextlib.suppress(PgdynoError):
            account.write(file, before)
            _run(primary, "select pg_reload_conf()")


def tablespaces(primary: Server) -> tuple[str, ...]:
    """The folders of the primary's tablespaces."""
    return tuple(str(row[1]) for row in _ask(primary, "tablespaces"))


def await_replay(
    primary: Server, standbys: Mapping[str, Server], *, stalled_s: float = _STALLED_S
) -> None:
    """Wait until every standby has replayed what the primary has written so far.

    Raises `PgdynoError` with what a standby's log says when it made no progress for `stalled_s`.
    """
    if not standbys:
        return
    target_bytes = _position(primary, "wal_position")
    for role, standby in standbys.items():
        reached_bytes, moved_s = -1, time.monotonic()
        while (now_bytes := _position(standby, "replay_position")) < target_bytes:
            if now_bytes > reached_bytes:
                reached_bytes, moved_s = now_bytes, time.monotonic()
            elif time.monotonic() - moved_s >= stalled_s:
                behind = format_bytes(target_bytes - now_bytes)
                raise PgdynoError(
                    f"{role} replays nothing and is {behind} behind{_last_words(standby)}"
                )
            time.sleep(_POLL_S)


def _last_words(server: Server) -> str:
    """The last serious line of a server's log, for the end of a message."""
    _, serious = trouble.read_log(server.log)
    return f"; its log: {serious[-1]}" if serious else ""


def _await_synchronous(primary: Server, names: str) -> None:
    wanted = names.count('"') // 2
    end_s = time.monotonic() + _SYNCHRONOUS_DEADLINE_S
    while True:
        ((found,),) = _ask(primary, "synchronous_standbys")
        # Of those that stand behind the first ones some are only potential ones.
        if found >= 1 and (found == wanted or not names.startswith("ANY")):
            return
        if time.monotonic() >= end_s:
            raise PgdynoError(f"the standbys {names} did not become synchronous")
        time.sleep(_POLL_S)


def _position(server: Server, question: str) -> int:
    ((position_bytes,),) = _ask(server, question)
    return 0 if position_bytes is None else int(position_bytes)


def _ask(server: Server, question: str) -> list[Any]:
    return _run(server, query_for(question, server.version_num))


def _run(server: Server, statement: str, values: Any = None) -> list[Any]:
    try:
        with psycopg.connect(
            server.conninfo, password=server.password, autocommit=True, connect_timeout=10
        ) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall()
    except psycopg.Error as error:
        said = str(error).strip().splitlines()
        raise PgdynoError(f"replication: {said[0] if said else error}") from error
