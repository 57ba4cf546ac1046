"""Counters into rates, CPU time into shares, series into average and maximum.

Counters are stored as read (`observers/`), so a rate belongs to the time between two samples. A
counter that falls was reset (a restart, pg_stat_reset); what happened in that time is unknown,
never negative.

>>> rows = [{"monotonic_ns": 0, "reads": 10}, {"monotonic_ns": 2_000_000_000, "reads": 30}]
>>> rates(rows, "reads")
(Rate(begin_ns=0, end_ns=2000000000, per_s=10.0),)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Value = int | float | str | None
Rows = Sequence[Mapping[str, Value]]

CPU_KINDS: Final = ("user", "sys", "wait", "steal", "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Growth of a counter per second between two samples; None where it cannot be known."""

    begin_ns: int
    end_ns: int
    per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuShares:
    """What CPUs did between two samples: fractions of their time that add up to 1."""

    begin_ns: int
    end_ns: int
    user: float
    sys: float
    wait: float
    steal: float
    idle: float

    @property
    def busy(self) -> float:
        """Fraction in programs and in the kernel: what nmon's sheets call CPU %."""
        return self.user + self.sys


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Average over time, maximum of any interval, and their ratio (None where the average is 0)."""

    average: float
    maximum: float

    @property
    def maximum_to_average(self) -> float | None:
        """How uneven it was: 1 for a constant series."""
        return self.maximum / self.average if self.average else None


def select(rows: Rows, label: str, value: str) -> Rows:
    """The rows of one device, CPU or role."""
    return [row for row in rows if row.get(label) == value]


def within(rows: Rows, begin_ns: int, end_ns: int) -> Rows:
    """The rows that cover a time, from the last one at or before its begin to the first after it.

    So the counters' growth includes all of it, and up to one sample's distance more at each side.
    """
    first, last = 0, len(rows) - 1
    for number, row in enumerate(rows):
        if _time_ns(row) <= begin_ns:
            first = number
        if _time_ns(row) >= end_ns:
            last = number
            break
    return rows[first : last + 1]


def rates(rows: Rows, counter: str) -> tuple[Rate, ...]:
    """A rate for every pair of neighbouring samples of one counter."""
    found = []
    for before, after in pairwise(rows):
        begin_ns, end_ns = _time_ns(before), _time_ns(after)
        if end_ns <= begin_ns:
            continue
        grown = growth(before.get(counter), after.get(counter))
        per_s = None if grown is None else grown * 1e9 / (end_ns - begin_ns)
        found.append(Rate(begin_ns=begin_ns, end_ns=end_ns, per_s=per_s))
    return tuple(found)


def growth(before: Value, after: Value) -> float | None:
    """How much a counter grew; None when a value is missing or it was reset in between."""
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return None
    return after - before if after >= before else None


def total_growth(rows: Rows, counter: str) -> float | None:
    """How much a counter grew from first sample to last; None if it was reset or is missing."""
    steps = [growth(a.get(counter), b.get(counter)) for a, b in pairwise(rows)]
    known = [step for step in steps if step is not None]
    return sum(known) if known and len(known) == len(steps) else None


def cpu_shares(rows: Rows) -> tuple[CpuShares, ...]:
    """Shares for every pair of neighbouring samples of one CPU, or of all of them together.

    The kernel may take back a jiffy of `wait` or `idle` (proc(5)); that counts as none. Intervals
    in which the clock of jiffies did not advance are left out.
    """
    found = []
    for before, after in pairwise(rows):
        grown = {kind: growth(before.get(_jiffies(kind)), after.get(_jiffies(kind))) or 0.0
                 for kind in CPU_KINDS}  # fmt: skip
        total = sum(grown.values())
        if total <= 0:
            continue
        shares = {kind: jiffies / total for kind, jiffies in grown.items()}
        found.append(CpuShares(begin_ns=_time_ns(before), end_ns=_time_ns(after), **shares))
    return tuple(found)


def cpu_spread(shares: Sequence[CpuShares]) -> dict[str, Spread]:
    """Average, maximum and their ratio for user, sys, wait, steal, idle and busy (user + sys)."""
    lengths = [share.end_ns - share.begin_ns for share in shares]
    found = {}
    for kind in (*CPU_KINDS, "busy"):
        made = spread([getattr(share, kind) for share in shares], lengths)
        if made is not None:
            found[kind] = made
    return found


def rate_spread(found: Iterable[Rate]) -> Spread | None:
    """Average and maximum of rates; intervals without one are left out. None when there is none."""
    known = [(rate.per_s, rate.end_ns - rate.begin_ns) for rate in found if rate.per_s is not None]
    return spread([per_s for per_s, _ in known], [length for _, length in known])


def spread(values: Sequence[float], weights: Sequence[float]) -> Spread | None:
    """Average weighted by the length of each interval, and maximum; None when there is no value."""
    total = sum(weights)
    if not values or total <= 0:
        return None
    weighted = sum(value * weight for value, weight in zip(values, weights, strict=True))
    return Spread(average=weighted / total, maximum=max(values))


def _jiffies(kind: str) -> str:
    return f"{kind}_jiffies"


def _time_ns(row: Mapping[str, Value]) -> int:
    time_ns = row["monotonic_ns"]
    if not isinstance(time_ns, int):
        raise ValueError(f"a sample's monotonic_ns is a whole number, {time_ns!r} is not")
    return time_ns
