"""One observer's table placed on a trial's time axis: rows of one device, rates of one counter.

Observers store counters as read; `stats.rates` turns neighbouring samples into rates and shares.
Samples are placed by the wall clock where that is known, since another host's monotonic clock
counts from elsewhere.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.timeline import TimeAxis
from pgdyno.stats.rates import CpuShares, Rate, Rows, cpu_shares, rates, within

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Rows of an observer's table, in the order they were taken.

    `offset_ns` is what to add to the engine's clock to get the observer's. It belongs to the table:
    were it taken from the first row of each selection, rows of one sample would lie microseconds
    apart, since the two clocks are read one after the other.
    """

    table: pa.Table
    axis: TimeAxis
    offset_ns: int

    @cached_property
    def rows(self) -> Rows:
        """The rows as Python values."""
        rows: Rows = self.table.to_pylist()
        return thinned(rows)

    def labels(self, column: str) -> list[str]:
        """The devices, CPUs or roles in the table, in order of appearance."""
        if column not in self.table.column_names:
            return []
        import pyarrow.compute as pc

        return [str(label) for label in pc.unique(self.table[column]).to_pylist() if label]

    def select(self, column: str, label: str) -> Observed:
        """The rows of one device, CPU or role."""
        if column not in self.table.column_names:
            return replace(self, table=self.table.slice(0, 0))
        import pyarrow.compute as pc

        return replace(self, table=self.table.filter(pc.equal(self.table[column], label)))

    def measured(self) -> Rows:
        """The rows that cover the measurement."""
        if len(self.rows) < 2:
            return self.rows
        begin_ns = self.axis.zero_monotonic_ns + self.offset_ns
        end_ns = begin_ns + int(self.axis.measurement_end_s * 1e9)
        return thinned(within(self.table.to_pylist(), begin_ns, end_ns))

    def values(self, counter: str, *, factor: float = 1.0) -> dict[float, float | None]:
        """Growth of a counter a second × `factor`, by seconds on the axis; only what it shows."""
        return {
            self.seconds(rate.end_ns): None if rate.per_s is None else rate.per_s * factor
            for rate in rates(self.rows, counter)
            if self._shown(rate)
        }

    def shares(self) -> list[CpuShares]:
        """Shares of CPU time; only what the axis shows."""
        return [share for share in cpu_shares(self.rows) if self._shown(share)]

    def seconds(self, monotonic_ns: int) -> float:
        """An instant of the observer's clock as seconds on the axis."""
        return self.axis.seconds(monotonic_ns - self.offset_ns)

    def _shown(self, span: CpuShares | Rate) -> bool:
        begin_s, end_s = self.seconds(span.begin_ns), self.seconds(span.end_ns)
        return end_s > self.axis.begin_s and begin_s < self.axis.end_s


def thinned(rows: Rows) -> Rows:
    """The rows without those taken much sooner than usual after the one before.

    A sample out of turn (the measurement begins) can follow a regular one by a millisecond, in
    which a counter of 1/100 s shows nothing or everything. First and last stay; counters lose
    nothing, since their growth spans what is left out.
    """
    if len(rows) < 3:
        return rows
    times_ns = [int(row["monotonic_ns"] or 0) for row in rows]
    usual_ns = statistics.median(after - before for before, after in pairwise(times_ns))
    kept = [0]
    for number in range(1, len(rows)):
        if times_ns[number] - times_ns[kept[-1]] >= usual_ns / 2:
            kept.append(number)
    if kept[-1] != len(rows) - 1:
        if len(kept) > 1:
            kept.pop()
        kept.append(len(rows) - 1)
    return [rows[number] for number in kept]


def observed(documents: TrialDocuments, axis: TimeAxis, name: str) -> Observed:
    """A table by its name; empty where nobody observed it."""
    import pyarrow as pa

    table = documents.observations.get(name)
    empty = pa.table({"monotonic_ns": pa.array([], pa.int64())})
    usable = table is not None and "monotonic_ns" in table.column_names
    placed = table if usable else empty
    return Observed(table=placed, axis=axis, offset_ns=_offset_ns(placed, axis))


def _offset_ns(table: pa.Table, axis: TimeAxis) -> int:
    """How far the observer's clock is ahead of the engine's, by the wall clock beside both."""
    if axis.zero_wall_unix_ns is None or not table.num_rows:
        return 0
    if "wall_unix_ns" not in table.column_names:
        return 0
    first = table.slice(0, 1).to_pylist()[0]
    if first["wall_unix_ns"] is None:
        return 0
    since_zero_ns = int(first["wall_unix_ns"]) - axis.zero_wall_unix_ns
    return int(first["monotonic_ns"] or 0) - axis.zero_monotonic_ns - since_zero_ns


def tables_ending(documents: TrialDocuments, suffix: str) -> list[str]:
    """Names of tables such as `host_cpu` by their ending, one for each host that was watched."""
    return [name for name in documents.observations if name.endswith(suffix)]


def busiest(whole: Observed, column: str, counters: Sequence[str]) -> tuple[str, Observed] | None:
    """The device whose counters grew most on the axis; None when all stood still."""

    def grown(device: str) -> float:
        own = whole.select(column, device)
        return sum(value or 0.0 for counter in counters for value in own.values(counter).values())

    devices = whole.labels(column)
    key: Callable[[str], float] = grown
    best = max(devices, key=key, default=None)
    return None if best is None or not grown(best) else (best, whole.select(column, best))
