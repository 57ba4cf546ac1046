"""What `pgdyno doctor` reads on a machine besides what a run records: kernel settings, limits, use.

Files of /proc and /sys and half a second of waiting; nothing is changed and nothing is written.
"""

from __future__ import annotations

import resource
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pgdyno.hosts.base import Host
from pgdyno.model import Limits
from pgdyno.servers.limits import why_not

_WATCHED_S: Final = 0.5
_LIMITS: Final = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "memlock": resource.RLIMIT_MEMLOCK,
    "core": resource.RLIMIT_CORE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as it is now. `kernel`: name → value, None where this kernel has no such setting.

    `limits`: name → soft and hard, None for without limit. `steal` and `busy` are shares of CPU
    time over half a second. `services`: those of `doctor.toml` that run. `no_cpu_limit` and
    `no_memory_limit` say why control groups cannot be had.
    """

    kernel: Mapping[str, str | None]
    limits: Mapping[str, tuple[int | None, int | None]]
    steal: float | None
    busy: float | None
    swap_used_bytes: int
    numa_nodes: int
    threads_per_core: int | None
    services: tuple[str, ...]
    no_cpu_limit: str | None
    no_memory_limit: str | None


@cache
def doctor_facts() -> dict[str, Any]:
    """`doctor.toml`."""
    return tomllib.loads(files("pgdyno.servers").joinpath("doctor.toml").read_text())


def look_at(host: Host) -> Machine:
    """Read a machine's state; takes half a second."""
    facts = doctor_facts()
    steal, busy = _shares(host)
    memory = _pairs(host.read_text(Path("/proc/meminfo")) or "")
    return Machine(
        kernel={each["name"]: _kernel(host, each["name"]) for each in facts["kernel"]},
        limits={name: _limit(number) for name, number in _LIMITS.items()},
        steal=steal,
        busy=busy,
        swap_used_bytes=1024 * (memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)),
        numa_nodes=_numa_nodes(host),
        threads_per_core=_threads_per_core(host),
        services=_services(host, frozenset(facts["services"]["names"])),
        no_cpu_limit=why_not(Limits(cpu_share=1)),
        no_memory_limit=why_not(Limits(memory_bytes=1024**3)),
    )


def listed(text: str) -> int:
    """How many numbers a kernel list like `0-3,8` holds.

    >>> listed("0-3,8"), listed("")
    (5, 0)
    """
    total = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += int(last or first) - int(first) + 1
    return total


def cpu_shares(before: str, after: str) -> tuple[float | None, float | None]:
    """Shares of CPU time stolen and busy between two first lines of /proc/stat. Pure.

    >>> cpu_shares("cpu 0 0 0 0 0 0 0 0", "cpu 20 0 20 50 0 0 0 10")
    (0.1, 0.4)
    """
    one, other = ([int(word) for word in text.split()[1:9]] for text in (before, after))
    if len(one) < 8 or len(other) < 8:
        return None, None
    spent = [late - early for early, late in zip(one, other, strict=True)]
    total = sum(spent)
    if total <= 0:
        return None, None
    user, nice, system, _idle, _wait, irq, softirq, steal = spent
    return steal / total, (user + nice + system + irq + softirq) / total


def _shares(host: Host) -> tuple[float | None, float | None]:
    stat = Path("/proc/stat")
    before = (host.read_text(stat) or "").partition("\n")[0]
    time.sleep(_WATCHED_S)
    return cpu_shares(before, (host.read_text(stat) or "").partition("\n")[0])


def _kernel(host: Host, name: str) -> str | None:
    text = host.read_text(Path("/proc/sys") / name.replace(".", "/"))
    return None if text is None else " ".join(text.split())


def _limit(number: int) -> tuple[int | None, int | None]:
    soft, hard = resource.getrlimit(number)
    return tuple(None if each == resource.RLIM_INFINITY else each for each in (soft, hard))  # type: ignore[return-value]


def _pairs(text: str) -> dict[str, int]:
    """Names and numbers of /proc/meminfo, in kB."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if rest.split():
            found[name] = int(rest.split()[0])
    return found


def _numa_nodes(host: Host) -> int:
    return listed(host.read_text(Path("/sys/devices/system/node/online")) or "0")


def _threads_per_core(host: Host) -> int | None:
    text = host.read_text(Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"))
    return None if text is None else listed(text)


def _services(host: Host, wanted: frozenset[str]) -> tuple[str, ...]:
    """Which of some programs run, by their names in /proc."""
    names = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            names.add((host.read_text(entry / "comm") or "").strip())
    return tuple(sorted(names & wanted))
