"""The figures of one measurement, from the engine's summary, or from its intervals after a kill.

`Measured` is what every report prints first. Nothing here is estimated: a figure that cannot be
known from what is stored is None. Percentiles come from merged histograms, the summary's or the
log's; they are never averaged.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgdyno.contract import Counters, Failed, Interval, Series, Summary
from pgdyno.reports.distribution import kinds_of, merged, response_of
from pgdyno.reports.documents import TrialDocuments
from pgdyno.stats import littles_law
from pgdyno.stats.fairness import Fairness, fairness
from pgdyno.stats.littles_law import LittlesLaw
from pgdyno.stats.percentiles import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How throughput moved from interval to interval inside one trial. No confidence interval."""

    intervals: int
    lowest_per_s: float
    highest_per_s: float
    mean_per_s: float
    stddev_per_s: float

    @property
    def share(self) -> float:
        """Standard deviation as a share of the mean (coefficient of variation)."""
        return self.stddev_per_s / self.mean_per_s if self.mean_per_s else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """CPU the engine itself used during the measurement."""

    cpu_user_s: float
    cpu_sys_s: float
    cpu_per_transaction_us: float | None
    cores: float | None
    max_rss_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The headline figures of one measurement."""

    partial: bool
    measured_s: float
    counters: Counters
    throughput_per_s: float
    throughput_with_connect_per_s: float | None
    server_commits: int
    response: Series | None
    service: Series | None
    lag: Series | None
    spread: Spread | None
    fairness: Fairness | None
    engine_cost: EngineCost | None
    littles_law: LittlesLaw | None

    @property
    def server_commits_per_s(self) -> float:
        """Commits the server acknowledged, a second of the measurement."""
        return self.server_commits / self.measured_s

    @property
    def failed_share(self) -> float:
        """Failed transactions as a share of those that came to an end."""
        ended = self.counters.committed + self.counters.failed.total + self.counters.unknown
        return self.counters.failed.total / ended if ended else 0.0


def measure(documents: TrialDocuments) -> Measured | None:
    """The figures of a trial, or None where nothing was measured."""
    summary = documents.summary
    if summary is not None and summary.measured_s:
        return _from_summary(documents, summary)
    by_type = response_of(kinds_of(documents.distributions))
    return _from_intervals(documents.intervals, merged(by_type))


def _from_summary(documents: TrialDocuments, summary: Summary) -> Measured:
    intervals, plan = documents.intervals, documents.plan
    measured_s = summary.measured_s or 0.0
    return Measured(
        partial=False,
        measured_s=measured_s,
        counters=summary.measurement,
        throughput_per_s=summary.throughput_per_s or 0.0,
        throughput_with_connect_per_s=summary.throughput_with_connect_per_s,
        server_commits=summary.server_commits,
        response=_filled(summary.times.response or summary.times.service),
        service=_filled(summary.times.service),
        lag=summary.times.lag,
        spread=spread_of(intervals),
        fairness=_fairness(summary),
        engine_cost=_engine_cost(summary, measured_s),
        littles_law=littles_law.check(summary, plan.load, intervals) if plan else None,
    )


def _from_intervals(
    intervals: tuple[Interval, ...], distribution: Distribution | None
) -> Measured | None:
    measured = [one for one in intervals if one.phase == "measurement"]
    if not measured:
        return None
    measured_s = (measured[-1].end_ns - measured[0].begin_ns) / 1e9
    counters = add_counters(one.counters for one in measured)
    parts = [one.times.response or one.times.service for one in measured]
    cpu_user_s = sum(one.cpu_user_ns for one in measured) / 1e9
    cpu_sys_s = sum(one.cpu_sys_ns for one in measured) / 1e9
    return Measured(
        partial=True,
        measured_s=measured_s,
        counters=counters,
        throughput_per_s=counters.committed / measured_s,
        throughput_with_connect_per_s=None,
        server_commits=sum(one.server_commits for one in measured),
        response=_series(parts, distribution),
        service=None,
        lag=None,
        spread=spread_of(intervals),
        fairness=None,
        engine_cost=_cost(cpu_user_s, cpu_sys_s, counters.committed, measured_s, None),
        littles_law=None,
    )


def _series(parts: Sequence[Series], distribution: Distribution | None) -> Series | None:
    """Exact sums of the intervals' series, percentiles from the merged histograms of the log."""
    parts = [part for part in parts if part.count]
    if not parts or distribution is None:
        return None
    max_ns = max(part.max_ns for part in parts)

    def at(quantile: float) -> int:
        # A histogram's bucket may end above the slowest one, which is known exactly.
        return min(distribution.value_at(quantile), max_ns)

    return Series(
        count=sum(part.count for part in parts),
        sum_ns=sum(part.sum_ns for part in parts),
        sum_squares_ns2=sum(part.sum_squares_ns2 for part in parts),
        min_ns=min(part.min_ns for part in parts),
        max_ns=max_ns,
        p50_ns=at(0.5),
        p90_ns=at(0.9),
        p95_ns=at(0.95),
        p99_ns=at(0.99),
        p99_9_ns=at(0.999),
        p99_99_ns=at(0.9999),
    )


