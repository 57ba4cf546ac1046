"""A system as the rest of the lab sees it: its servers and poolers, where the load connects.

`provision(SystemChoice) → System` in `servers/provision.py` makes one; it is a context manager, so
that whatever was started is stopped. What is here are frozen values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

SERVER: Final = "server"
"""The role of a server that stands alone."""
PRIMARY: Final = "primary"
"""The role of a server that others stream from. Theirs are the names of the standbys."""
POOLER: Final = "pooler"
ENGINE: Final = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running PostgreSQL.

    `conninfo` carries no password; `password` reaches processes by environment only. `data`,
    `sockets` and `postmaster_pid` are None for a server that is not ours or not on this host.
    """

    conninfo: str
    password: str | None = field(default=None, repr=False)
    version_num: int
    version: str
    host_name: str
    private: bool
    bin_dir: Path | None = None
    data: Path | None = None
    sockets: Path | None = None
    postmaster_pid: int | None = None
    log: Path | None = None
    initdb_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooler:
    """A running pooler or balancer: how clients connect through it, and its first process.

    `statistics` is how its own counters are asked for, where it has a way to be asked; `backends`
    are the roles of the servers behind it, in its own order.
    """

    kind: str
    version: str
    conninfo: str
    host_name: str
    password: str | None = field(default=None, repr=False)
    pid: int | None = None
    log: Path | None = None
    statistics: str | None = None
    backends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Everything that runs for a trial but the engine.

    `servers`: role → server, the one that takes the writes first: `server` where it stands alone,
    else `primary` with its standbys by their names. `poolers`: role → pooler. `cpus`: role → the
    CPUs it may use, where not all.
    """

    servers: Mapping[str, Server]
    poolers: Mapping[str, Pooler] = field(default_factory=dict)
    cpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def primary(self) -> Server:
        """The server that takes the writes, be it alone or not: loads and checks go here."""
        return next(iter(self.servers.values()))

    @property
    def primary_role(self) -> str:
        """`server` or `primary`."""
        return next(iter(self.servers))

    @property
    def standbys(self) -> Mapping[str, Server]:
        """The others, by role."""
        return {role: one for role, one in self.servers.items() if role != self.primary_role}

    @property
    def entry(self) -> Server:
        """Where the load connects: the primary, or the primary by way of the pooler."""
        for pooler in self.poolers.values():
            return replace(self.primary, conninfo=pooler.conninfo, password=pooler.password)
        return self.primary

    @property
    def processes(self) -> Mapping[str, int]:
        """Role → its first process, of all that run here and are ours."""
        found = {role: server.postmaster_pid for role, server in self.servers.items()}
        found |= {role: pooler.pid for role, pooler in self.poolers.items()}
        return {role: pid for role, pid in found.items() if pid is not None}


def alone(server: Server) -> System:
    """A system of one server."""
    return System(servers={SERVER: server})
