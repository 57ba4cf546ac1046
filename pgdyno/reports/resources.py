"""What the measurement took from hosts, processes and the server: averages and maxima, for tables.

Only samples that cover the measurement count. A table that nobody observed gives no row.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.observed import observed, tables_ending
from pgdyno.reports.timeline import TimeAxis
from pgdyno.stats.rates import Spread, cpu_shares, cpu_spread, rate_spread, rates

JIFFIES_PER_S = 100
"""The unit of the kernel's CPU counters (USER_HZ)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCpu:
    """CPU of one host by kind, as fractions of the time of all its CPUs; `busy` is user + sys."""

    host: str
    kinds: dict[str, Spread]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCpu:
    """CPUs that a group of processes (`engine`, `server`) kept busy."""

    role: str
    user: Spread
    sys: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A rate, such as bytes written to a disk a second."""

    name: str
    unit: str
    spread: Spread


TRAFFIC = (
    ("_disk", "device", "read_bytes", "bytes", "disk {}, read"),
    ("_disk", "device", "write_bytes", "bytes", "disk {}, written"),
    ("_disk", "device", "flushes", "", "disk {}, flushes"),
    ("_network", "interface", "received_bytes", "bytes", "network {}, received"),
    ("_network", "interface", "sent_bytes", "bytes", "network {}, sent"),
    ("_tasks", "", "context_switches", "", "context switches"),
    ("wal", "", "wal_position_bytes", "bytes", "WAL written"),
    ("wal", "", "wal_syncs", "", "WAL flushes"),
    ("database", "", "commits", "", "commits, as the server counts them"),
    ("database", "", "temp_bytes", "bytes", "temporary files"),
)
"""Table name's ending, label column (none: one row a sample), counter, unit, words."""


def host_cpus(documents: TrialDocuments, axis: TimeAxis) -> list[HostCpu]:
    """CPU of every host that was observed."""
    found = []
    for name in tables_ending(documents, "_cpu"):
        rows = observed(documents, axis, name).select("cpu", "all").measured()
        if shares := cpu_shares(rows):
            found.append(HostCpu(host=name.removesuffix("_cpu"), kinds=cpu_spread(shares)))
    return found


def role_cpus(documents: TrialDocuments, axis: TimeAxis) -> list[RoleCpu]:
    """CPU of every group of processes that was observed."""
    whole = observed(documents, axis, "processes")
    found = []
    for role in whole.labels("role"):
        rows = whole.select("role", role).measured()
        user = rate_spread(rates(rows, "user_jiffies"))
        sys = rate_spread(rates(rows, "sys_jiffies"))
        if user and sys:
            found.append(RoleCpu(role=role, user=_cpus(user), sys=_cpus(sys)))
    return found


def traffic(documents: TrialDocuments, axis: TimeAxis) -> list[Traffic]:
    """Disk, network, WAL and other rates; what stood still is left out."""
    found = []
    for suffix, column, counter, unit, words in TRAFFIC:
        for name in tables_ending(documents, suffix):
            whole = observed(documents, axis, name)
            for device in whole.labels(column) if column else [""]:
                own = whole.select(column, device) if column else whole
                spread = rate_spread(rates(own.measured(), counter))
                if spread and spread.maximum > 0:
                    where = _server_of(name, suffix)
                    said = words.format(device) + (f", {where}" if where else "")
                    found.append(Traffic(name=said, unit=unit, spread=spread))
    return found


def _server_of(name: str, suffix: str) -> str:
    """Whose table it is, where there are several servers.

    >>> _server_of("standby-1_wal", "wal"), _server_of("host_disk", "_disk")
    ('standby-1', '')
    """
    return "" if suffix.startswith("_") else name.removesuffix(suffix).removesuffix("_")


def _cpus(jiffies: Spread) -> Spread:
    return Spread(average=jiffies.average / JIFFIES_PER_S, maximum=jiffies.maximum / JIFFIES_PER_S)
