"""Where a private server's files lie: on a disk, where its account can write, with a short name.

A data folder on tmpfs would make every commit worthless to measure, so memory is taken only where
the person's own TMPDIR says so. A socket's path is limited to 107 bytes by the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.servers import processes
from pgdyno.servers.orphans import MARKER
from pgdyno.servers.privileges import can

SOCKET_PATH_BYTES_MAX = 107
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_MAKE_DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFolderFacts:
    """What lies in a folder that is to hold, or holds, a cluster."""

    exists: bool
    is_folder: bool = True
    empty: bool = True
    major: str | None = None
    ours: bool = False
    running_pid: int | None = None


def filesystem_of(path: Path, mounts: str) -> str:
    r"""Type of the file system a path lies on, from the text of /proc/mounts.

    >>> filesystem_of(Path("/tmp/x"), "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0")
    'tmpfs'
    """
    found, depth = "", -1
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        mount = Path(fields[1].replace("\\040", " "))
        if path.is_relative_to(mount) and len(mount.parts) >= depth:
            found, depth = fields[2], len(mount.parts)
    return found


def temporary_root(host: Host, user: str | None) -> Path:
    """The folder to make temporary clusters in; raises `PgdynoError` where there is none.

    TMPDIR where the account can write there, else the first folder on a disk, else any.
    """
    asked = os.environ.get("TMPDIR", "")
    if asked and can(host, user, "-w", Path(asked)) and can(host, user, "-x", Path(asked)):
        return Path(asked).resolve()
    candidates = [Path("/var/tmp"), Path("/tmp"), Path.home() / ".cache"]
    writable = [folder.resolve() for folder in candidates if can(host, user, "-w", folder)]
    mounts = host.read_text(Path("/proc/mounts")) or ""
    on_disk = [one for one in writable if filesystem_of(one, mounts) not in _IN_MEMORY]
    for folder in (*on_disk, *writable):
        return folder
    raise PgdynoError(
        "there is no folder for a temporary cluster that " + (f"user {user}" if user else "we")
        + " can write to",
        hint="set TMPDIR, or give --data DIR",
    )  # fmt: skip


def socket_folder(root: Path, name: str) -> Path:
    """Where a socket can be: `root/name`, or `/tmp/name` where that is too long or has a comma.

    To libpq a comma separates hosts.
    """
    for folder in (root / name, Path("/tmp") / name):
        if (
            "," not in str(folder)
            and len(os.fsencode(folder / ".s.PGSQL.65535")) <= SOCKET_PATH_BYTES_MAX
        ):
            return folder
    raise PgdynoError(
        f"the path of a socket in '{root / name}' has more than {SOCKET_PATH_BYTES_MAX} bytes "
        "or a comma",
        hint="set TMPDIR to a shorter path",
    )


def make_private_folders(host: Host, user: str | None, folders: Sequence[Path]) -> None:
    """Make folders of mode 0700 that belong to the account; raises `PgdynoError` when it fails."""
    for folder in dict.fromkeys(folders):
        command = Command(words=["mkdir", "-m", "0700", str(folder)], user=user)
        done = host.run(command, deadline_s=_MAKE_DEADLINE_S)
        if done.status != 0:
            raise PgdynoError(f"cannot make the folder '{folder}': {done.error.strip()}")


def data_folder_facts(data: Path) -> DataFolderFacts:
    """Look at a data folder; raises `PgdynoError` when it cannot be read."""
    try:
        if not data.exists():
            return DataFolderFacts(exists=False)
        if not data.is_dir():
            return DataFolderFacts(exists=True, is_folder=False)
        version = data / "PG_VERSION"
        running = processes.postmaster_of(data)
        return DataFolderFacts(
            exists=True,
            empty=not any(data.iterdir()),
            major=version.read_text().strip() if version.exists() else None,
            ours=(data / MARKER).exists(),
            running_pid=None if running is None else running.pid,
        )
    except OSError as error:
        raise PgdynoError(f"cannot read the data folder '{data}': {error.strerror}") from error


def judge_data_folder(data: Path, facts: DataFolderFacts, major: str) -> Literal["new", "reuse"]:
    """Whether to make a cluster in a folder or to use the one there. Pure.

    Raises `InvalidInput` when neither is right: nothing of somebody else's is ever touched.
    """
    if not facts.is_folder:
        raise InvalidInput(f"--data '{data}' is not a folder")
    if not facts.exists or facts.empty:
        return "new"
    if facts.running_pid is not None:
        raise InvalidInput(
            f"--data '{data}' is in use by a running server (process {facts.running_pid})",
            hint="stop it, give another folder, or connect to it with --dsn",
        )
    if facts.major is None:
        raise InvalidInput(
            f"--data '{data}' is not empty and holds no cluster",
            hint="give an empty folder or one that does not exist yet",
        )
    if not facts.ours:
        raise InvalidInput(
            f"--data '{data}' holds a cluster of PostgreSQL {facts.major} that pgdyno did not make",
            hint="start it yourself and give --dsn, or give another folder",
        )
    if facts.major != major:
        raise InvalidInput(
            f"--data '{data}' holds a cluster of PostgreSQL {facts.major}, "
            f"but PostgreSQL {major} was chosen",
            hint=f"give --pg {facts.major}, or another folder",
        )
    return "reuse"


def prepare_data_folder(host: Host, user: str | None, data: Path) -> None:
    """Make a kept, still empty data folder and give it to the account, mode 0700."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)  # PostgreSQL does not start in a folder that is open to others.
    except OSError as error:
        raise InvalidInput(f"cannot make --data '{data}': {error.strerror}") from error
    if user is not None:
        done = host.run(Command(words=["chown", user, str(data)]), deadline_s=_MAKE_DEADLINE_S)
        if done.status != 0:
            raise PgdynoError(f"cannot give '{data}' to user {user}: {done.error.strip()}")
    check_kept_folder(host, user, data)


def check_kept_folder(host: Host, user: str | None, data: Path) -> None:
    """Raise `InvalidInput` when the account cannot work in a kept data folder."""
    if not can(host, user, "-w", data) or not can(host, user, "-x", data):
        raise InvalidInput(
            f"--data '{data}' lies where " + (f"user {user}" if user else "we") + " cannot write",
            hint="the folder must belong to that account and those above it be open (mode o+x)",
        )
