"""An observer's samples that cover one measurement, read from a trial folder."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pgdyno.contract import Summary
from pgdyno.experiment.store import StoredTrial
from pgdyno.stats.rates import select, within


def measured_rows(
    stored: StoredTrial, summary: Summary, table: str, *, role: str | None = None
) -> list[dict[str, Any]]:
    """Rows from the last sample before the measurement to the first after it, of one role.

    Empty where nobody observed it, or where the table cannot be read.
    """
    timeline = summary.timeline
    begin_ns, end_ns = timeline.measurement_begin_ns, timeline.measurement_end_ns
    if begin_ns is None or end_ns is None:
        return []
    try:
        found = stored.observations(table)
    except (OSError, ValueError, pa.ArrowException):
        return []
    if found is None or "monotonic_ns" not in found.column_names or not found.num_rows:
        return []
    rows = found.to_pylist()
    if role is not None:
        rows = list(select(rows, "role", role))
    return [dict(row) for row in within(rows, begin_ns, end_ns)] if rows else []
