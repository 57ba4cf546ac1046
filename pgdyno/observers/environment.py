"""Facts about hosts and the storage below a folder: what a number was measured on.

Everything is read from files and a few small commands through a `Host`, so it serves a remote one
as well. A fact that cannot be found is None, never a guess.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pgdyno
from pgdyno.errors import PgdynoError
from pgdyno.hosts.base import Command, Host
from pgdyno.model import Environment, HostFacts, StorageFacts
from pgdyno.observers.host import meminfo_bytes, parse_cpu

_DEADLINE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    device_number: str
    mount_point: str
    options: str
    filesystem: str
    source: str


def environment(hosts: Sequence[Host], storage: Sequence[StorageFacts] = ()) -> Environment:
    """`environment.json`: hosts, storage, and the tools' own versions."""
    return Environment(
        pgdyno_version=pgdyno.__version__,
        hosts=tuple(host_facts(host) for host in hosts),
        storage=tuple(storage),
        python_version=platform.python_version(),
    )


def host_facts(host: Host) -> HostFacts:
    """What a host is; `PgdynoError` when it has no readable /proc."""
    stat = host.read_text(Path("/proc/stat"))
    meminfo = host.read_text(Path("/proc/meminfo"))
    if stat is None or meminfo is None:
        raise PgdynoError(f"host '{host.name}' has no readable /proc")
    memory = meminfo_bytes(meminfo)
    cpuinfo = host.read_text(Path("/proc/cpuinfo")) or ""
    first_cpu = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    return HostFacts(
        name=host.name,
        cpu_model=parse_cpu_model(cpuinfo),
        cpus=len(parse_cpu(stat)) - 1,
        memory_bytes=memory["MemTotal"],
        swap_bytes=memory.get("SwapTotal", 0),
        kernel=_line(host, "/proc/sys/kernel/osrelease") or "unknown",
        operating_system=parse_os_release(host.read_text(Path("/etc/os-release")) or ""),
        virtualization=_virtualization(host, cpuinfo),
        frequency_governor=_line(host, first_cpu),
        transparent_huge_pages=chosen(_line(host, "/sys/kernel/mm/transparent_hugepage/enabled")),
        clock_source=_line(
            host, "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
    )


def storage_facts(host: Host, folder: Path) -> StorageFacts:
    """The storage below a folder; `PgdynoError` when the folder or the mount table is not there."""
    real = _real_folder(host, folder)
    mountinfo = host.read_text(Path("/proc/self/mountinfo"))
    mount = mount_of(real, parse_mountinfo(mountinfo or ""))
    if mount is None:
        raise PgdynoError(f"host '{host.name}' does not say what {real} is mounted on")
    queue = _queue_folder(host, mount)
    return StorageFacts(
        folder=str(folder),
        filesystem=mount.filesystem,
        device=mount.source if mount.source.startswith("/") else None,
        mount_options=mount.options,
        scheduler=chosen(_line(host, f"{queue}/scheduler")) if queue else None,
        write_cache=_line(host, f"{queue}/write_cache") if queue else None,
        free_bytes=free_bytes(host, real),
    )


def free_bytes(host: Host, folder: Path) -> int | None:
    """Bytes an unprivileged user can still write below a folder; None where df does not say."""
    command = Command(words=("df", "-B1", "--output=avail", str(folder)))
    words = _output(host, command).split()
    return int(words[-1]) if words and words[-1].isdigit() else None


def parse_mountinfo(text: str) -> list[Mount]:
    """Lines of /proc/self/mountinfo (proc_pid_mountinfo(5)), in its order."""
    mounts = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if not dash or len(fields) < 6 or len(kinds) < 3:
            continue
        mounts.append(
            Mount(
                device_number=fields[2],
                mount_point=_unescaped(fields[4]),
                # Options of the mount, then of the file system; each is told once.
                options=",".join(dict.fromkeys([*fields[5].split(","), *kinds[2].split(",")])),
                filesystem=kinds[0],
                source=_unescaped(kinds[1]),
            )
        )
    return mounts


def mount_of(folder: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount a folder lies on: the longest mount point above it, the last of equal ones."""
    above = [mount for mount in mounts if folder.is_relative_to(mount.mount_point)]
    return max(reversed(above), key=lambda mount: len(mount.mount_point), default=None)


def parse_cpu_model(cpuinfo: str) -> str | None:
    """The processor's name in /proc/cpuinfo; None on architectures that print none."""
    match = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$", cpuinfo, re.M)
    return match[1].strip() if match else None


def parse_os_release(text: str) -> str | None:
    """The name for people in /etc/os-release."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', text, re.M)
    return match[1] if match else None


def chosen(line: str | None) -> str | None:
    """The bracketed word of a kernel choice, or the whole line where nothing is bracketed.

    >>> chosen("always [madvise] never"), chosen("none")
    ('madvise', 'none')
    """
    match = re.search(r"\[([^\]]+)\]", line or "")
    return match[1] if match else line


def _virtualization(host: Host, cpuinfo: str) -> str | None:
    """What the firmware calls the machine, where the processor says it is a guest."""
    hypervisor = _line(host, "/sys/hypervisor/type")
    if hypervisor:
        return hypervisor
    if not re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M):
        return None
    names = [_line(host, f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name) or "virtual machine"


def _queue_folder(host: Host, mount: Mount) -> str | None:
    """Where the kernel shows the request queue of a mount's disk; a partition has its disk's."""
    name = Path(mount.source).name
    for device in (f"/sys/dev/block/{mount.device_number}", f"/sys/class/block/{name}"):
        for queue in (f"{device}/queue", f"{device}/../queue"):
            if _line(host, f"{queue}/scheduler") or _line(host, f"{queue}/write_cache"):
                return queue
    return None


def _real_folder(host: Host, folder: Path) -> Path:
    """The folder without symbolic links, as /proc/self/mountinfo names it."""
    resolved = _output(host, Command(words=("realpath", "-e", "--", str(folder)))).rstrip("\n")
    if not resolved:
        raise PgdynoError(f"host '{host.name}' has no folder {folder}")
    return Path(resolved)


def _output(host: Host, command: Command) -> str:
    completed = host.run(command, deadline_s=_DEADLINE_S)
    return completed.output if completed.status == 0 else ""


def _line(host: Host, path: str) -> str | None:
    text = host.read_text(Path(path))
    return text.strip() or None if text is not None else None


def _unescaped(field: str) -> str:
    """A path of mountinfo: blanks and backslashes are written as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
