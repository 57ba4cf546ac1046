"""Ratios of pairs with their interval, and what they say about a bar. Pure.

A pair is two turns side by side in time, so what the machine did to one it mostly did to the other.
The ratio's estimate is the geometric mean of the pairs' ratios; its 95 % interval is Student's t on
their logarithms (assumes that those are about normal; with four pairs the interval is wide, and it
should be).

>>> found = compare([2.0, 2.2, 1.8, 2.0], [4.0, 4.0, 4.0, 4.0])
>>> f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"
'0.499 (0.438 to 0.568)'
>>> Bar(limit=0.7, at_most=True).judge(found)
'met'
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# Student's t, 97.5 % quantile for 1, 2, 3 … degrees of freedom.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
Judgement = Literal["met", "missed", "undecided", "within noise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A ratio, ours over the peer's, and its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What the ratio must be. `but_for_noise`: an interval around the limit is within the bar."""

    limit: float
    at_most: bool
    but_for_noise: bool = False

    def judge(self, found: Comparison) -> Judgement:
        """Met, missed, or undecided where the interval has the limit inside."""
        best, worst = (found.low, found.high) if self.at_most else (found.high, found.low)
        sign = 1 if self.at_most else -1
        if sign * worst <= sign * self.limit:
            return "met"
        if sign * best > sign * self.limit:
            return "missed"
        return "within noise" if self.but_for_noise else "undecided"

    def __str__(self) -> str:
        words = f"{'≤' if self.at_most else '≥'} {self.limit:g}"
        return f"{words}, but for noise" if self.but_for_noise else words


def compare(ours: Sequence[float], peers: Sequence[float]) -> Comparison:
    """Compare pairs; all numbers must be above zero. One pair has no interval: it is endless."""
    logs = [math.log(own / other) for own, other in zip(ours, peers, strict=True)]
    middle = statistics.fmean(logs)
    half = math.inf
    if len(logs) > 1:
        freedom = min(len(logs) - 1, len(_T_975))
        half = _T_975[freedom - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return Comparison(
        ratio=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        pairs=len(logs),
    )
