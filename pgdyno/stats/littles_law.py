"""Little's law as a check of the measurement itself: N = X · R.

N clients are always somewhere: in a transaction for R on average, or thinking for Z. In a closed
loop X · (R + Z) must give N back; what is missing is time that nobody accounted for (clients
waiting to connect, a generator short of CPU, failed transactions, whose time is not in R). In an
open loop N is the mean number in flight. J. D. C. Little, "A Proof for the Queuing Formula L =
λW", Operations Research 9 (3), 1961; the interactive form with Z: R. Jain, "The Art of Computer
Systems Performance Analysis", 1991, chapter 33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pgdyno.contract import ClosedLoop, Counters, Interval, Load, Summary

RELEVANT_GAP: Final = 0.05
"""Above this share of N a gap needs an explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LittlesLaw:
    """`concurrency` is N as observed, `accounted` is X · R as measured.

    `explanations` name what is known to fall outside of X · R in this measurement.
    """

    concurrency: float
    accounted: float
    explanations: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """The share of N that X · R leaves unexplained; negative when it explains too much."""
        return (self.concurrency - self.accounted) / self.concurrency

    @property
    def relevant(self) -> bool:
        """Whether the gap is large enough to need an explanation."""
        return abs(self.gap) > RELEVANT_GAP


def check(summary: Summary, load: Load, intervals: Sequence[Interval]) -> LittlesLaw | None:
    """Hold a measurement to N = X · R; None when there is too little to judge it by.

    `intervals` are used in an open loop only, where N is nobody's choice.
    """
    rate_per_s = summary.throughput_per_s
    if not rate_per_s or not summary.times.service.count:
        return None
    if isinstance(load, ClosedLoop):
        residence_s = summary.times.service.mean_ns / 1e9 + load.think_time_s
        concurrency = float(summary.clients_connected)
    else:
        residence_s = (summary.times.service).mean_ns / 1e9
        concurrency = mean_in_flight(intervals)
    if concurrency <= 0:
        return None
    return LittlesLaw(
        concurrency=concurrency,
        accounted=rate_per_s * residence_s,
        explanations=tuple(_explanations(summary)),
    )


def mean_in_flight(intervals: Sequence[Interval]) -> float:
    """Mean number in flight at the ends of the measurement's intervals; 0 for none."""
    counts = [interval.in_flight for interval in intervals if interval.phase == "measurement"]
    return sum(counts) / len(counts) if counts else 0.0


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
