"""What a program of ours costs: CPU, memory and disk traffic of a process and all it started.

A `ProcessGroup` is a role (`engine`, `server`) and its first process. CPU counters include children
that have ended and were waited for, so they do not fall when a session ends. Memory is the sum of
resident sets; pages shared by several processes (PostgreSQL's shared buffers) count once for each
of them, which is why the part that belongs to one process alone stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.hosts.base import Host
from pgdyno.observers.base import Column, Row, Table
from pgdyno.observers.host import meminfo_bytes

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


def parse_usage(stat: str, status: str, io: str | None) -> Usage:
    """One process's use from its stat, status and (where it may be read) io files."""
    # The second field is the program's name in parentheses, and may hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    memory = meminfo_bytes(status)
    traffic = dict(line.split(": ") for line in (io or "").splitlines() if ": " in line)
    return Usage(
        threads=int(fields[17]),
        user_jiffies=int(fields[11]) + int(fields[13]),
        sys_jiffies=int(fields[12]) + int(fields[14]),
        rss_bytes=memory.get("VmRSS", 0),
        private_bytes=memory.get("RssAnon", 0),
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
    """Watches groups of processes on one host; a group without processes has no row."""

    host: Host
    groups: tuple[ProcessGroup, ...]
    resolution_s: float | None = 1.0
    table: Table = PROCESSES

    def begin(self) -> None:
        """Nothing to open."""

    def sample(self) -> Iterable[Row]:
        """One row a group that has processes at this moment."""
        for group in self.groups:
            root = group.root()
            usages = [] if root is None else list(self._usages(root))
            if usages:
                yield total(group.role, usages)

    def end(self) -> None:
        """Nothing to close."""

    def _usages(self, root: int) -> Iterable[Usage]:
        """Use of a process and everything below it; those that end meanwhile are left out."""
        waiting, seen = [root], set[int]()
        while waiting:
            pid = waiting.pop()
            folder = Path(f"/proc/{pid}")
            stat, status = self._read(folder / "stat"), self._read(folder / "status")
            if pid in seen or stat is None or status is None:
                continue
            seen.add(pid)
            yield parse_usage(stat, status, self._read(folder / "io"))
            children = self._read(folder / "task" / str(pid) / "children") or ""
            waiting.extend(int(word) for word in children.split())

    def _read(self, path: Path) -> str | None:
        return self.host.read_text(path)
