"""Whether a load fits through a pooler, told before anything is loaded. Pure.

A client that a pooler lets wait is told nothing: a load generator believes in 400 clients while 150
of them are served. So it is refused, with the setting, its value to be and whether that takes a
restart; or, where the person says that fewer clients will do, told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pgdyno.servers.base import PRIMARY, SERVER
from pgdyno.servers.poolers.base import Capacity, Limit
from pgdyno.units import format_count

# Commands that a standby carries out too, or that change nothing.
_READING: Final = frozenset(
    {
        *("abort", "begin", "close", "commit", "deallocate", "declare", "discard", "end"),
        *("execute", "explain", "fetch", "move", "prepare", "release", "reset", "rollback"),
        *("savepoint", "select", "set", "show", "start", "table", "values", "with"),
    }
)
_COMMENT: Final = re.compile(r"--[^\n]*|^\s*\\[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a load asks of a pooler. `scripts`: name → text of each transaction type that runs.

    `enough`: clients that are enough to begin; None: all. `max_connections` of each server.
    """

    clients: int
    enough: int | None
    protocol: str
    scripts: dict[str, str]
    max_connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What is wrong, what is worth knowing, and how many connections the load takes of a server."""

    problems: tuple[str, ...]
    notices: tuple[str, ...]
    sessions: int


def fit(capacity: Capacity, demand: Demand) -> Fit:
    """Hold a load against what a pooler lets through."""
    problems: list[str] = []
    notices: list[str] = []
    for said, is_enough in _short(capacity, demand):
        (notices if is_enough else problems).append(said)
    problems += _impossible(capacity, demand)
    if not capacity.keeps and capacity.active and demand.clients > capacity.active.count:
        notices.append(
            f"at most {capacity.active.count} of {demand.clients} clients are active at once, as "
            f"{capacity.mode} pooling wants it: {capacity.active.setting}"
        )
    if capacity.worst and capacity.worst > demand.max_connections >= (capacity.to_each_server or 0):
        notices.append(
            f"{capacity.kind} may open {format_count(capacity.worst)} connections to each server, "
            f"more than max_connections = {demand.max_connections}; this load, of one account and "
            f"database, takes {capacity.to_each_server} at most"
        )
    sessions = demand.clients + capacity.observers
    if capacity.to_each_server is not None:
        sessions = min(sessions, capacity.to_each_server)
    return Fit(problems=tuple(problems), notices=tuple(notices), sessions=sessions)


def _short(capacity: Capacity, demand: Demand) -> Iterator[tuple[str, bool]]:
    """A line for each limit that keeps clients out for good, and whether those left are enough."""
    limits = [(capacity.clients, capacity.observers, capacity.beyond)]
    if capacity.keeps and capacity.active != capacity.clients:
        limits.append((capacity.active, 0, "wait"))
    for limit, own, beyond in limits:
        if limit is None or demand.clients + own <= limit.count:
            continue
        room = max(limit.count - own, 0)
        serves = f"{capacity.kind}'s {limit.setting} = {limit.count} serves {room}"
        if demand.enough is not None and demand.enough <= room:
            fate = "wait without an answer" if beyond == "wait" else "are refused"
            yield f"{serves} of {demand.clients} clients, the others {fate}", True
            continue
        come = f"{demand.clients} clients" + (f" and {own} of pgdyno's own" if own else "")
        fate = "leaves the others waiting without an answer" if beyond == "wait" else "refuses more"
        way = f"set {limit.setting} to {demand.clients + own} ({_when(capacity, limit)})"
        way += f", or begin with --min-clients {room}" if room else ""
        if limit is capacity.active and capacity.kind == "pgbouncer":
            way += ", or pool transactions"
        yield f"{come} connect, but {serves} clients and {fate}: {way}", False


def _when(capacity: Capacity, limit: Limit) -> str:
    return f"{capacity.kind} must be restarted" if limit.restart else "a reload is enough"


def _impossible(capacity: Capacity, demand: Demand) -> Iterator[str]:
    """What would fail with every transaction."""
    shown = f"{capacity.kind} {capacity.version}"
    if capacity.prepared is not None and demand.protocol == "prepared":
        yield (
            f"protocol 'prepared' cannot go through {shown} with {capacity.mode} pooling, "
            f"{capacity.prepared}: give --protocol extended or simple, or pool sessions"
        )
    if capacity.mode == "statement":
        for name, script in demand.scripts.items():
            if _words(script) & {"begin", "start"}:
                yield (
                    f"'{name}' begins a transaction of several statements, which statement pooling "
                    "refuses: pool transactions"
                )
    standbys = [role for role in capacity.backends if role not in {PRIMARY, SERVER}]
    if standbys and capacity.kind != "pgpool":
        for name, script in demand.scripts.items():
            if writing := sorted(_words(script) - _READING):
                yield (
                    f"'{name}' writes ({', '.join(writing)}), but {capacity.kind} sends to "
                    f"{', '.join(standbys)}, which only reads: let it send to the primary alone"
                )


def _words(script: str) -> set[str]:
    r"""The first words of a script's statements.

    >>> sorted(_words("\\set aid 1\nBEGIN; UPDATE t SET a = 1;\nEND;"))
    ['begin', 'end', 'update']
    """
    statements = _COMMENT.sub("", script).split(";")
    return {found.group().lower() for one in statements if (found := re.search(r"[A-Za-z]+", one))}
