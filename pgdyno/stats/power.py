"""What an experiment can show before it is run: the smallest p, the trials needed, the reach.

An exact test of n blocks never goes below p = 2/2ⁿ (a test of n + n trials without blocks: below
2/(2n choose n)), so a design may be unable to decide whatever the server does. Beyond that, power
is that of Student's t test at the level which the exact test really has, with 3/π of the blocks:
the efficiency of the signed-rank test against t under normal noise (E. J. G. Pitman, 1948). Under
heavier tails it needs fewer. `sd_log` is always the standard deviation of one block's log ratio
(√2 times that of one trial, where trials are independent), as in `effect.Effect`.

>>> smallest_p(3, paired=True), round(smallest_p(3, paired=False), 3)
(0.25, 0.1)
>>> blocks_that_can_decide(alpha=0.05), blocks_that_can_decide(alpha=0.05, comparisons=4)
(6, 8)
>>> trials_needed(0.02, 0.03), round(detectable(0.02, 10), 3)
(7, 0.021)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pgdyno.stats import ranks

SIGNED_RANK_EFFICIENCY: Final = 3 / math.pi
MOST_TRIALS: Final = 100_000
"""No experiment has more; where more would be needed, this number is the answer."""
_EXACT_LEVEL_BLOCKS: Final = 60
"""Above so many blocks the test's real level is its nominal one for all purposes."""


def smallest_p(trials: int, *, paired: bool = True) -> float:
    """The smallest two-sided p that `trials` of each variant can give; 1 for none."""
    if trials < 1:
        return 1.0
    return min(1.0, 2 / (2**trials if paired else math.comb(2 * trials, trials)))


def blocks_that_can_decide(
    *, alpha: float = 0.05, comparisons: int = 1, paired: bool = True
) -> int:
    """The fewest blocks (paired) or trials of each variant whose smallest p is low enough.

    With several comparisons the first to be called different needs α / comparisons (Holm).
    """
    trials = 1
    while smallest_p(trials, paired=paired) > alpha / comparisons:
        trials += 1
    return trials


def chance_to_find(
    sd_log: float, difference: float, blocks: int, *, alpha: float = 0.05, comparisons: int = 1
) -> float:
    """Power: the chance that a relative `difference` (0.03: 3 %) is called one, on its side."""
    level = _real_alpha(blocks, alpha / comparisons)
    if level == 0:
        return 0.0
    if sd_log <= 0:
        return 1.0
    from statsmodels.stats.power import TTestPower

    found = TTestPower().power(
        effect_size=math.log1p(difference) / sd_log,
        nobs=blocks * SIGNED_RANK_EFFICIENCY,
        df=blocks - 1,
        alpha=level / 2,
        alternative="larger",
    )
    return float(found)


def trials_needed(
    sd_log: float,
    matters: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> int:
    """Blocks (trials of each variant) in which a difference of `matters` is found at `power`."""
    fewest = blocks_that_can_decide(alpha=alpha, comparisons=comparisons)

    def enough(blocks: int) -> bool:
        found = chance_to_find(sd_log, matters, blocks, alpha=alpha, comparisons=comparisons)
        return found >= power

    return _first(enough, fewest)


def blocks_to_decide(
    sd_log: float,
    matters: float,
    *,
    alpha: float = 0.05,
    comparisons: int = 1,
    paired: bool = True,
) -> int:
    """Blocks after which some verdict is due, whatever the truth, if the spread stays.

    Undecided is an interval at 1 − α that holds 1 while that at 1 − 2α is not inside ± `matters`;
    that is impossible once the two half widths together are less than `matters`. Widths vary, so
    where the truth is about half of `matters`, one experiment in ten or so needs a few more.
    """
    from scipy.special import stdtrit

    fewest = blocks_that_can_decide(alpha=alpha, comparisons=comparisons, paired=paired)

    def half_width(blocks: int, alpha: float) -> float:
        level = _real_alpha(blocks, alpha) if paired else alpha
        quantile = float(stdtrit(blocks - 1, 1 - level / 2))
        return quantile * sd_log / math.sqrt(blocks * SIGNED_RANK_EFFICIENCY)

    def enough(blocks: int) -> bool:
        both = half_width(blocks, alpha / comparisons) + half_width(blocks, 2 * alpha)
        return both <= math.log1p(matters)

    return _first(enough, fewest)


def detectable(
    sd_log: float,
    blocks: int,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> float:
    """The smallest relative difference found at `power`; infinite where `blocks` cannot decide."""
    if _real_alpha(blocks, alpha / comparisons) == 0:
        return math.inf
    if sd_log <= 0:
        return 0.0
    from scipy.optimize import brentq

    def lacking(log_ratio: float) -> float:
        found = chance_to_find(
            sd_log, math.expm1(log_ratio), blocks, alpha=alpha, comparisons=comparisons
        )
        return found - power

    high = sd_log
    while lacking(high) < 0:
        high *= 1.5
    return math.expm1(float(brentq(lacking, 0.0, high)))


def _real_alpha(blocks: int, alpha: float) -> float:
    """The level that the exact test really has: at most `alpha`; 0 where it cannot decide."""
    if blocks > _EXACT_LEVEL_BLOCKS:
        return alpha
    tail = ranks.signed_rank_tail(blocks)
    outside = ranks.rank_outside(tail, 1 - alpha)
    return 2 * tail[outside - 1] if outside else 0.0


def _first(enough: Callable[[int], bool], fewest: int) -> int:
    """The smallest number from `fewest` on that is enough: doubling, then halving."""
    high = fewest
    while not enough(high):
        high *= 2
        if high >= MOST_TRIALS:
            return MOST_TRIALS
    low = max(fewest, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high
