"""What the kernel grants a server or pooler at most: control groups for CPU time and memory.

    folders = group_folders(limits, "pgdyno-1a2b3c4d")   # record them in the ledger
    make_groups(folders, limits)
    host.start(Command(…, cgroups=folders), …)           # enters them before it is executed
    remove_group(folder)                                 # ends what is still in it

Groups are made below the one we are in (version 1) or below the nearest one above us that hands its
controllers on (version 2), and where that is not allowed it is said. Memory of a group includes the
page cache that its processes fill, as on a small machine. CPUs are pinned without groups.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.model import Limits

_PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1_000
"""The kernel refuses less (Documentation/scheduler/sched-bwc.rst)."""
_REMOVE_DEADLINE_S: Final = 10.0
_POLL_S: Final = 0.02
_HINT: Final = (
    "run as root, or in a group that is delegated to you: "
    "systemd-run --user --scope -p Delegate=yes …"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One mounted tree of control groups, and where in it we are. `version` 1 or 2."""

    version: int
    mount: Path
    own: Path
    controllers: frozenset[str]


def group_folders(limits: Limits, name: str) -> tuple[Path, ...]:
    """Folders of the groups that limits need, not made yet; none where nothing is limited.

    Raises `InvalidInput` where this machine or account cannot have them.
    """
    needed = _controllers(limits)
    if not needed:
        return ()
    found = hierarchies(_text("/proc/self/cgroup"), _text("/proc/self/mountinfo"))
    parents = []
    for controller in needed:
        parent = _parent(controller, found)
        if parent is None:
            raise InvalidInput(f"this machine cannot limit {_ABOUT[controller]}", hint=_HINT)
        parents.append(parent)
    return tuple(dict.fromkeys(parent / name for parent in parents))


def why_not(limits: Limits) -> str | None:
    """Why this machine cannot have such limits; None: it can, as far as can be seen."""
    try:
        group_folders(limits, "pgdyno-probe")
    except InvalidInput as error:
        return error.message
    return None


def make_groups(folders: Sequence[Path], limits: Limits) -> None:
    """Make the groups and write their limits; `PgdynoError` where the kernel refuses."""
    for folder in folders:
        try:
            folder.mkdir(exist_ok=True)
            for file, text in limit_files(limits):
                if (folder / file).exists():
                    (folder / file).write_text(text)
        except OSError as error:
            raise PgdynoError(
                f"cannot make the control group '{folder}': {error.strerror}", hint=_HINT
            ) from error


def is_group(folder: Path) -> bool:
    """Whether a folder is a control group: its files cannot be removed, only the folder."""
    return (folder / "cgroup.procs").exists()


def remove_group(folder: Path) -> None:
    """Kill what is in a group of ours and remove it; it stays where that fails for 10 s."""
    end_s = time.monotonic() + _REMOVE_DEADLINE_S
    while folder.exists() and time.monotonic() < end_s:
        for pid in _text(str(folder / "cgroup.procs")).split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(_POLL_S)


def limit_files(limits: Limits) -> Iterator[tuple[str, str]]:
    """Files of a group and what to write, of both versions; those of the other do not exist.

    >>> list(limit_files(Limits(cpu_share=0.5)))[0]
    ('cpu.max', '50000 100000')
    """
    if limits.cpu_share is not None:
        quota_us = max(round(limits.cpu_share * _PERIOD_US), _LEAST_QUOTA_US)
        yield "cpu.max", f"{quota_us} {_PERIOD_US}"
        yield "cpu.cfs_period_us", str(_PERIOD_US)
        yield "cpu.cfs_quota_us", str(quota_us)
    if limits.memory_bytes is not None:
        yield "memory.max", str(limits.memory_bytes)
        yield "memory.limit_in_bytes", str(limits.memory_bytes)


def hierarchies(own_groups: str, mountinfo: str) -> list[Hierarchy]:
    """Trees of control groups from the texts of /proc/self/cgroup and /proc/self/mountinfo. Pure.

    Source: cgroups(7). A controller is in one tree only.
    """
    own: dict[str, str] = {}
    for line in own_groups.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds or kinds[0] not in {"cgroup", "cgroup2"}:
            continue
        version = 2 if kinds[0] == "cgroup2" else 1
        controllers = [""] if version == 2 else kinds[-1].split(",")
        for name in sorted(own.keys() & set(controllers)):
            mount, root, path = Path(fields[4]), fields[3], own[name]
            # A container sees its own group as the root of what is mounted.
            inner = path.removeprefix(root) if root != "/" else path
            found.append(
                Hierarchy(
                    version=version,
                    mount=mount,
                    own=mount / inner.lstrip("/"),
                    controllers=frozenset() if version == 2 else frozenset({name}),
                )
            )
    return found


_ABOUT: Final[Mapping[str, str]] = {"cpu": "CPU time", "memory": "memory"}


def _controllers(limits: Limits) -> tuple[str, ...]:
    wanted = {"cpu": limits.cpu_share is not None, "memory": limits.memory_bytes is not None}
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def _parent(controller: str, found: Sequence[Hierarchy]) -> Path | None:
    """The group below which ours can be made for a controller."""
    for tree in found:
        if tree.version == 1 and controller in tree.controllers:
            return tree.own if os.access(tree.own, os.W_OK) else None
    for tree in found:
        if tree.version == 2:
            above = [one for one in (tree.own, *tree.own.parents) if one.is_relative_to(tree.mount)]
            for one in above:
                handed_on = _text(str(one / "cgroup.subtree_control")).split()
                if controller in handed_on and os.access(one, os.W_OK):
                    return one
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
