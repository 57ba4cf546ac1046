"""A private cluster's folders from nothing to removed: one context manager.

Its socket lies in a folder of mode 0700, where everybody who can enter is trusted; it listens on
loopback only when asked, with a generated password. It is recorded in the ledger before anything is
made. `postmaster.py` starts and stops its server.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgdyno.errors import InvalidInput
from pgdyno.hosts.base import Host
from pgdyno.model import InitdbChoice, Limits, StorageChoice
from pgdyno.servers import folders, initdb, limits, orphans
from pgdyno.servers.binaries import Installation
from pgdyno.servers.copying import Copied, CopyMethod, copy_cluster
from pgdyno.servers.initdb_options import initdb_options, is_asked_for
from pgdyno.servers.shielding import uninterrupted
from pgdyno.servers.standby import BaseBackup, make_standby
from pgdyno.servers.storage import (
    StorageFolders,
    check_storage,
    copy_outside,
    make_storage,
    place_storage,
)

LOOPBACK = "127.0.0.1"
_DEFAULT_PORT = 5432


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A stopped cluster to copy. `root`: where the copy's folders go; None: the temporary root."""

    data: Path
    method: CopyMethod
    root: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """What kind of private server. `data` None: temporary, removed; `port` None: a free one.

    `cpus` are those it and all its backends may use; empty: any. `origin` None: a new cluster; a
    base backup makes a standby.
    """

    installation: Installation
    settings: Mapping[str, str]
    data: Path | None
    tcp: bool
    port: int | None
    user: str | None
    cpus: tuple[int, ...] = ()
    limits: Limits = field(default_factory=Limits)
    initdb: InitdbChoice = field(default_factory=InitdbChoice)
    storage: StorageChoice = field(default_factory=StorageChoice)
    origin: Origin | BaseBackup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Folders and port of one server, which need not run.

    `entry` is its line in the ledger, with the folders that are ours alone and removed in the end.
    `storage`: folders elsewhere; `groups`: the control groups that its server enters.
    `used_before`: data that were kept, so that the server may have to recover. `copied`: what it
    was made from, where it is a copy.
    """

    choice: ClusterChoice
    base: Path
    data: Path
    sockets: Path
    log: Path
    port: int
    entry: orphans.Entry
    storage: StorageFolders = field(default_factory=StorageFolders)
    groups: tuple[Path, ...] = ()
    used_before: bool = False
    copied: Copied | None = None


@contextlib.contextmanager
def cluster_folders(choice: ClusterChoice, host: Host, ledger: orphans.Ledger) -> Iterator[Cluster]:
    """A cluster of its own: new, copied or found in a kept folder; removed unless it is kept.

    Raises `InvalidInput` for a data folder or port that cannot be used.
    """
    identifier = secrets.token_hex(4)
    reuse = False
    if choice.data is not None:
        facts = folders.data_folder_facts(choice.data)
        major = choice.installation.major
        reuse = folders.judge_data_folder(choice.data, facts, major) == "reuse"
    cluster = _place(choice, host, identifier)
    ledger.record(cluster.entry)
    try:
        yield _make(cluster, host, reuse=reuse)
    finally:
        entry = cluster.entry
        with uninterrupted():
            if orphans.end_processes(entry) and not orphans.remove_folders(entry):
                ledger.forget(entry)


def _place(choice: ClusterChoice, host: Host, identifier: str) -> Cluster:
    """Decide on folders and port; nothing is made yet."""
    name = orphans.FOLDER_PREFIX + identifier
    root = choice.origin.root if isinstance(choice.origin, Origin) else None
    root = root or folders.temporary_root(host, choice.user)
    base, sockets = root / name, folders.socket_folder(root, name)
    data = base / "data" if choice.data is None else choice.data
    storage = place_storage(choice.storage, name, choice.data)
    groups = limits.group_folders(choice.limits, name)
    made = dict.fromkeys([*groups, base, sockets])
    if choice.data is None:
        made |= dict.fromkeys(storage.roots)
    if choice.data is not None:
        made[choice.data / name] = None
    entry = orphans.new_entry(
        identifier,
        folders=tuple(made),
        data=data,
        program=choice.installation.bin_dir / "postgres",
        keep=choice.data is not None,
    )
    return Cluster(
        choice=choice,
        base=base,
        data=data,
        sockets=sockets,
        log=base / "server.log",
        port=_port(choice),
        entry=entry,
        storage=storage,
        groups=groups,
    )


def _port(choice: ClusterChoice) -> int:
    """The port to use; raises `InvalidInput` when the one asked for is taken."""
    if not choice.tcp:
        return choice.port or _DEFAULT_PORT
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server does: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, choice.port or 0))
        except OSError as error:
            raise InvalidInput(
                f"port {choice.port} on {LOOPBACK} cannot be used: {error.strerror}",
                hint="give another --port, or none for a free one",
            ) from error
        return int(probe.getsockname()[1])


def _make(cluster: Cluster, host: Host, *, reuse: bool) -> Cluster:
    """Make folders, and the cluster where there is none."""
    choice, data = cluster.choice, cluster.data
    account = initdb.Account(host=host, user=choice.user)
    folders.make_private_folders(host, choice.user, [cluster.base, cluster.sockets])
    limits.make_groups(cluster.groups, choice.limits)
    if reuse:
        folders.check_kept_folder(host, choice.user, data)
        check_storage(cluster.storage, data)
        _check_options(choice, initdb.options_of(host, data), data)
        return replace(cluster, used_before=True)
    make_storage(cluster.storage, host, choice.user)
    making = initdb.Making(
        options=initdb_options(choice.initdb, choice.installation.version_num),
        places=cluster.storage.initdb_words,
    )
    if choice.data is not None:
        folders.prepare_data_folder(host, choice.user, data)
        initdb.make_kept_cluster(account, choice.installation, data / cluster.base.name, making)
    elif isinstance(choice.origin, BaseBackup):
        make_standby(account, choice.origin, data)
    elif choice.origin is not None:
        origin = choice.origin
        copied = copy_cluster(account, origin.data, data, origin.method)
        copy_outside(data, cluster.storage, host, choice.user)
        return replace(cluster, copied=copied)
    else:
        initdb.make_cluster(account, choice.installation, data, making)
    return cluster


def _check_options(choice: ClusterChoice, made_with: tuple[str, ...], data: Path) -> None:
    """Raise `InvalidInput` where kept data were made with other options than are asked for."""
    wanted = initdb_options(choice.initdb, choice.installation.version_num)
    if is_asked_for(choice.initdb) and wanted != made_with:
        raise InvalidInput(
            f"the data in '{data}' were made with {' '.join(made_with)}, not {' '.join(wanted)}",
            hint="give the --initdb options they were made with, or another --data folder",
        )
