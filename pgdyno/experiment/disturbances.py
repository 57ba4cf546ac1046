"""What happened during a measurement that could make it an outlier, from what was stored.

A disturbance is a reason, never a verdict: trials are flagged by their values (`stats.outliers`),
and what is known to have happened during them is told beside it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pgdyno.experiment.samples import Samples
from pgdyno.stats.rates import cpu_shares, cpu_spread, growth
from pgdyno.units import format_share

_STOLEN_TELLING: Final = 0.01
_OTHERS_TELLING: Final = 0.10
_JIFFIES_PER_S: Final = 100
_TABLE: Final = re.compile(r"autovacuum: (?:VACUUM ANALYZE|VACUUM|ANALYZE) ([^\s;]+)")


def disturbances_of(samples: Samples) -> tuple[str, ...]:
    """Everything known to have happened during the measurement, one phrase each."""
    found = (
        *_checkpoints(samples.measured("bgwriter")),
        *_autovacuum(samples.measured("autovacuum")),
        *_cpu(samples),
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


def _autovacuum(rows: list[dict[str, Any]]) -> list[str]:
    """Autovacuum that was seen at work, with its tables where the server told them."""
    if not any(row.get("workers") for row in rows):
        return []
    said = " ".join(str(row.get("doing") or "") for row in rows)
    tables = dict.fromkeys(match[1].rpartition(".")[2] for match in _TABLE.finditer(said))
    return [f"autovacuum of {', '.join(tables)}" if tables else "autovacuum"]


def _cpu(samples: Samples) -> list[str]:
    """CPU that the hypervisor took, and that other programs on the load host took."""
    rows = [row for row in samples.measured("host_cpu") if row.get("cpu") in ("all", None)]
    spread = cpu_spread(cpu_shares(rows)) if len(rows) > 1 else {}
    if not spread:
        return []
    found = []
    if spread["steal"].average > _STOLEN_TELLING:
        found.append(f"{format_share(spread['steal'].average)} of the CPU time stolen")
    others = _others_share(samples, rows, spread["busy"].average)
    if others is not None and others > _OTHERS_TELLING:
        found.append(f"other programs used {format_share(others)} of the CPU time")
    return found


def _others_share(samples: Samples, rows: list[dict[str, Any]], busy: float) -> float | None:
    """CPU time of programs that are neither the engine nor the system's, of all there is."""
    ours = 0.0
    for role in ("engine", *(samples.stored.trial.system_roles or ("server",))):
        used = samples.measured("processes", role=role)
        if len(used) < 2:
            return None
        length_s = (used[-1]["monotonic_ns"] - used[0]["monotonic_ns"]) / 1e9
        grown = [growth(used[0].get(n), used[-1].get(n)) for n in ("user_jiffies", "sys_jiffies")]
        if length_s <= 0 or None in grown:
            return None
        ours += sum(each or 0.0 for each in grown) / _JIFFIES_PER_S / length_s
    environment = samples.stored.environment
    cpus = environment.hosts[0].cpus if environment and environment.hosts else 0
    return max(busy - ours / cpus, 0.0) if cpus else None
