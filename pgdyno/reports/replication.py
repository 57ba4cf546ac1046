"""How far each standby was behind during the measurement, in words."""

from __future__ import annotations

from pgdyno.reports.documents import TrialDocuments
from pgdyno.reports.observed import observed
from pgdyno.reports.timeline import TimeAxis
from pgdyno.stats.rates import Rows
from pgdyno.units import format_bytes, format_duration_ns


def lags(documents: TrialDocuments, axis: TimeAxis | None) -> list[tuple[str, str]]:
    """Standby and words, a line each: what replay was behind the primary, as that saw it."""
    if axis is None:
        return []
    whole = observed(documents, axis, "replication")
    found = []
    for standby in whole.labels("standby"):
        rows = whole.select("standby", standby).measured()
        states = " and ".join(dict.fromkeys(str(row["sync_state"]) for row in rows))
        behind = _numbers(rows, "replay_lag_bytes")
        if not behind:
            found.append((standby, f"{states}; how far behind is not known"))
            continue
        words = f"{states}; {format_bytes(sum(behind) / len(behind))} of WAL behind on average"
        words += f", {format_bytes(max(behind))} at most"
        if lag_s := _numbers(rows, "replay_lag_s"):
            words += f"; replay lag at most {format_duration_ns(max(lag_s) * 1e9)}"
        found.append((standby, words))
    return found


def _numbers(rows: Rows, name: str) -> list[float]:
    values = (row.get(name) for row in rows)
    return [float(value) for value in values if isinstance(value, int | float)]
