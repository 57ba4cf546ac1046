"""Processes of this machine, read from /proc: who still lives, and who lives in a folder.

A process number is reused; together with the time it was started it names one process. Every
process of a server stands in the server's data folder (`/proc/PID/cwd`), so a server is found by
the folder that was recorded for it, and never by a program's name.
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


def processes_in(folder: Path) -> tuple[ProcessIdentity, ...]:
    """Processes that stand in exactly this folder, as far as we may see them."""
    place = os.path.realpath(folder)
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if str((entry / "cwd").readlink()).removesuffix(" (deleted)") == place:
                    process = identify(int(entry.name))
                    if process is not None:
                        found.append(process)
    return tuple(found)


def postmaster_of(data: Path) -> ProcessIdentity | None:
    """The running postmaster of a data folder, by its `postmaster.pid`; None: none runs."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    return next((one for one in processes_in(data) if one.pid == pid), None)


def signal_process(process: ProcessIdentity, number: signal.Signals) -> None:
    """Send a signal to that very process; nothing happens when it is gone."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def wait_until_none_in(folder: Path, *, deadline_s: float) -> bool:
    """Whether every process has left `folder` within the deadline."""
    end_s = time.monotonic() + deadline_s
    while processes_in(folder):
        if time.monotonic() >= end_s:
            return False
        time.sleep(_POLL_S)
    return True


def end_all_in(folder: Path, *, first: signal.Signals, deadline_s: float) -> bool:
    """End the server in `folder`: its postmaster by `first`, and what is left then is killed.

    Returns whether nothing is left. `deadline_s` is for the polite part; killing gets 10 s more.
    """
    postmaster = postmaster_of(folder)
    if postmaster is not None:
        signal_process(postmaster, first)
        if wait_until_none_in(folder, deadline_s=deadline_s):
            return True
    for process in processes_in(folder):
        signal_process(process, signal.SIGKILL)
    return wait_until_none_in(folder, deadline_s=10.0)
