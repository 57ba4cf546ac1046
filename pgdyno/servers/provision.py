"""From what was asked for to a running server: a private one, or the person's own.

The one door for the rest of the lab. Everything that can be refused is refused before anything is
made; leaving the context stops and removes whatever was started. Prints nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from pgdyno.errors import Problems
from pgdyno.hosts.base import Host
from pgdyno.model import InitdbChoice, Limits, StorageChoice, SystemChoice
from pgdyno.servers import limits, orphans, preflight, replication
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import Installation
from pgdyno.servers.cluster import Cluster, ClusterChoice, Origin, cluster_folders
from pgdyno.servers.initdb_options import check_initdb
from pgdyno.servers.obtaining import obtain
from pgdyno.servers.postmaster import Ending, running
from pgdyno.servers.privileges import server_user
from pgdyno.servers.readable import readable_by
from pgdyno.servers.remote import connect_remote
from pgdyno.servers.settings import check_settings, installed_locales
from pgdyno.servers.storage import place_storage


def _silent(notice: str) -> None:
    """Nobody listens."""


@contextlib.contextmanager
def provision(
    choice: SystemChoice,
    host: Host,
    *,
    ledger: orphans.Ledger | None = None,
    notice: Callable[[str], None] = _silent,
    cpus: tuple[int, ...] = (),
) -> Iterator[Server]:
    """A server as chosen, for as long as the context lasts.

    `notice` gets a line for each orphan that was found and ended. `cpus` pins a private server.
    Raises `InvalidInput` for what cannot be meant, `PgdynoError` for what cannot be done.
    """
    kept = ledger or orphans.Ledger()
    if choice.dsn is not None:
        refuse_contradictions(choice)
        sweep(kept, notice)
        yield connect_remote(choice.dsn, host)
        return
    if cpus:
        choice = choice.model_copy(update={"cpus": cpus})
    with private_cluster(choice, host, ledger=kept, notice=notice) as cluster:
        ending: Ending = "at once" if choice.data is None else "clean"
        with running(cluster, cluster.choice.settings, host, kept, ending=ending) as server:
            yield server


@contextlib.contextmanager
def private_cluster(
    choice: SystemChoice,
    host: Host,
    *,
    ledger: orphans.Ledger,
    notice: Callable[[str], None] = _silent,
    origin: Origin | None = None,
) -> Iterator[Cluster]:
    """A private server's folders without the server: new, kept, or copied from `origin`.

    For whoever starts and stops it by hand with `running`, or copies it. Raises as `provision`.
    """
    refuse_contradictions(choice)
    sweep(ledger, notice)
    chosen = replace(cluster_choice(choice, host, notice), origin=origin)
    with cluster_folders(chosen, host, ledger) as cluster:
        yield cluster


def sweep(ledger: orphans.Ledger, notice: Callable[[str], None]) -> None:
    """End and remove what killed labs left behind, and tell of each."""
    for line in orphans.sweep(ledger):
        notice(line)


def cluster_choice(
    choice: SystemChoice, host: Host, notice: Callable[[str], None] = _silent
) -> ClusterChoice:
    """A private server's binaries, account and settings, found and checked; no cluster is made.

    A version that is not on this machine is fetched and a revision is built, as `notice` is told.
    """
    user = server_user()
    installation = readable_by(obtain(choice.pg, host, notice), user, host)
    settings = settings_of(choice, installation)
    check_settings(settings, installation, host, user)
    check_initdb(choice.initdb, installation.version_num, installed_locales(host))
    place_storage(choice.storage, orphans.FOLDER_PREFIX, None)
    return ClusterChoice(
        installation=installation,
        settings=settings,
        data=None if choice.data is None else Path(choice.data).expanduser().absolute(),
        tcp=choice.tcp,
        port=choice.port,
        user=user,
        cpus=choice.cpus,
        limits=choice.limits,
        initdb=choice.initdb,
        storage=choice.storage,
    )


def settings_of(choice: SystemChoice, installation: Installation) -> dict[str, str]:
    """The settings that the primary runs with: the person's, and what its standbys need."""
    return choice.settings | replication.needed_settings(choice, installation.version_num)


def refuse_contradictions(choice: SystemChoice) -> None:
    """Raise `Problems` for options of a private server beside a dsn, and for impossible ones."""
    problems = []
    if choice.dsn is not None:
        given = (
            ("--pg", choice.pg is not None),
            ("--set", bool(choice.settings)),
            ("--initdb", choice.initdb != InitdbChoice()),
            ("a storage folder", choice.storage != StorageChoice()),
            ("a limit", choice.limits != Limits()),
            ("--data", choice.data is not None),
            ("--tcp", choice.tcp),
            ("--port", choice.port is not None),
            ("--standbys", bool(choice.standbys)),
            ("--pooler", choice.pooler is not None),
        )
        problems += [
            f"{option} is for a private server and cannot be given with --dsn"
            for option, is_given in given
            if is_given
        ]
    if choice.port is not None and not 1 <= choice.port <= 65535:
        problems.append(f"--port {choice.port} is not between 1 and 65535")
    problems += replication.problems_of(choice)
    pinned = {"server": choice.cpus} | {each.name: each.cpus for each in choice.standbys}
    pinned |= {} if choice.pooler is None else {"pooler": choice.pooler.cpus}
    problems += preflight.check_cpus(pinned, tuple(sorted(os.sched_getaffinity(0))))
    if reason := limits.why_not(choice.limits):
        problems.append(reason)
    if problems:
        raise Problems(problems)
