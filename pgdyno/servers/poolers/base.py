"""Nouns of poolers, and the protocol of a kind: how one is configured, judged, started and asked.

A `Plan` is everything that decides a pooler's files and command line; the kinds make them from it
and know nothing of processes. `running.py` starts, `checking.py` judges before anything is made.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pgdyno.servers.poolers.facts import Facts
from pgdyno.servers.poolers.programs import Program

Mode = Literal["session", "transaction", "statement"]

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A server as a pooler reaches it. `host`: a socket folder, or an address."""

    role: str
    host: str
    port: int

    @property
    def by_socket(self) -> bool:
        """Whether it is reached through a folder."""
        return self.host.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pooler is to be. `settings` are the person's, in the program's own words.

    Its files and sockets lie in `folder`. `user` is the role that the load connects as, `database`
    what it connects to; `password` None: whoever can enter the folder is trusted.
    """

    program: Program
    mode: Mode | None
    settings: Mapping[str, str]
    backends: tuple[Backend, ...]
    folder: Path
    port: int
    tcp: bool
    user: str
    database: str
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a program says is wrong with its configuration; `setting` where it says which."""

    setting: str | None
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A number of connections or transactions and the setting that it comes from.

    `restart`: whether the pooler must be restarted for another value.
    """

    count: int
    setting: str
    restart: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a configuration lets through at most; None where nothing limits it.

    `clients`: connected at once; `beyond` says what becomes of more. `active`: at work at once, the
    others wait for their turn; where a client keeps its server connection for good (`keeps`) those
    beyond it never get one. `to_each_server`: connections of one account and database; `worst`: of
    several. `observers`: connections of clients that pgdyno takes to ask for statistics.
    `prepared`: why named prepared statements do not work; None: they do.
    """

    kind: str
    version: str
    clients: Limit | None = None
    beyond: Literal["wait", "refused"] = "refused"
    active: Limit | None = None
    keeps: bool = True
    to_each_server: int | None = None
    worst: int | None = None
    observers: int = 0
    mode: Mode = "session"
    prepared: str | None = None
    backends: tuple[str, ...] = ()


class Kind(Protocol):
    """One kind of pooler."""

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        ...

    @property
    def death_signal(self) -> signal.Signals:
        """What ends it at once, with its children, when the lab dies."""
        ...

    def files(self, plan: Plan) -> dict[str, str]:
        """Name in its folder → text of each file it needs."""
        ...

    def words(self, plan: Plan) -> list[str]:
        """The command that runs it in the foreground."""
        ...

    def capacity(self, plan: Plan) -> Capacity:
        """What the plan lets through."""
        ...

    def statistics(self, plan: Plan) -> str:
        """How its own counters are asked for: conninfo, or path of a socket."""
        ...


def setting_of(plan: Plan, defaults: Mapping[str, str], name: str) -> int:
    """A whole number that is in force; 0 for what is none (the program itself refuses it)."""
    value = plan.settings.get(name, defaults.get(name, "0")).strip()
    return int(value) if value.isdigit() else 0
