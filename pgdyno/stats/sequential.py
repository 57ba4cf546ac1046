"""Looking at an experiment while it runs, and stopping early, without more false verdicts.

Who looks after every block and stops at the first p ≤ 0.05 finds "differences" in far more than 5
of 100 A/A experiments. So each look gets a smaller level, such that all looks together err at α:
a group sequential design. How much of α is spent by when follows K. K. G. Lan and D. L. DeMets
("Discrete Sequential Boundaries for Clinical Trials", Biometrika 70 (3), 1983) with their function
of O'Brien and Fleming's type, which spends almost nothing early and leaves nearly all for the end:

    α(t) = 4 (1 − Φ(z / √t)),   z = Φ⁻¹(1 − α/4),   t = blocks so far / blocks at most

Intervals at those levels hold the truth at every look at once (repeated confidence intervals,
C. Jennison and B. W. Turnbull, 1989). So any rule for stopping may be used, on p or on the width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

from pgdyno.stats import power
from pgdyno.stats.effect import Effect, estimate_effect

if TYPE_CHECKING:
    from numpy.typing import NDArray

RANKS_MARGIN: Final = 0.94
"""The share of α that is spent. The levels are those of normal sums; ranks that are looked at again
and again err up to 5 % more often (0.0527 for 0.05, 30 looks, 200,000 simulated experiments)."""
_NORMAL: Final = NormalDist()
_GRID: Final = 401
_FARTHEST: Final = 9.0
"""In standard deviations: beyond it lies less than any level asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """A plan of looks: after every block from `first` to `most`, for `comparisons` at once.

    α is shared equally by the comparisons (Bonferroni): Holm's steps need all p values at once,
    and here they come at different times.
    """

    first: int
    most: int
    alpha: float = 0.05
    comparisons: int = 1

    def level(self, blocks: int) -> float:
        """The level of the interval after `blocks` blocks; `ValueError` if no look is planned."""
        if not self.first <= blocks <= self.most:
            raise ValueError(f"no look is planned after {blocks} blocks")
        planned = tuple(range(self.first, self.most + 1))
        alpha = RANKS_MARGIN * self.alpha / self.comparisons
        return 1 - nominal_alphas(planned, self.most, alpha)[blocks - self.first]


def planned_looks(most: int, *, alpha: float = 0.05, comparisons: int = 1) -> Looks:
    """After every block from the fewest that could decide anything, `most` at the latest.

    Where `most` is less than that there is one look, which cannot decide.
    """
    fewest = power.blocks_that_can_decide(alpha=RANKS_MARGIN * alpha, comparisons=comparisons)
    return Looks(first=min(fewest, most), most=most, alpha=alpha, comparisons=comparisons)


def look(
    baseline: Mapping[int, float], variant: Mapping[int, float], looks: Looks
) -> Effect | None:
    """The effect so far, with the level of this look; None before the first one.

    Hand it to `verdict.judge` as it is: its p is held against 1 − level, without Holm.
    """
    blocks = len(baseline.keys() & variant.keys())
    if blocks < looks.first:
        return None
    effect = estimate_effect(baseline, variant, level=looks.level(min(blocks, looks.most)))
    return replace(effect, final_level=looks.level(looks.most))


@lru_cache(maxsize=1024)
def nominal_alphas(blocks: tuple[int, ...], most: int, alpha: float) -> tuple[float, ...]:
    """The two-sided level of each look after so many `blocks`, of `most` in all.

    The chance to go beyond at look k and not before is what α(t) allows then (P. Armitage,
    C. K. McPherson, B. C. Rowe, 1969: integrated look by look over the sum so far, here with the
    trapezoidal rule).
    """
    import numpy

    found: list[float] = []
    spent = 0.0
    grid, weights = numpy.zeros(1), numpy.ones(1)
    before = 0.0
    for number in blocks:
        share = number / most
        allowed = _spent(share, alpha)
        step = math.sqrt(share - before)
        limit = _limit(grid, weights, step, max(allowed - spent, 0.0))
        found.append(2 * _NORMAL.cdf(-limit / math.sqrt(share)))
        finer = numpy.linspace(-limit, limit, _GRID)
        density = numpy.exp(-(((finer[:, None] - grid[None, :]) / step) ** 2) / 2)
        density = density @ weights / (step * math.sqrt(2 * math.pi))
        spacing = numpy.full(_GRID, finer[1] - finer[0])
        spacing[[0, -1]] /= 2
        grid, weights = finer, density * spacing
        spent, before = allowed, share
    return tuple(found)


def _spent(share: float, alpha: float) -> float:
    """α(t), of O'Brien and Fleming's type."""
    return 4 * _NORMAL.cdf(_NORMAL.inv_cdf(alpha / 4) / math.sqrt(share))


def _limit(grid: NDArray[Any], weights: NDArray[Any], step: float, target: float) -> float:
    """How far the next sum must lie from 0 that the chance of going beyond is `target`."""
    from scipy.special import ndtr

    low, high = 0.0, float(abs(grid).max()) + _FARTHEST * step
    for _ in range(60):
        middle = (low + high) / 2
        beyond = weights @ (ndtr((-middle - grid) / step) + ndtr((grid - middle) / step))
        low, high = (middle, high) if beyond > target else (low, middle)
    return high
