"""What a host does: CPU, tasks, memory, disks and network, from the kernel's own counters in /proc.

Every parser takes the text of a file and returns rows, so it serves any host whose files can be
read. CPU time is in jiffies of 1/100 s: the kernel's USER_HZ, fixed in its interface to programs on
every architecture that PostgreSQL is packaged for. `wait` is idle time with a task in "I/O wait";
a program that waits on an io_uring may be counted as such a task, so it is no proof of a slow disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Host
from pgdyno.observers.base import Column, Observer, Row, Table

JIFFIES_PER_S: Final = 100
ALL_CPUS: Final = "all"
_SECTOR_BYTES: Final = 512
_CPU_NAMES: Final = ("user", "nice", "sys", "idle", "wait", "irq", "softirq", "steal")


def _counter(name: str, unit: str, about: str) -> Column:
    return Column(name=name, unit=unit, kind="counter", about=about)


def _gauge(name: str, unit: str, about: str) -> Column:
    return Column(name=name, unit=unit, kind="gauge", about=about)


CPU = Table(
    name="cpu",
    about="CPU time, of all CPUs together and of each",
    columns=(
        Column(name="cpu", unit="", kind="label", about="'all' or a CPU's number", type="text"),
        _counter("user_jiffies", "1/100 s", "in programs, niced ones among them, guests not"),
        _counter("sys_jiffies", "1/100 s", "in the kernel, with interrupts"),
        _counter("wait_jiffies", "1/100 s", "idle while a disk request was outstanding"),
        _counter(
            "steal_jiffies", "1/100 s", "wanted, but given to other machines by the hypervisor"
        ),
        _counter("idle_jiffies", "1/100 s", "idle otherwise"),
    ),
)

TASKS = Table(
    name="tasks",
    about="run queue, context switches and load",
    columns=(
        _gauge("running", "tasks", "running or ready to run"),
        _gauge("blocked", "tasks", "waiting for a disk"),
        _counter("context_switches", "switches", "since boot"),
        _counter("forks", "tasks", "created since boot"),
        Column(name="load_1min", unit="tasks", kind="gauge", about="load average", type="real"),
    ),
)

MEMORY = Table(
    name="memory",
    about="memory and swap in use",
    columns=(
        _gauge("total_bytes", "bytes", "of the host"),
        _gauge("available_bytes", "bytes", "free, or given back at once when asked for"),
        _gauge("free_bytes", "bytes", "used for nothing at all"),
        _gauge("cached_bytes", "bytes", "page cache, with shared memory"),
        _gauge("dirty_bytes", "bytes", "of the page cache not yet on disk"),
        _gauge("writeback_bytes", "bytes", "on their way to a disk"),
        _gauge("shared_bytes", "bytes", "shared memory and tmpfs"),
        _gauge("anonymous_bytes", "bytes", "of programs"),
        _gauge("page_tables_bytes", "bytes", "page tables"),
        _gauge("huge_pages_total", "pages", "explicit huge pages set aside"),
        _gauge("huge_pages_free", "pages", "explicit huge pages not in use"),
        _gauge("swap_used_bytes", "bytes", "in swap"),
    ),
)

DISK = Table(
    name="disk",
    about="requests of each disk",
    columns=(
        Column(name="device", unit="", kind="label", about="kernel name", type="text"),
        _counter("reads", "requests", "completed"),
        _counter("read_bytes", "bytes", "read"),
        _counter("read_time_ms", "ms", "sum of the times of reads"),
        _counter("writes", "requests", "completed"),
        _counter("write_bytes", "bytes", "written"),
        _counter("write_time_ms", "ms", "sum of the times of writes"),
        _gauge("in_flight", "requests", "at this moment"),
        _counter("busy_time_ms", "ms", "with at least one request under way"),
        _counter("weighted_time_ms", "ms", "sum over all requests of their time so far"),
        _counter("flushes", "requests", "of the write cache completed (from Linux 5.5)"),
        _counter("flush_time_ms", "ms", "sum of the times of flushes (from Linux 5.5)"),
    ),
)

NETWORK = Table(
    name="network",
    about="traffic of each interface",
    columns=(
        Column(name="interface", unit="", kind="label", about="kernel name", type="text"),
        _counter("received_bytes", "bytes", "received"),
        _counter("received_packets", "packets", "received"),
        _counter("received_errors", "packets", "broken or dropped on reception"),
        _counter("sent_bytes", "bytes", "sent"),
        _counter("sent_packets", "packets", "sent"),
        _counter("sent_errors", "packets", "broken or dropped on sending"),
    ),
)


def parse_cpu(stat: str) -> list[Row]:
    r"""CPU rows of /proc/stat, `all` first.

    >>> parse_cpu("cpu  10 1 5 80 2 1 1 3 0 0\nintr 5")[0]["sys_jiffies"]
    7
    """
    rows: list[Row] = []
    for line in stat.splitlines():
        match = re.match(r"cpu(\d*)\s+([\d ]+)$", line)
        if match is None:
            continue
        times = dict(zip(_CPU_NAMES, map(int, match[2].split()), strict=False))
        rows.append(
            {
                "cpu": match[1] or ALL_CPUS,
                "user_jiffies": times["user"] + times["nice"],
                "sys_jiffies": times["sys"] + times.get("irq", 0) + times.get("softirq", 0),
                "wait_jiffies": times.get("wait", 0),
                "steal_jiffies": times.get("steal", 0),
                "idle_jiffies": times["idle"],
            }
        )
    return rows


def parse_tasks(stat: str, loadavg: str) -> list[Row]:
    """The one row of TASKS from /proc/stat and /proc/loadavg."""
    found = dict(re.findall(r"^(ctxt|processes|procs_running|procs_blocked) (\d+)", stat, re.M))
    return [
        {
            "running": int(found["procs_running"]),
            "blocked": int(found["procs_blocked"]),
            "context_switches": int(found["ctxt"]),
            "forks": int(found["processes"]),
            "load_1min": float(loadavg.split(maxsplit=1)[0]),
        }
    ]


def meminfo_bytes(meminfo: str) -> dict[str, int]:
    r"""/proc/meminfo by name, in bytes (numbers of pages where the kernel prints no unit).

    >>> meminfo_bytes("MemTotal: 2 kB\nHugePages_Total: 7\n")
    {'MemTotal': 2048, 'HugePages_Total': 7}
    """
    found = re.findall(r"^([\w()]+):\s+(\d+)( kB)?", meminfo, re.M)
    return {name: int(number) * (1024 if unit else 1) for name, number, unit in found}


def parse_memory(meminfo: str) -> list[Row]:
    """The one row of MEMORY from /proc/meminfo."""
    found = meminfo_bytes(meminfo)
    return [
        {
            "total_bytes": found["MemTotal"],
            "available_bytes": found.get("MemAvailable"),
            "free_bytes": found["MemFree"],
            "cached_bytes": found["Cached"],
            "dirty_bytes": found.get("Dirty"),
            "writeback_bytes": found.get("Writeback"),
            "shared_bytes": found.get("Shmem"),
            "anonymous_bytes": found.get("AnonPages"),
            "page_tables_bytes": found.get("PageTables"),
            "huge_pages_total": found.get("HugePages_Total"),
            "huge_pages_free": found.get("HugePages_Free"),
            "swap_used_bytes": found.get("SwapTotal", 0) - found.get("SwapFree", 0),
        }
    ]


def parse_disks(diskstats: str) -> list[Row]:
    """Rows of /proc/diskstats for disks that have done anything; partitions and loops are left out.

    A partition's requests are counted in its disk's too.
    """
    rows: list[Row] = []
    for line in diskstats.splitlines():
        words = line.split()
        if len(words) < 14 or not _is_disk(words[2]):
            continue
        numbers = [int(word) for word in words[3:]]
        if not any(numbers):
            continue
        rows.append(
            {
                "device": words[2],
                "reads": numbers[0],
                "read_bytes": numbers[2] * _SECTOR_BYTES,
                "read_time_ms": numbers[3],
                "writes": numbers[4],
                "write_bytes": numbers[6] * _SECTOR_BYTES,
                "write_time_ms": numbers[7],
                "in_flight": numbers[8],
                "busy_time_ms": numbers[9],
                "weighted_time_ms": numbers[10],
                "flushes": numbers[15] if len(numbers) > 16 else None,
                "flush_time_ms": numbers[16] if len(numbers) > 16 else None,
            }
        )
    return rows


def _is_disk(device: str) -> bool:
    """Whether a kernel name is a whole disk: sda, vda, nvme0n1, mmcblk0, dm-0, md0, not sda1."""
    return bool(
        re.fullmatch(r"(?:[shv]d[a-z]+|xvd[a-z]+\d*|nvme\d+n\d+|mmcblk\d+|dm-\d+|md\d+)", device)
    )


def parse_network(text: str) -> list[Row]:
    """Rows of /proc/net/dev for interfaces that have carried anything."""
    rows: list[Row] = []
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        numbers = [int(word) for word in rest.split() if word.isdigit()]
        if not colon or len(numbers) < 12 or not any(numbers):
            continue
        rows.append(
            {
                "interface": name.strip(),
                "received_bytes": numbers[0],
                "received_packets": numbers[1],
                "received_errors": numbers[2] + numbers[3],
                "sent_bytes": numbers[8],
                "sent_packets": numbers[9],
                "sent_errors": numbers[10] + numbers[11],
            }
        )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class HostObserver:
    """Reads `files` of a host and makes rows of `table` of their texts."""

    host: Host
    table: Table
    files: tuple[str, ...]
    parse: Callable[..., list[Row]]
    resolution_s: float | None = 1.0

    def begin(self) -> None:
        """Nothing to open; `PgdynoError` when a file is not there at all."""
        self._texts()

    def sample(self) -> Iterable[Row]:
        """Rows of this moment."""
        return self.parse(*self._texts())

    def end(self) -> None:
        """Nothing to close."""

    def _texts(self) -> list[str]:
        texts = []
        for file in self.files:
            text = self.host.read_text(Path(file))
            if text is None:
                raise PgdynoError(f"host '{self.host.name}' has no readable {file}")
            texts.append(text)
        return texts


def host_observers(
    host: Host, *, resolution_s: float | None = 1.0, prefix: str = "host"
) -> tuple[Observer, ...]:
    """All observers of one host; tables are named `<prefix>_cpu`, `<prefix>_disk` and so on."""
    sources: tuple[tuple[Table, tuple[str, ...], Callable[..., list[Row]]], ...] = (
        (CPU, ("/proc/stat",), parse_cpu),
        (TASKS, ("/proc/stat", "/proc/loadavg"), parse_tasks),
        (MEMORY, ("/proc/meminfo",), parse_memory),
        (DISK, ("/proc/diskstats",), parse_disks),
        (NETWORK, ("/proc/net/dev",), parse_network),
    )
    return tuple(
        HostObserver(
            host=host,
            table=replace(table, name=f"{prefix}_{table.name}"),
            files=files,
            parse=parse,
            resolution_s=resolution_s,
        )
        for table, files, parse in sources
    )
