"""What became of a cell: everybody's turns, as a row of the table and as a part of the results."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from cells import METRIC_TITLES, Cell
from comparison import Bar, Comparison, compare
from turns import Turn


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a cell: everybody's turns; thread counts tried for pgbench, tps of each."""

    cell: Cell
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    tried: dict[int, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def values(self, name: str) -> list[float]:
        """The cell's metric for each turn of a contestant."""
        return [float(getattr(turn, self.cell.metric)) for turn in self.turns[name]]

    def comparison(self, peer: str) -> Comparison:
        """Ours with a peer."""
        return compare(self.values("pgdyno"), self.values(peer))


def table_row(outcome: Outcome, peer: str, bar: Bar | None) -> tuple[str, ...]:
    """A row of the table: ours, a peer's, their ratio and what it must be."""
    found = outcome.comparison(peer)
    threads = {name: turns[0].threads for name, turns in outcome.turns.items()}
    return (
        outcome.cell.name,
        METRIC_TITLES[outcome.cell.metric],
        f"{_spread(outcome.values('pgdyno'))} -j {threads['pgdyno']}",
        peer,
        f"{_spread(outcome.values(peer))} -j {threads[peer]}",
        f"{found.ratio:.3f} ({found.low:.3f}–{found.high:.3f})",
        "" if bar is None else str(bar),
        "" if bar is None else bar.judge(found),
    )


def _spread(values: list[float]) -> str:
    digits = 2 if max(values) < 1000 else 0
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f}–{high:,.{digits}f})"


def cell_document(outcome: Outcome) -> dict[str, Any]:
    """Everything that is known of a cell."""
    turns = {
        name: [
            {
                "throughput_per_s": turn.throughput_per_s,
                "transactions": turn.transactions,
                "failed": turn.failed,
                "cpu_s": turn.cpu_s,
                "cpu_us": turn.cpu_us,
                "cores": turn.cores,
                "threads": turn.threads,
                "p99_us": turn.p99_us,
                "measurement_cpu_us": turn.measurement_cpu_us,
            }
            for turn in all_turns
        ]
        for name, all_turns in outcome.turns.items()
    }
    ratios = {}
    for peer, bar in outcome.cell.bars.items():
        if peer in outcome.turns:
            found = outcome.comparison(peer)
            ratios[peer] = {
                "ratio": found.ratio,
                "low": found.low,
                "high": found.high,
                "pairs": found.pairs,
                "bar": None if bar is None else str(bar),
                "judgement": None if bar is None else bar.judge(found),
            }
    return {
        "name": outcome.cell.name,
        "workload": outcome.cell.workload,
        "server": outcome.cell.server,
        "transport": outcome.cell.transport,
        "clients": outcome.cell.clients,
        "metric": outcome.cell.metric,
        "apart": outcome.cell.apart,
        "pgbench_threads_tried_tps": outcome.tried,
        "left_out": outcome.left_out,
        "turns": turns,
        "ratios": ratios,
    }