def _filled(series: Series) -> Series | None:
    return series if series.count else None


def add_counters(several: Iterable[Counters]) -> Counters:
    """The sum of counters, field by field: the one place where reports add them."""
    total: defaultdict[str, int] = defaultdict(int)
    failed: defaultdict[str, int] = defaultdict(int)
    for one in several:
        for name in Counters.model_fields:
            if name != "failed":
                total[name] += getattr(one, name)
        for name in Failed.model_fields:
            failed[name] += getattr(one.failed, name)
    return Counters(failed=Failed(**failed), **total)


def committed_per_s(intervals: Iterable[Interval]) -> list[tuple[int, int, float]]:
    """Throughput of each slice of time as (begin_ns, end_ns, per second).

    Lines of both phases that cover the same slice (stragglers of the warm-up) are added together.
    """
    committed: dict[tuple[int, int], int] = defaultdict(int)
    for one in intervals:
        committed[one.begin_ns, one.end_ns] += one.counters.committed
    return [
        (begin_ns, end_ns, count / ((end_ns - begin_ns) / 1e9))
        for (begin_ns, end_ns), count in sorted(committed.items())
        if end_ns > begin_ns
    ]


def spread_of(intervals: Iterable[Interval]) -> Spread | None:
    """Spread of throughput over the whole intervals of the measurement; None below three of them.

    A last interval much shorter than the others is left out: its rate says little.
    """
    measured = [one for one in intervals if one.phase == "measurement"]
    if not measured:
        return None
    usual_ns = max(one.end_ns - one.begin_ns for one in measured)
    rates = [
        rate
        for begin_ns, end_ns, rate in committed_per_s(measured)
        if end_ns - begin_ns >= usual_ns * 0.9
    ]
    if len(rates) < 3:
        return None
    return Spread(
        intervals=len(rates),
        lowest_per_s=min(rates),
        highest_per_s=max(rates),
        mean_per_s=statistics.fmean(rates),
        stddev_per_s=statistics.stdev(rates),
    )


def _fairness(summary: Summary) -> Fairness | None:
    """How evenly transactions fell to clients; None where there was nothing to share."""
    if len(summary.clients) < 2 or not summary.measurement.committed:
        return None
    return fairness(summary.clients)


def _engine_cost(summary: Summary, measured_s: float) -> EngineCost | None:
    own = summary.own_cost
    if own is None:
        return None
    user_s, sys_s = own.cpu_user_ns / 1e9, own.cpu_sys_ns / 1e9
    committed = summary.measurement.committed
    return _cost(user_s, sys_s, committed, measured_s, own.max_rss_bytes)


def _cost(
    user_s: float, sys_s: float, committed: int, measured_s: float, max_rss_bytes: int | None
) -> EngineCost:
    total_s = user_s + sys_s
    return EngineCost(
        cpu_user_s=user_s,
        cpu_sys_s=sys_s,
        cpu_per_transaction_us=total_s * 1e6 / committed if committed else None,
        cores=total_s / measured_s if measured_s else None,
        max_rss_bytes=max_rss_bytes,
    )
