"""What stands around a primary that has its data: standbys that stream from it, a pooler in front.

However the primary came by its data (loaded, copied, left by another trial), its standbys are made
of it by a base backup and removed with the trial, so every trial's begin in the same state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.hosts.base import Host
from pgdyno.model import StandbyChoice, StorageChoice, SystemChoice
from pgdyno.servers import orphans, replication
from pgdyno.servers.base import PRIMARY, SERVER, Server, System
from pgdyno.servers.binaries import find_installations
from pgdyno.servers.clients import client_program
from pgdyno.servers.cluster import ClusterChoice, cluster_folders
from pgdyno.servers.initdb import Account
from pgdyno.servers.poolers.running import in_front
from pgdyno.servers.postmaster import running
from pgdyno.servers.privileges import server_user
from pgdyno.servers.provision import cluster_choice
from pgdyno.servers.readable import readable_by
from pgdyno.servers.standby import BaseBackup


@contextlib.contextmanager
def surround(
    primary: Server,
    choice: SystemChoice,
    host: Host,
    *,
    notice: Callable[[str], None],
    ledger: orphans.Ledger | None = None,
) -> Iterator[System]:
    """The whole system around a running primary, for as long as the context lasts.

    When it begins every standby streams and has replayed all there was, and commits wait for those
    that are synchronous. Raises `PgdynoError` for what does not start.
    """
    kept = ledger or orphans.Ledger()
    with ExitStack() as stack:
        system = System(
            servers={primary_role(choice): primary},
            cpus={primary_role(choice): choice.cpus} if choice.cpus else {},
        )
        if choice.standbys:
            system = stack.enter_context(_with_standbys(system, choice, host, kept, notice))
        if choice.pooler is not None:
            system = stack.enter_context(in_front(system, choice.pooler, host, kept))
        yield system


def primary_role(choice: SystemChoice) -> str:
    """What the server is called that takes the writes: it is a primary where others follow it."""
    return PRIMARY if choice.standbys else SERVER


@contextlib.contextmanager
def _with_standbys(
    system: System,
    choice: SystemChoice,
    host: Host,
    ledger: orphans.Ledger,
    notice: Callable[[str], None],
) -> Iterator[System]:
    primary, user = system.primary, server_user()
    names = replication.synchronous_names(choice.standbys, choice.quorum, primary.version_num)
    with ExitStack() as stack:
        program = _base_backup_program(choice, host, notice)
        for standby in choice.standbys:
            slot = stack.enter_context(replication.slot(primary, standby))
            backup = BaseBackup(
                program=program,
                version_num=primary.version_num,
                conninfo=_replication_conninfo(primary, standby),
                slot=slot,
                password=primary.password,
                tablespaces=replication.tablespaces(primary),
            )
            chosen = _standby_choice(choice, standby, host, notice)
            system = stack.enter_context(
                _with_standby(system, standby, replace(chosen, origin=backup), host, ledger)
            )
        replication.await_replay(primary, system.standbys)
        account = Account(host=host, user=user)
        stack.enter_context(replication.synchronous(primary, names, account))
        yield system


@contextlib.contextmanager
def _with_standby(
    system: System,
    standby: StandbyChoice,
    chosen: ClusterChoice,
    host: Host,
    ledger: orphans.Ledger,
) -> Iterator[System]:
    with (
        cluster_folders(chosen, host, ledger) as cluster,
        running(cluster, chosen.settings, host, ledger, ending="at once") as server,
    ):
        cpus = {standby.name: standby.cpus} if standby.cpus else {}
        yield replace(
            system,
            servers={**system.servers, standby.name: server},
            cpus={**system.cpus, **cpus},
        )


def _standby_choice(
    choice: SystemChoice, standby: StandbyChoice, host: Host, notice: Callable[[str], None]
) -> ClusterChoice:
    """A standby is as its primary is, but for what was said of it alone."""
    alike = choice.model_copy(
        update={
            "settings": choice.settings | standby.settings,
            "data": None,
            "storage": StorageChoice(),
            "port": standby.port,
            "cpus": standby.cpus,
            "limits": standby.limits,
        }
    )
    return cluster_choice(alike, host, notice)


def _base_backup_program(choice: SystemChoice, host: Host, notice: Callable[[str], None]) -> Path:
    """The server's own pg_basebackup, or another installation's, where its account can run it."""
    server = cluster_choice(choice, host, notice).installation
    own = server.bin_dir / "pg_basebackup"
    if own.exists():
        return own
    found = find_installations(host)
    program = client_program("pg_basebackup", server, found)
    whose = next(one for one in found if one.bin_dir == program.parent)
    return readable_by(whose, server_user(), host).bin_dir / program.name


def _replication_conninfo(primary: Server, standby: StandbyChoice) -> str:
    """How the standby reaches its primary: by the private socket, under its own name."""
    known = conninfo_to_dict(primary.conninfo)
    return make_conninfo(
        host=str(primary.sockets),
        port=known["port"],
        user=known["user"],
        application_name=standby.name,
    )
