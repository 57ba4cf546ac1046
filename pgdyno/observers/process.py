"""What a program costs: CPU, memory and disk traffic of a process and its children.

A `ProcessGroup` is a role (`engine`, `server`) and its first process. CPU counters include children
that have ended and were waited for, so they do not fall when a session ends. Memory is the sum of
resident sets; pages shared by several processes (PostgreSQL's shared buffers) count once for each
of them, which is why the part that belongs to one process alone stands beside it.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.hosts.base import Host
from pgdyno.observers.base import Column, Row, Table

PROCESSES = Table(
    name="processes",
    about="CPU, memory and disk traffic of groups of processes",
    columns=(
        Column(name="role", unit="", kind="label", about="what the group does", type="text"),
        Column(name="processes", unit="processes", kind="gauge", about="alive"),
        Column(name="threads", unit="threads", kind="gauge", about="of them all"),
        Column(name="user_jiffies", unit="1/100 s", kind="counter", about="CPU time in programs"),
        Column(name="sys_jiffies", unit="1/100 s", kind="counter", about="CPU time in the kernel"),
        Column(
            name="rss_bytes", unit="bytes", kind="gauge", about="resident, shared pages repeated"
        ),
        Column(name="private_bytes", unit="bytes", kind="gauge", about="resident and not shared"),
        Column(
            name="read_bytes", unit="bytes", kind="gauge", about="read from disk by those alive"
        ),
        Column(
            name="written_bytes", unit="bytes", kind="gauge", about="written to disk by those alive"
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroup:
    """A role and a way to find its first process; `root` returns None while there is none."""

    role: str
    root: Callable[[], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process has used so far. CPU includes children it has waited for."""

    threads: int
    user_jiffies: int
    sys_jiffies: int
    rss_bytes: int
    private_bytes: int
    read_bytes: int | None
    written_bytes: int | None


def parse_usage(stat: str, statm: str, io: str | None, page_bytes: int) -> Usage:
    """One process's use from its stat, statm and (where it may be read) io files, see proc(5)."""
    # The second field is the program's name in parentheses, and may hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    _, resident, shared, *_ = statm.split()
    traffic = dict(line.split(": ") for line in (io or "").splitlines() if ": " in line)
    return Usage(
        threads=int(fields[17]),
        user_jiffies=int(fields[11]) + int(fields[13]),
        sys_jiffies=int(fields[12]) + int(fields[14]),
        rss_bytes=int(resident) * page_bytes,
        private_bytes=(int(resident) - int(shared)) * page_bytes,
        read_bytes=int(traffic["read_bytes"]) if "read_bytes" in traffic else None,
        written_bytes=int(traffic["write_bytes"]) if "write_bytes" in traffic else None,
    )


def total(role: str, usages: Sequence[Usage]) -> Row:
    """One row of a group; traffic is unknown when it is unknown for one of them."""
    return {
        "role": role,
        "processes": len(usages),
        "threads": sum(usage.threads for usage in usages),
        "user_jiffies": sum(usage.user_jiffies for usage in usages),
        "sys_jiffies": sum(usage.sys_jiffies for usage in usages),
        "rss_bytes": sum(usage.rss_bytes for usage in usages),
        "private_bytes": sum(usage.private_bytes for usage in usages),
        "read_bytes": _sum_known([usage.read_bytes for usage in usages]),
        "written_bytes": _sum_known([usage.written_bytes for usage in usages]),
    }


def _sum_known(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessObserver:
    """Watches groups of processes on one host; a group without processes has no row.

    It reads three small files a process and sample: about 80 µs of CPU time for each session.
    """

    host: Host
    groups: tuple[ProcessGroup, ...]
    resolution_s: float | None = 1.0
    page_bytes: int = mmap.PAGESIZE
    table: Table = PROCESSES
    _seen: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict, init=False)

    def begin(self) -> None:
        """Nothing to open."""

    def sample(self) -> Iterable[Row]:
        """One row a group that has processes at this moment."""
        for group in self.groups:
            root = group.root()
            usages = [] if root is None else list(self._usages(root))
            if root is not None and usages:
                yield self._growing(total(group.role, usages), (group.role, root))

    def end(self) -> None:
        """Nothing to close."""

    def _growing(self, row: Row, group: tuple[str, int]) -> Row:
        """The row with CPU counters no lower than before.

        A child that ends between two reads is in neither its own file nor yet in its parent's.
        """
        now = (int(str(row["user_jiffies"])), int(str(row["sys_jiffies"])))
        before = self._seen.get(group, now)
        self._seen[group] = (max(now[0], before[0]), max(now[1], before[1]))
        user_jiffies, sys_jiffies = self._seen[group]
        return {**row, "user_jiffies": user_jiffies, "sys_jiffies": sys_jiffies}

    def _usages(self, root: int) -> Iterable[Usage]:
        """Use of a process and of its children; those that end meanwhile are left out."""
        children = self.host.read_text(Path(f"/proc/{root}/task/{root}/children")) or ""
        for pid in (str(root), *children.split()):
            stat = self.host.read_text(Path(f"/proc/{pid}/stat"))
            statm = self.host.read_text(Path(f"/proc/{pid}/statm"))
            if stat is not None and statm is not None:
                io = self.host.read_text(Path(f"/proc/{pid}/io"))
                yield parse_usage(stat, statm, io, self.page_bytes)
