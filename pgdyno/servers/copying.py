"""Copies of a stopped cluster's files: clones that share blocks, or plain copies.

A clone (FICLONE, on file systems such as XFS and Btrfs) takes no time and no room, but its first
write to each block is a copy on write. A plain copy is read and written in full, holes left out.
Both are on disk when they are done: pages that the kernel still has to write would disturb the
measurement that follows.
"""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command
from pgdyno.servers.initdb import Account
from pgdyno.servers.orphans import FOLDER_PREFIX

CopyMethod = Literal["clone", "copy"]

# <linux/fs.h>: _IOW(0x94, 9, int).
_FICLONE = 0x40049409
_PROBE_BYTES = 65536
_DEADLINE_S = 6 * 3600.0
_SHUT_DOWN = 1
# Behind system identifier, control version and catalog version, in all versions since 9.6.
_STATE_OFFSET = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied and how long it took, until it was on disk."""

    bytes: int
    duration_s: float


def can_clone(folder: Path) -> bool:
    """Whether files in `folder`, or where it will lie, can share their blocks: by trying it.

    The files of the trial have no name, so that nothing is left of it, whatever happens.
    """
    place = folder
    while not place.is_dir() and place != place.parent:
        place = place.parent
    try:
        with (
            tempfile.TemporaryFile(dir=place) as source,
            tempfile.TemporaryFile(dir=place) as target,
        ):
            source.write(bytes(_PROBE_BYTES))
            source.flush()
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def copy_cluster(account: Account, origin: Path, target: Path, method: CopyMethod) -> Copied:
    """Copy the files of a cleanly stopped cluster into a new folder of the account.

    Folders of ours inside the origin (a kept data folder holds some while it is in use) stay
    behind. Raises `PgdynoError` where files cannot be copied, or the server there still runs.
    """
    began_s = time.monotonic()
    if not is_shut_down(origin):
        raise PgdynoError(f"'{origin}' cannot be copied: its server has not been shut down")
    files = sorted(one for one in origin.iterdir() if not one.name.startswith(FOLDER_PREFIX))
    entries = [str(one) for one in files]
    _run(account, ["mkdir", "-m", "0700", str(target)])
    _run(account, ["cp", "--archive", *_options(method, target), "--", *entries, str(target)])
    _run(account, ["sync", "--file-system", str(target)])
    return Copied(bytes=disk_bytes(target), duration_s=time.monotonic() - began_s)


def is_shut_down(data: Path) -> bool:
    """Whether a cluster's server ended with a checkpoint, as the file `global/pg_control` says.

    Raises `PgdynoError` where that cannot be read. Source: DBState and ControlFileData in
    PostgreSQL's src/include/catalog/pg_control.h.
    """
    try:
        control = (data / "global/pg_control").read_bytes()
    except OSError as error:
        raise PgdynoError(f"cannot read '{data}/global/pg_control': {error.strerror}") from error
    (state,) = struct.unpack_from("=i", control, _STATE_OFFSET)
    return bool(state == _SHUT_DOWN) and not (data / "postmaster.pid").exists()


def disk_bytes(folder: Path) -> int:
    """Bytes that a cluster's files take on disk, without folders of ours inside it."""
    total = 0
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(FOLDER_PREFIX)]
        for name in files:
            try:
                total += (Path(path) / name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue  # A running server removes files.
    return total


def _options(method: CopyMethod, target: Path) -> tuple[str, ...]:
    """How cp is to copy: where blocks could be shared, a plain copy has to be insisted on.

    Elsewhere `auto` lets the kernel copy by itself (copy_file_range).
    """
    if method == "clone":
        return ("--reflink=always",)
    return ("--sparse=auto", "--reflink=never" if can_clone(target) else "--reflink=auto")


def _run(account: Account, words: list[str]) -> None:
    command = Command(words=words, user=account.user, environment={"LC_ALL": "C"})
    done = account.host.run(command, deadline_s=_DEADLINE_S)
    if done.status != 0:
        said = (done.error.strip().splitlines() or [f"status {done.status}"])[-1]
        raise PgdynoError(f"the cluster's files could not be copied: {said}")
