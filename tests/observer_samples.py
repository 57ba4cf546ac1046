"""Texts of /proc as kernels print them, and a host made of such texts, for observer tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.hosts.base import Command, Completed, Process

STAT = """\
cpu  1000 20 300 50000 400 5 15 7 0 0
cpu0 600 10 200 24000 300 3 10 4 0 0
cpu1 400 10 100 26000 100 2 5 3 0 0
intr 434086 0 0
ctxt 1337085
btime 1795198322
processes 9383
procs_running 4
procs_blocked 1
softirq 215787 0 26137
"""
LOADAVG = "0.63 0.26 0.21 4/103 9389\n"
MEMINFO = """\
MemTotal:        1000000 kB
MemFree:          400000 kB
MemAvailable:     700000 kB
Cached:           200000 kB
SwapTotal:         10000 kB
SwapFree:           9000 kB
Dirty:               296 kB
Writeback:             4 kB
AnonPages:         69652 kB
Shmem:              8872 kB
PageTables:         2904 kB
HugePages_Total:      12
HugePages_Free:        3
"""
# loop0 did nothing, sda1 is a partition, sdb is from before Linux 5.5 (no flushes).
DISKSTATS = """\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   8       0 sda 100 6 2000 95 420 22 7000 2316 2 1579 2437 5655 49 26814840 2107 31 41
   8       1 sda1 99 6 1990 95 420 22 7000 2316 0 1579 2437 5655 49 26814840 2107 0 0
   8      16 sdb 10 0 80 1 0 0 0 0 0 4 5
 259       0 nvme0n1 1 0 8 1 0 0 0 0 0 4 5 0 0 0 0 0 0
 259       1 nvme0n1p1 1 0 8 1 0 0 0 0 0 4 5 0 0 0 0 0 0
"""
NETWORK = """\
Inter-|   Receive                        |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls
    lo:    3193   29  0    0    0   0   0   0     3193      29    0    0    0     0       0   0
  ifb0:       0    0  0    0    0   0   0   0        0       0    0    0    0     0       0   0
  eth0: 242000460 7843 1   2    0   0   0   0   511846    4749    3    4    0     0       0   0
"""
# A program may be called anything: here "a) R (b".
PROCESS_STAT = (
    "4711 (a) R (b) S 1 4711 4711 0 -1 4194304 100 200 0 0 "
    "30 12 300 120 20 0 5 0 12345 1000000 250 18446744073709551615"
)
PROCESS_STATM = "1000 512 256 100 0 300 0\n"
PROCESS_IO = "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n"
MOUNTINFO = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard
31 27 0:25 / /mnt/fast\040disk rw,noatime - tmpfs tmpfs rw,size=100k
32 27 254:0 / /data rw,relatime - ext4 /dev/mapper/vg-old rw
33 27 254:1 / /data rw,noatime - xfs /dev/mapper/vg-new rw,nobarrier
""".lstrip()


@dataclass
class TextHost:
    """A host whose files are a dict; commands answer from another, by their first word."""

    files: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    name: str = "texts"

    def read_text(self, path: Path) -> str | None:
        return self.files.get(str(path))

    def run(self, command: Command, *, deadline_s: float) -> Completed:
        word = command.words[0]
        if word == "realpath":
            return Completed(status=0, output=command.words[-1] + "\n", error="")
        output = self.outputs.get(word)
        return Completed(status=0 if output is not None else 1, output=output or "", error="")

    def start(self, command: Command, *, log: Path | None, pipe: bool) -> Process:
        raise AssertionError("no test starts a process here")

    def put(self, source: Path, target: Path) -> None:
        raise AssertionError("no test copies files here")

    def get(self, source: Path, target: Path) -> None:
        raise AssertionError("no test copies files here")


def proc_files() -> dict[str, str]:
    """The /proc that the host and process observers read."""
    return {
        "/proc/stat": STAT,
        "/proc/loadavg": LOADAVG,
        "/proc/meminfo": MEMINFO,
        "/proc/diskstats": DISKSTATS,
        "/proc/net/dev": NETWORK,
        "/proc/4711/stat": PROCESS_STAT,
        "/proc/4711/statm": PROCESS_STATM,
        "/proc/4711/io": PROCESS_IO,
        "/proc/4711/task/4711/children": "4712 4713 ",
        "/proc/4712/stat": PROCESS_STAT.replace("4711", "4712"),
        "/proc/4712/statm": PROCESS_STATM,
        "/proc/4712/io": PROCESS_IO,
    }
