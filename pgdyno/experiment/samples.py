"""An observer's samples that cover one measurement, read from a trial folder once and on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pgdyno.contract import Summary
from pgdyno.experiment.store import StoredTrial
from pgdyno.stats.rates import select, within

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What was observed in a trial. A table is read when it is first asked for, and kept."""

    stored: StoredTrial
    summary: Summary
    _tables: dict[str, list[Row]] = field(default_factory=dict, repr=False)

    def measured(self, table: str, *, role: str | None = None) -> list[Row]:
        """Rows from the last sample before the measurement to the first after it, of one role.

        Empty where nobody observed it, or where the table cannot be read.
        """
        timeline = self.summary.timeline
        begin_ns, end_ns = timeline.measurement_begin_ns, timeline.measurement_end_ns
        if begin_ns is None or end_ns is None:
            return []
        if table not in self._tables:
            self._tables[table] = _rows(self.stored, table)
        rows = self._tables[table]
        if role is not None:
            rows = [dict(row) for row in select(rows, "role", role)]
        return [dict(row) for row in within(rows, begin_ns, end_ns)] if rows else []


def _rows(stored: StoredTrial, table: str) -> list[Row]:
    """The whole table; empty where it is not there, damaged, or without times."""
    from pyarrow import ArrowException

    try:
        found = stored.observations(table)
    except (OSError, ValueError, ArrowException):
        return []
    if found is None or "monotonic_ns" not in found.column_names:
        return []
    rows: list[Row] = found.to_pylist()
    return rows
