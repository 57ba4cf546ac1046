"""Processes of this machine, read from /proc: who still lives, and which belong to a server.

A process number is reused; together with the time it was started it names one process. Every
process of a server executes the recorded program and stands in the recorded data folder
(`/proc/PID/exe` and `cwd`), so it is found by what was recorded, and a shell that somebody left in
that folder is not taken for one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process for all time between two boots. `start_ticks` counts clock ticks since boot."""

    pid: int
    start_ticks: int


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this number now; None: there is none, or it has ended (a zombie)."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # After the name: field 3 of proc(5) is the state, field 22 the start time.
    return None if fields[0] in "ZX" else ProcessIdentity(pid=pid, start_ticks=int(fields[19]))


def is_alive(process: ProcessIdentity) -> bool:
    """Whether that very process still runs."""
    return identify(process.pid) == process


def boot_id() -> str:
    """Changes at every boot of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> str:
    """Names the numbering that our process numbers belong to; containers have their own."""
    return str((_PROC / "self/ns/pid").readlink())


def processes_in(folder: Path, program: Path) -> tuple[ProcessIdentity, ...]:
    """Processes that execute `program` and stand in exactly `folder`, as far as we may see them."""
    wanted = os.path.realpath(folder), os.path.realpath(program)
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (_link(entry, "cwd"), _link(entry, "exe")) == wanted:
            process = identify(int(entry.name))
            if process is not None:
                found.append(process)
    return tuple(found)


def executing_below(folder: Path) -> tuple[int, ...]:
    """Numbers of the processes whose program lies below `folder`, as far as we may see them."""
    within = f"{os.path.realpath(folder)}/"
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return tuple(pid for pid in pids if (_link(_PROC / str(pid), "exe") or "").startswith(within))


def _link(entry: Path, name: str) -> str | None:
    """Where a link of a process leads; None where we may not see it."""
    try:
        return str((entry / name).readlink()).removesuffix(" (deleted)")
    except OSError:
        return None


def postmaster_of(data: Path) -> ProcessIdentity | None:
    """The running postmaster of a data folder, by its `postmaster.pid`; None: none runs."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    stands_there = _link(_PROC / str(pid), "cwd") == os.path.realpath(data)
    return identify(pid) if stands_there else None


def socket_folder_of(data: Path) -> Path | None:
    """The socket folder of the server in a data folder, as its `postmaster.pid` names it."""
    try:
        return Path((data / "postmaster.pid").read_text().split("\n")[4])
    except (OSError, IndexError):
        return None


def signal_process(process: ProcessIdentity, number: signal.Signals) -> None:
    """Send a signal to that very process; nothing happens when it is gone."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def wait_until_none_in(folder: Path, program: Path, *, deadline_s: float) -> bool:
    """Whether every process of `program` has left `folder` within the deadline."""
    end_s = time.monotonic() + deadline_s
    while processes_in(folder, program):
        if time.monotonic() >= end_s:
            return False
        time.sleep(_POLL_S)
    return True


def kill_all_in(folder: Path, program: Path) -> bool:
    """Kill every process of `program` in `folder`; whether none is left after 10 s."""
    for process in processes_in(folder, program):
        signal_process(process, signal.SIGKILL)
    return wait_until_none_in(folder, program, deadline_s=10.0)
