"""The ledger of private servers, and the end of those whose pgdyno is gone.

Each server has one small file in the person's state folder, written before anything is made and
removed when everything is gone. A file whose owner (a process number with its start time, of this
boot) no longer lives is an orphan's: its processes are ended and its folders removed, by what the
file says. A kept data folder stays as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pgdyno.errors import PgdynoError
from pgdyno.servers import processes
from pgdyno.servers.limits import is_group, remove_group
from pgdyno.servers.processes import ProcessIdentity

FOLDER_PREFIX = "pgdyno-"
MARKER = "pgdyno.json"
_FORMAT = 1

Judgement = Literal["in use", "orphan", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is recorded of one private server.

    `folders` are ours alone and removed whole; `data` lies in one of them unless `keep`.
    `program` is the server's executable; `server` is None until the postmaster has been started.
    """

    id: str
    owner: ProcessIdentity
    boot_id: str
    pid_namespace: str
    machine: str
    folders: tuple[Path, ...]
    data: Path
    program: Path
    keep: bool
    server: ProcessIdentity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where and when process numbers are judged."""

    machine: str
    boot_id: str
    pid_namespace: str


def here() -> Here:
    """Our machine, its boot and our process numbering."""
    return Here(
        machine=socket.gethostname(),
        boot_id=processes.boot_id(),
        pid_namespace=processes.pid_namespace(),
    )


def new_entry(
    identifier: str, *, folders: tuple[Path, ...], data: Path, program: Path, keep: bool
) -> Entry:
    """An entry owned by this process."""
    owner, place = processes.identify(os.getpid()), here()
    if owner is None:
        raise PgdynoError("cannot read /proc, which is needed to know one's own processes")
    return Entry(
        id=identifier,
        owner=owner,
        boot_id=place.boot_id,
        pid_namespace=place.pid_namespace,
        machine=place.machine,
        folders=folders,
        data=data,
        program=program,
        keep=keep,
    )


def judge(entry: Entry, place: Here, *, owner_lives: bool) -> Judgement:
    """Whether an entry's owner is gone. Pure; `owner_lives` is asked of /proc in this numbering.

    Another machine's entries (a home folder on the network) and another container's cannot be
    judged from here, so they are left alone.
    """
    if entry.machine != place.machine:
        return "unknown"
    if entry.boot_id != place.boot_id:
        return "orphan"
    if entry.pid_namespace != place.pid_namespace:
        return "unknown"
    return "in use" if owner_lives else "orphan"


class Ledger:
    """A folder with one file for each private server of this person."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder() / "servers"

    def record(self, entry: Entry) -> None:
        """Write an entry, whole or not at all. Raises `PgdynoError` when it cannot be written."""
        text = json.dumps({"format": _FORMAT, **asdict(entry)}, default=str, indent=1)
        file = self._file(entry.id)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = file.with_suffix(".new")
            unfinished.write_text(text + "\n")
            unfinished.replace(file)
        except OSError as error:
            raise PgdynoError(
                f"cannot record the server in '{self.folder}': {error.strerror}",
                hint="it is recorded so that it can be ended; XDG_STATE_HOME moves the place",
            ) from error

    def with_server(self, entry: Entry, pid: int) -> Entry:
        """The entry with its postmaster, recorded."""
        changed = replace(entry, server=processes.identify(pid))
        self.record(changed)
        return changed

    def forget(self, entry: Entry) -> None:
        """Remove an entry when everything it names is gone."""
        self._file(entry.id).unlink(missing_ok=True)

    def entries(self) -> Iterator[Entry]:
        """Entries that can be read, oldest name first; others are left for whoever wrote them."""
        for file in sorted(self.folder.glob("*.json")):
            try:
                yield _parse(json.loads(file.read_text()))
            except (OSError, ValueError, KeyError, TypeError):
                continue

    def _file(self, identifier: str) -> Path:
        return self.folder / f"{identifier}.json"


def state_folder() -> Path:
    """`$XDG_STATE_HOME/pgdyno`, by default under `~/.local/state`."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home.startswith("/") else Path.home() / ".local/state") / "pgdyno"


def sweep(ledger: Ledger) -> tuple[str, ...]:
    """End and remove every orphan of this ledger; returns a line for each, for people."""
    place, notices = here(), []
    for entry in ledger.entries():
        if judge(entry, place, owner_lives=processes.is_alive(entry.owner)) == "orphan":
            notices.append(_end(entry, ledger, same_boot=entry.boot_id == place.boot_id))
    return tuple(notices)


def remove_folders(entry: Entry) -> tuple[Path, ...]:
    """Remove the folders that are ours alone; returns those that resisted."""
    for folder in entry.folders:
        # The name is checked, so that a damaged ledger cannot remove anything else.
        if folder.name != FOLDER_PREFIX + entry.id or folder.is_symlink():
            continue
        if is_group(folder):
            remove_group(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return tuple(folder for folder in entry.folders if folder.exists())


def end_processes(entry: Entry) -> bool:
    """End what still runs of a server; whether nothing is left.

    A server that somebody else started in a kept folder afterwards is not ours and is left alone:
    its postmaster is neither the recorded one nor does it use a socket folder of ours.
    """
    for folder in entry.folders:
        if not processes.kill_all_in(folder, entry.program):  # An initdb that was under way.
            return False
    postmaster = processes.postmaster_of(entry.data)
    if postmaster is not None:
        ours = postmaster == entry.server
        if not ours and processes.socket_folder_of(entry.data) not in entry.folders:
            return True
        # Kept data deserve a shutdown with a checkpoint (fast); others end at once (immediate).
        first, deadline_s = (signal.SIGINT, 30.0) if entry.keep else (signal.SIGQUIT, 5.0)
        processes.signal_process(postmaster, first)
        if processes.wait_until_none_in(entry.data, entry.program, deadline_s=deadline_s):
            return True
        processes.signal_process(postmaster, signal.SIGKILL)
    elif entry.server is not None:
        processes.signal_process(entry.server, signal.SIGKILL)  # It has not come as far as a file.
    return processes.kill_all_in(entry.data, entry.program)


def _end(entry: Entry, ledger: Ledger, *, same_boot: bool) -> str:
    """End one orphan and forget it; returns what was done."""
    kind = "server" if entry.program.name == "postgres" else entry.program.name
    what = f"a {kind} left behind by pgdyno (process {entry.owner.pid}, gone)"
    if same_boot and not end_processes(entry):
        return f"{what} in '{entry.data}' could not be ended"
    resisting = remove_folders(entry)
    if resisting:
        return f"{what} has ended, but '{resisting[0]}' could not be removed"
    ledger.forget(entry)
    kept = f"; its data stays in '{entry.data}'" if entry.keep else ""
    return f"{what} was cleaned up{kept}"


def _parse(text: dict[str, Any]) -> Entry:
    """An entry from its file; raises `KeyError`, `TypeError` or `ValueError` when it is not one."""
    if text.pop("format") != _FORMAT:
        raise ValueError("another format")
    return Entry(
        **{
            **text,
            "owner": ProcessIdentity(**text["owner"]),
            "server": ProcessIdentity(**text["server"]) if text["server"] else None,
            "folders": tuple(Path(folder) for folder in text["folders"]),
            "data": Path(text["data"]),
            "program": Path(text["program"]),
        }
    )
