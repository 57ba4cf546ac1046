"""Response metrics: what an experiment can judge, one value a trial. Names, units, directions.

`METRICS` is the whole list; `experiment.readings` reads their values from a stored trial. Times are
response times (intended start to completion; without a schedule that is the service time), of the
measurement's committed transactions. A percentile of a trial is one value like any other.

>>> metric("p99_us").unit, metric("p99_us").direction
('µs', 'lower')
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from pgdyno.errors import InvalidInput, nearest_hint

Direction = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One response metric. `direction` says which values are better.

    `quantile` is set for percentiles: they need enough transactions beyond them to mean something.
    """

    name: str
    unit: str
    direction: Direction
    words: str
    quantile: float | None = None


_ALL: Final = (
    Metric(name="throughput_per_s", unit="tps", direction="higher", words="throughput"),
    Metric(
        name="goodput_per_s", unit="tps", direction="higher",
        words="throughput within the response time limit",
    ),
    Metric(
        name="server_commits_per_s", unit="/s", direction="higher",
        words="commits the server acknowledged",
    ),
    Metric(name="average_us", unit="µs", direction="lower", words="average response time"),
    Metric(name="p50_us", unit="µs", direction="lower", words="median response time",
           quantile=0.5),
    Metric(name="p90_us", unit="µs", direction="lower", words="p90 of response time",
           quantile=0.9),
    Metric(name="p95_us", unit="µs", direction="lower", words="p95 of response time",
           quantile=0.95),
    Metric(name="p99_us", unit="µs", direction="lower", words="p99 of response time",
           quantile=0.99),
    Metric(name="p99_9_us", unit="µs", direction="lower", words="p99.9 of response time",
           quantile=0.999),
    Metric(name="max_us", unit="µs", direction="lower", words="longest response time"),
    Metric(name="p99_lag_us", unit="µs", direction="lower", words="p99 of schedule lag",
           quantile=0.99),
    Metric(name="failed_share", unit="share", direction="lower", words="failed transactions"),
    Metric(
        name="not_committed_share", unit="share", direction="lower",
        words="transactions that failed, were skipped, or whose outcome is unknown",
    ),
    Metric(name="late_share", unit="share", direction="lower", words="late transactions"),
    Metric(name="skipped_share", unit="share", direction="lower", words="skipped transactions"),
    Metric(
        name="server_cpu_us_per_transaction", unit="µs", direction="lower",
        words="CPU time of servers and pooler for a transaction",
    ),
    Metric(
        name="engine_cpu_us_per_transaction", unit="µs", direction="lower",
        words="CPU time of the load generator for a transaction",
    ),
    Metric(
        name="wal_bytes_per_transaction", unit="bytes", direction="lower",
        words="WAL for a transaction",
    ),
)  # fmt: skip

METRICS: Final = MappingProxyType({each.name: each for each in _ALL})
"""Every response metric by its name."""

DEFAULT_METRIC: Final = "throughput_per_s"


def metric(name: str) -> Metric:
    """The metric of a name; `InvalidInput` with the nearest for an unknown one."""
    try:
        return METRICS[name]
    except KeyError:
        raise InvalidInput(
            f"'{name}' is not a response metric", hint=nearest_hint(name, METRICS)
        ) from None
