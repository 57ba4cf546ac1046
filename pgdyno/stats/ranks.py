"""How rank sums fall when nothing but chance decides: exact null distributions and their tails.

Both are counted, not simulated: one trial more or fewer makes the same answer every time.

* Signed ranks (F. Wilcoxon, "Individual Comparisons by Ranking Methods", Biometrics Bulletin 1 (6),
  1945): of n differences, each rank 1…n is positive with probability ½. This is the sign-flip
  permutation test of Fisher on ranks. The same numbers count how many of the n(n+1)/2 Walsh
  averages are positive (J. W. Tukey, 1949), which is what makes an interval of it.
* Rank sum (H. B. Mann, D. R. Whitney, 1947): how many of the a × b pairs of two samples are in
  order, when every way to deal the a + b values to the two samples is equally likely.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import Final

EXACT_PAIRS: Final = 10_000
"""Above so many pairs (100 trials a side) the rank sum's distribution is taken as normal."""


@lru_cache(maxsize=256)
def signed_rank_tail(blocks: int) -> tuple[float, ...]:
    """P(V ≤ v) for v = 0…n(n+1)/2, V the number of positive Walsh averages of n differences.

    >>> signed_rank_tail(3)[:3]
    (0.125, 0.25, 0.375)
    """
    import numpy

    chances = numpy.zeros(blocks * (blocks + 1) // 2 + 1)
    chances[0] = 1.0
    for rank in range(1, blocks + 1):
        chances /= 2
        chances[rank:] += chances[:-rank].copy()
    return tuple(chances.cumsum().tolist())


@lru_cache(maxsize=256)
def rank_sum_tail(first: int, second: int) -> tuple[float, ...]:
    """P(U ≤ u) for u = 0…a·b, U the number of pairs in order.

    Exact up to `EXACT_PAIRS`, above with the normal distribution and a correction for continuity.

    >>> [round(p, 3) for p in rank_sum_tail(3, 3)[:3]]
    [0.05, 0.1, 0.2]
    """
    pairs = first * second
    if pairs > EXACT_PAIRS:
        normal = NormalDist(pairs / 2, math.sqrt(pairs * (first + second + 1) / 12))
        return tuple(normal.cdf(u + 0.5) for u in range(pairs + 1))
    import numpy

    # The largest value belongs to the first sample (then it wins `b` pairs) or to the second.
    rows = [numpy.ones(1) for _ in range(second + 1)]
    for a in range(1, first + 1):
        rows[0] = numpy.ones(1)
        for b in range(1, second + 1):
            row = numpy.zeros(a * b + 1)
            row[b:] += rows[b] * (a / (a + b))
            row[: a * (b - 1) + 1] += rows[b - 1] * (b / (a + b))
            rows[b] = row
    return tuple(accumulate(rows[second].tolist())) if first else (1.0,)


def two_sided_p(differences: Sequence[float], tail: Sequence[float]) -> float:
    """The p of "no difference", from the Walsh averages or pairwise differences, in any order.

    A difference of exactly 0 counts against a decision, so that p is at most α exactly when the
    interval of `bounds` leaves 0 out.
    """
    above = sum(each >= 0 for each in differences)
    below = sum(each <= 0 for each in differences)
    return min(1.0, 2 * tail[min(above, below)])


def bounds(ordered: Sequence[float], tail: Sequence[float], level: float) -> tuple[float, float]:
    """The interval at `level` at least, from rising Walsh averages or pairwise differences.

    `ValueError` where even the widest (lowest to highest) has a lower level: see `smallest_p`.
    """
    outside = rank_outside(tail, level)
    if outside == 0:
        raise ValueError("too few trials for an exact interval at this level")
    return ordered[outside - 1], ordered[-outside]


def rank_outside(tail: Sequence[float], level: float) -> int:
    """How many of the ordered differences an interval may leave out at each end, plus one; or 0."""
    allowed = (1 - level) * (1 + 1e-9)
    return bisect_right(tail, allowed / 2)
