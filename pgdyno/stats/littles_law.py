"""Little's law as a check of the measurement itself: N = X · R.

N clients are always somewhere: in a transaction for R on average, or thinking for Z. In a closed
loop X · (R + Z) must give N back; what is missing is time that nobody accounted for (clients
waiting to connect, a generator short of CPU, failed transactions, whose time is not in R). In an
open loop N is the mean number in flight, known from one count an interval only: a gap within three
standard errors of that mean says nothing. J. D. C. Little, "A Proof for the Queuing Formula L =
λW", Operations Research 9 (3), 1961; the interactive form with Z: R. Jain, "The Art of Computer
Systems Performance Analysis", 1991, chapter 33.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgdyno.contract import ClosedLoop, Counters, Interval, Load, Summary

RELEVANT_GAP: Final = 0.05
"""Above this share of N a gap needs an explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LittlesLaw:
    """`concurrency` is N as observed, `accounted` is X · R as measured.

    `explanations` name what is known to fall outside of X · R in this measurement;
    `sampling_error` is how far N as observed may be off where it was only sampled (0: exact).
    """

    concurrency: float
    accounted: float
    sampling_error: float = 0.0
    explanations: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """The share of N that X · R leaves unexplained; negative when it explains too much."""
        return (self.concurrency - self.accounted) / self.concurrency

    @property
    def relevant(self) -> bool:
        """Whether the gap is large enough to need an explanation."""
        missing = abs(self.concurrency - self.accounted)
        return missing > max(RELEVANT_GAP * self.concurrency, self.sampling_error)


def check(summary: Summary, load: Load, intervals: Sequence[Interval]) -> LittlesLaw | None:
    """Hold a measurement to N = X · R; None when there is too little to judge it by.

    `intervals` are used in an open loop only, where N is nobody's choice.
    """
    rate_per_s = summary.throughput_per_s
    if not rate_per_s or not summary.times.service.count:
        return None
    if isinstance(load, ClosedLoop):
        residence_s = summary.times.service.mean_ns / 1e9 + load.think_time_s
        concurrency, sampling_error = float(summary.clients_connected), 0.0
    else:
        residence_s = summary.times.service.mean_ns / 1e9
        counts = in_flight_counts(intervals)
        concurrency = statistics.fmean(counts) if counts else 0.0
        sampling_error = _sampling_error(counts, rate_per_s * residence_s)
    if concurrency <= 0:
        return None
    return LittlesLaw(
        concurrency=concurrency,
        accounted=rate_per_s * residence_s,
        sampling_error=sampling_error,
        explanations=tuple(_explanations(summary)),
    )


def in_flight_counts(intervals: Sequence[Interval]) -> list[int]:
    """How many were in flight at the end of each interval of the measurement."""
    return [interval.in_flight for interval in intervals if interval.phase == "measurement"]


def _sampling_error(counts: Sequence[int], expected: float) -> float:
    """Three standard errors of the mean of `counts`, which scatter like a Poisson's at least."""
    if not counts:
        return 0.0
    variance = max(expected, statistics.variance(counts) if len(counts) > 1 else 0.0)
    return 3 * math.sqrt(variance / len(counts))


def _explanations(summary: Summary) -> list[str]:
    found = []
    failed = summary.measurement.failed.total + summary.measurement.unknown
    if failed:
        found.append(f"{failed} transactions failed or stayed unknown; their time is not in R")
    missing = summary.clients_asked - summary.clients_connected
    if missing > 0:
        found.append(f"{missing} of {summary.clients_asked} clients never connected")
    if _retried(summary.measurement):
        found.append("retried transactions count once, with all their tries")
    if any(error.sqlstate is None or error.sqlstate[:2] == "08" for error in summary.errors):
        found.append("connections were lost; their clients stood still from then on")
    return found


def _retried(counters: Counters) -> bool:
    return counters.retried > 0
