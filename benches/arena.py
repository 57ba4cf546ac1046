"""The servers of the bench: private ones with loaded workloads, and the null server; on demand."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import click
import psycopg
from cells import Cell, Transport
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.calibration.null_server import NullServerChoice, null_server
from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.loading import LoadRequest, load
from pgdyno.workloads.prewarming import prewarm
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.target import Target

# Everything cached and every client let in; the rest is as the server has it.
SETTINGS = {"max_connections": "300", "shared_buffers": "2GB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much data."""

    scale: int
    users: int
    pg: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cell runs."""

    conninfo: str
    password: str | None
    server: Server | None


class Arena:
    """Servers and databases, made when first needed and kept until the `with` ends."""

    def __init__(self, sizes: Sizes, stack: contextlib.ExitStack) -> None:
        self._sizes = sizes
        self._stack = stack
        self._host = Local()
        self._allowed = tuple(sorted(os.sched_getaffinity(0)))
        self._servers: dict[Transport, Server] = {}
        self._null: dict[Transport, str] = {}
        self._databases: dict[tuple[Transport, str], str] = {}

    def workload(self, name: str) -> ResolvedWorkload:
        """A workload at the size asked for."""
        sizes = {"scale": self._sizes.scale, "users": self._sizes.users}
        found = catalog.find(name)
        given = {key: str(value) for key, value in sizes.items() if key in found.parameters}
        return resolve(found, given)

    def server(self, transport: Transport) -> Server:
        """The private server that is reached this way."""
        if transport not in self._servers:
            choice = SystemChoice(pg=self._sizes.pg, settings=SETTINGS, tcp=transport == "tcp")
            click.echo(f"starting a private server ({transport})", err=True)
            started = self._stack.enter_context(provision(choice, self._host))
            self._servers[transport] = started
        return self._servers[transport]

    def place(self, cell: Cell) -> Place:
        """Where this cell runs, with its data loaded and in memory."""
        if cell.server == "null":
            return Place(conninfo=self._null_server(cell.transport), password=None, server=None)
        server = self.server(cell.transport)
        workload = self.workload(cell.workload)
        key = (cell.transport, workload.data_name)
        if key not in self._databases:
            self._databases[key] = self._load(server, workload)
        return Place(conninfo=self._databases[key], password=server.password, server=server)

    def settle(self, place: Place) -> None:
        """A checkpoint, so that no turn pays for another's dirty pages."""
        if place.server is not None:
            with psycopg.connect(
                place.conninfo, autocommit=True, password=place.password
            ) as connection:
                connection.execute("checkpoint")

    def client_cpus(self, cell: Cell) -> tuple[int, ...]:
        """Where clients may run; empty: anywhere."""
        return self._allowed[:1] if cell.apart and len(self._allowed) > 1 else ()

    def _null_server(self, transport: Transport) -> str:
        """It never sleeps, on a CPU that no client has; where there is but one CPU, as usual."""
        if transport not in self._null:
            apart = len(self._allowed) > 1
            choice = NullServerChoice(
                tcp=transport == "tcp", spins=apart, cpus=self._allowed[1:2] if apart else ()
            )
            started = self._stack.enter_context(null_server(choice, self._host))
            self._null[transport] = started.conninfo
        return self._null[transport]

    def _load(self, server: Server, workload: ResolvedWorkload) -> str:
        click.echo(f"loading {workload.data_name}", err=True)
        name = f"bench_{workload.data_name}".replace("-", "_")
        with psycopg.connect(
            server.conninfo, autocommit=True, password=server.password
        ) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        conninfo = make_conninfo(server.conninfo, dbname=name)
        target = Target(
            conninfo=conninfo, password=server.password, initdb_options=server.initdb_options
        )
        memory = Path("/proc/meminfo").read_text().split()
        load(
            workload,
            LoadRequest(
                target=target,
                loader=Loader(engine=find_engine(), host=self._host, connections=2),
                memory_bytes=int(memory[memory.index("MemTotal:") + 1]) * 1024,
            ),
        )
        prewarm(workload, target)
        return conninfo
