"""What happened during a measurement that could make it an outlier, from what was stored.

A disturbance is a reason, never a verdict: trials are flagged by their values (`stats.outliers`),
and what is known to have happened during them is told beside it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from pgdyno.contract import Summary
from pgdyno.experiment.samples import measured_rows
from pgdyno.experiment.store import StoredTrial
from pgdyno.stats.rates import cpu_shares, cpu_spread, growth
from pgdyno.units import format_share

_STOLEN_TELLING: Final = 0.01
_OTHERS_TELLING: Final = 0.10
_JIFFIES_PER_S: Final = 100
_VACUUM_LINE: Final = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (?:UTC|GMT)\b.*automatic (?:aggressive )?"
    r'(?:vacuum|analyze) .*?of table "([^"]+)"'
)


def disturbances_of(stored: StoredTrial, summary: Summary) -> tuple[str, ...]:
    """Everything known to have happened during the measurement, one phrase each."""
    found = (
        *_checkpoints(measured_rows(stored, summary, "bgwriter")),
        *_autovacuum(stored, summary),
        *_cpu(stored, summary),
    )
    return tuple(found)


def _checkpoints(rows: list[dict[str, Any]]) -> list[str]:
    if len(rows) < 2:
        return []
    begun = sum(
        growth(rows[0].get(name), rows[-1].get(name)) or 0
        for name in ("checkpoints_timed", "checkpoints_requested")
    )
    if begun:
        return ["a checkpoint" if begun == 1 else f"{begun:.0f} checkpoints"]
    # One that had begun earlier counts when it wrote buffers in this time.
    written = growth(rows[0].get("checkpoint_buffers"), rows[-1].get("checkpoint_buffers"))
    return ["the end of a checkpoint"] if written else []


def _autovacuum(stored: StoredTrial, summary: Summary) -> list[str]:
    """Tables that the private server's log says autovacuum finished in this time."""
    log = stored.folder / "logs" / "server.log"
    begin_ns, end_ns = summary.timeline.measurement_begin_ns, summary.timeline.measurement_end_ns
    if begin_ns is None or end_ns is None or not log.exists():
        return []
    zero_ns = summary.clock.wall_unix_ns - summary.clock.monotonic_ns
    tables: dict[str, None] = {}
    with log.open(errors="replace") as lines:
        for line in lines:
            match = _VACUUM_LINE.match(line)
            if match is None:
                continue
            at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
            if begin_ns + zero_ns <= at.timestamp() * 1e9 <= end_ns + zero_ns:
                tables[match[2].rpartition(".")[2]] = None
    return [f"autovacuum of {', '.join(tables)}"] if tables else []


def _cpu(stored: StoredTrial, summary: Summary) -> list[str]:
    """CPU that the hypervisor took, and that other programs on the load host took."""
    rows = [
        row for row in measured_rows(stored, summary, "host_cpu") if row.get("cpu") in ("all", None)
    ]
    spread = cpu_spread(cpu_shares(rows)) if len(rows) > 1 else {}
    if not spread:
        return []
    found = []
    if spread["steal"].average > _STOLEN_TELLING:
        found.append(f"{format_share(spread['steal'].average)} of the CPU time stolen")
    others = _others_share(stored, summary, rows, spread["busy"].average)
    if others is not None and others > _OTHERS_TELLING:
        found.append(f"other programs used {format_share(others)} of the CPU time")
    return found


def _others_share(
    stored: StoredTrial, summary: Summary, rows: list[dict[str, Any]], busy: float
) -> float | None:
    """CPU time of programs that are neither the engine nor the server, of all there is."""
    ours = 0.0
    for role in ("engine", "server"):
        samples = measured_rows(stored, summary, "processes", role=role)
        if len(samples) < 2:
            return None
        length_s = (samples[-1]["monotonic_ns"] - samples[0]["monotonic_ns"]) / 1e9
        grown = [
            growth(samples[0].get(n), samples[-1].get(n)) for n in ("user_jiffies", "sys_jiffies")
        ]
        if length_s <= 0 or None in grown:
            return None
        ours += sum(each or 0.0 for each in grown) / _JIFFIES_PER_S / length_s
    environment = stored.environment
    cpus = environment.hosts[0].cpus if environment and environment.hosts else 0
    return max(busy - ours / cpus, 0.0) if cpus else None
