"""What is compared: the cells of the bench and their bars. Data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comparison import Bar

Metric = Literal["cpu_us", "per_core_per_s", "throughput_per_s", "p99_us"]
Transport = Literal["unix", "tcp"]

METRIC_TITLES: dict[Metric, str] = {
    "cpu_us": "client CPU µs/transaction",
    "per_core_per_s": "transactions/s of client CPU",
    "throughput_per_s": "transactions/s",
    "p99_us": "p99 µs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One comparison. `bars`: for each peer its bar, None where there is only a number to show.

    `apart`: the client has one CPU for itself and the server, which never sleeps, another: what one
    core of the client can do, and nothing else.

    `threads`: `one` for everybody (sysbench has one a client), or each at its best: ours by its own
    rule, pgbench with the `-j` that was found best.
    """

    name: str
    workload: str
    server: Literal["postgres", "null"]
    transport: Transport
    clients: int
    metric: Metric
    threads: Literal["one", "best"]
    bars: dict[str, Bar | None]
    apart: bool = False


def _at_most(limit: float) -> Bar:
    return Bar(limit=limit, at_most=True)


def _at_least(limit: float) -> Bar:
    return Bar(limit=limit, at_most=False)


_NO_WORSE = Bar(limit=1.0, at_most=True, but_for_noise=True)
_NO_LESS = Bar(limit=1.0, at_most=False, but_for_noise=True)

_CPU_BARS: dict[Transport, dict[int, Bar]] = {
    "unix": {1: _NO_WORSE, 16: _at_most(0.70), 64: _at_most(0.50), 256: _at_most(0.60)},
    "tcp": {16: _at_most(0.90), 64: _at_most(0.60), 256: _at_most(0.70)},
}
_NULL_BARS: dict[Transport, dict[str, Bar | None]] = {
    "unix": {"pgbench": _at_least(1.6), "sysbench": _at_least(2.8)},
    "tcp": {"pgbench": _at_least(1.25)},
}


def all_cells() -> tuple[Cell, ...]:
    """Every cell, in the order in which they run."""
    return (*_cpu_cells(), *_null_cells(), *_throughput_cells(), *_percentile_cells())


def _cpu_cells() -> list[Cell]:
    return [
        Cell(
            name=f"cpu-{transport}-{clients}",
            workload="select-only",
            server="postgres",
            transport=transport,
            clients=clients,
            metric="cpu_us",
            threads="one",
            bars={"pgbench": bar} | ({"sysbench": _at_most(0.40)} if clients == 64 else {}),
        )
        for transport, bars in _CPU_BARS.items()
        for clients, bar in bars.items()
    ]


def _null_cells() -> list[Cell]:
    return [
        Cell(
            name=f"null-{transport}-64",
            workload="select-only",
            server="null",
            transport=transport,
            clients=64,
            metric="per_core_per_s",
            threads="one",
            bars=bars,
            apart=True,
        )
        for transport, bars in _NULL_BARS.items()
    ]


def _throughput_cells() -> list[Cell]:
    return [
        Cell(
            name=f"throughput-{workload}-{clients}",
            workload=workload,
            server="postgres",
            transport="unix",
            clients=clients,
            metric="throughput_per_s",
            threads="best",
            bars={"pgbench": _NO_LESS},
        )
        for workload in ("select-only", "tpcb", "userlogin")
        for clients in (16, 64)
    ]


def _percentile_cells() -> list[Cell]:
    return [
        Cell(
            name=f"p99-{workload}-64",
            workload=workload,
            server="postgres",
            transport="unix",
            clients=64,
            metric="p99_us",
            threads="best",
            bars={"pgbench": _NO_WORSE},
        )
        for workload in ("select-only", "tpcb", "userlogin")
    ]
