"""The CPU table: what every host, every set of CPUs given to roles, and every role's processes did.

Of hosts and CPUs the kernel counts all time, whoever used it; of a role only what its own processes
took, so waiting and idling are nobody's. Everything is a share of the time of the CPUs it is about:
a role's of those it may use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pgdyno.model import Trial
from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.observed import observed, tables_ending
from pgdyno.reports.resources import JIFFIES_PER_S
from pgdyno.reports.timeline import TimeAxis
from pgdyno.reports.wording import cpus_words
from pgdyno.stats.rates import (
    CPU_KINDS,
    Rows,
    Spread,
    Value,
    cpu_shares,
    cpu_spread,
    rate_spread,
    rates,
)
from pgdyno.units import format_counted, format_share

KINDS: Final = ("user", "sys", "wait", "idle", "busy")
"""The columns; `busy` is user and sys together, headed CPU."""
_WHOLE: Final = "all"
_OBSERVERS: Final = "observers"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuLine:
    """One place: `name` is a host, CPUs with the roles they were given to, or a role.

    `kinds`: kind → its share, average and maximum; `cpus`: how many CPUs the shares are of.
    """

    name: str
    kinds: dict[str, Spread]
    cpus: int

    @property
    def label(self) -> str:
        """`standby-1, of 1 CPU`; CPUs that are named need not be counted."""
        of = format_counted(self.cpus, "CPU")
        return self.name if ":" in self.name else f"{self.name}, of {of}"

    @property
    def rows(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What each row is, and its cells in the order of `KINDS`; empty where nobody knows."""
        known = [self.kinds.get(kind) for kind in KINDS]
        ratios = [None if one is None else one.maximum_to_average for one in known]
        return (
            ("average", tuple("" if one is None else format_share(one.average) for one in known)),
            ("maximum", tuple("" if one is None else format_share(one.maximum) for one in known)),
            ("max : avg", tuple("" if one is None else f"{one:.1f}" for one in ratios)),
        )


def cpu_lines(documents: TrialDocuments, axis: TimeAxis) -> list[CpuLine]:
    """Every place that was observed: hosts first, then CPUs given to roles, then the roles."""
    return [*_hosts(documents, axis), *_given_cpus(documents, axis), *_roles(documents, axis)]


def _hosts(documents: TrialDocuments, axis: TimeAxis) -> Iterator[CpuLine]:
    for name in tables_ending(documents, "_cpu"):
        whole = observed(documents, axis, name)
        cpus = len([label for label in whole.labels("cpu") if label != _WHOLE])
        if kinds := cpu_spread(cpu_shares(whole.select("cpu", _WHOLE).measured())):
            yield CpuLine(name=name.removesuffix("_cpu"), kinds=kinds, cpus=cpus)


def _given_cpus(documents: TrialDocuments, axis: TimeAxis) -> Iterator[CpuLine]:
    """CPUs that some roles were given and others not: a machine of its own, as far as it goes."""
    whole = observed(documents, axis, "host_cpu")
    there = {label for label in whole.labels("cpu") if label != _WHOLE}
    for cpus, roles in _roles_by_cpus(documents.trial).items():
        labels = {str(cpu) for cpu in cpus}
        if not labels < there:
            continue
        rows = [row for row in whole.measured() if str(row.get("cpu")) in labels]
        if kinds := cpu_spread(cpu_shares(_summed(rows))):
            name = f"{cpus_words(cpus)}: {', '.join(roles)}"
            yield CpuLine(name=name, kinds=kinds, cpus=len(cpus))


def _roles_by_cpus(trial: Trial) -> dict[tuple[int, ...], list[str]]:
    found: dict[tuple[int, ...], list[str]] = {}
    for role, place in trial.placement.items():
        if role != _OBSERVERS and place.cpus:
            found.setdefault(place.cpus, []).append(role)
    return dict(sorted(found.items()))


def _summed(rows: Rows) -> Rows:
    """One row a sample: counters of several CPUs added."""
    summed = []
    for time_ns, several in groupby(rows, key=lambda row: row["monotonic_ns"]):
        together = list(several)
        counters = [f"{kind}_jiffies" for kind in CPU_KINDS]
        values = {name: sum(_number(row.get(name)) for row in together) for name in counters}
        summed.append({"monotonic_ns": time_ns, **values})
    return summed


def _roles(documents: TrialDocuments, axis: TimeAxis) -> Iterator[CpuLine]:
    """Processes of each role, as a share of the CPUs that it may use."""
    whole = observed(documents, axis, "processes")
    environment = documents.environment
    on_host = environment.hosts[0].cpus if environment and environment.hosts else 1
    for role in whole.labels("role"):
        rows = whole.select("role", role).measured()
        place = documents.trial.placement.get(role)
        cpus = len(place.cpus) if place and place.cpus else on_host
        both = [{**row, "busy_jiffies": _busy(row)} for row in rows]
        kinds = {}
        for kind in ("user", "sys", "busy"):
            if found := rate_spread(rates(both, f"{kind}_jiffies")):
                kinds[kind] = _of(found, cpus * JIFFIES_PER_S)
        if len(kinds) == 3:
            yield CpuLine(name=role, kinds=kinds, cpus=cpus)


def _busy(row: Mapping[str, Value]) -> int:
    return _number(row.get("user_jiffies")) + _number(row.get("sys_jiffies"))


def _number(value: Value) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _of(jiffies_per_s: Spread, whole_per_s: float) -> Spread:
    return Spread(
        average=jiffies_per_s.average / whole_per_s, maximum=jiffies_per_s.maximum / whole_per_s
    )
