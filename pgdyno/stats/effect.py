"""What a variant did to a metric: a ratio to the baseline, its interval, and p of "no difference".

Values are compared as logarithms, because noise and effects of a server multiply: −50 % and +100 %
are the same distance. The estimate is Hodges and Lehmann's (J. L. Hodges, E. L. Lehmann, "Estimates
of Location Based on Rank Tests", Annals of Mathematical Statistics 34 (2), 1963): the median of the
mean of every pair of blocks' log ratios. Interval and p come from the test that belongs to it
(`ranks`), so they never disagree: p ≤ 1 − level exactly when the interval leaves 1 out.

The order of a block is random, so under "no difference" which of its two values stands for which
variant is a coin's fall. The test asks for nothing else: neither normal noise, nor trials that are
independent of one another, nor a machine that does not drift. What it cannot do is decide with
few trials: n blocks never give a p below 2/2ⁿ. Below that, an interval by Student's t shows roughly
where the effect lies (it assumes normal noise, and `method` says so); p stays exact.

>>> effect = estimate_effect(
...     dict(enumerate([100, 101, 99, 103, 98, 100])),
...     dict(enumerate([104, 105, 102, 108, 102, 103])))
>>> round(effect.ratio, 3), round(effect.low, 3), round(effect.high, 3), effect.p_value
(1.039, 1.03, 1.049, 0.03125)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final

from pgdyno.stats import ranks

# Very early looks ask for levels at which nothing is excluded: as good as infinite.
_EXP_LIMIT: Final = 700.0
_STUDENT_LIMIT: Final = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Ratio of a variant to the baseline: 1.04 is 4 % more than the baseline.

    `low` to `high` holds the true ratio at `level` (0.95: in 95 of 100 experiments). `inner_low` to
    `inner_high` is the interval at 1 − 2 (1 − level), 0.90 for 0.95: the one that equivalence is
    judged by. With a single block both are 0 to infinity: nothing is known. `smallest_p` is the
    smallest p that so many trials could give at all. `sd_log` is the standard deviation of one
    block's log ratio that such an interval stands for (0 with a single block). `final_level` is
    that of the last look where several are planned (`sequential`), else `level` too. `method` names
    what gave interval and p.
    """

    ratio: float
    low: float
    high: float
    level: float
    p_value: float
    blocks: int
    method: str
    paired: bool
    inner_low: float
    inner_high: float
    smallest_p: float
    sd_log: float
    final_level: float

    @property
    def alpha(self) -> float:
        """The rate of false differences that goes with `level`."""
        return round(1 - self.level, 12)

    @property
    def half_width(self) -> float:
        """Half the interval's width as a relative difference: 0.01 is "known to ± 1 %"."""
        return math.sqrt(self.high / self.low) - 1 if self.low > 0 else math.inf


def estimate_effect(
    baseline: Mapping[int, float], variant: Mapping[int, float], *, level: float = 0.95
) -> Effect:
    """The effect within blocks: block → value of each. Blocks that lack one of them do not count.

    `ValueError` without a complete block, or where a value is not above 0 (it has no ratio).
    """
    complete = sorted(baseline.keys() & variant.keys())
    if not complete:
        raise ValueError("no block holds a trial of both variants")
    ratios = [_log(variant[block]) - _log(baseline[block]) for block in complete]
    averages = sorted((a + b) / 2 for a, b in combinations_with_replacement(ratios, 2))
    return _effect(
        averages, ranks.signed_rank_tail(len(ratios)), level,
        _Sample(
            paired=True, blocks=len(ratios), trials=len(ratios), freedom=len(ratios) - 1,
            sd_log=statistics.stdev(ratios) if len(ratios) > 1 else 0.0,
        ),
    )  # fmt: skip


def estimate_unpaired(
    baseline: Sequence[float], variant: Sequence[float], *, level: float = 0.95
) -> Effect:
    """The effect between trials that share no blocks, as when stored runs are compared.

    Here the method has to assume what randomised blocks would have made sure of: that the trials
    are independent, and that nothing but the variant changed between the two groups.
    """
    if not baseline or not variant:
        raise ValueError("both sides need a trial")
    before, after = [_log(v) for v in baseline], [_log(v) for v in variant]
    a, b = len(before), len(after)
    spread = 0.0
    if a + b > 2:
        squares = sum(len(s) * statistics.pvariance(s) for s in (before, after))
        spread = math.sqrt(2 * squares / (a + b - 2))
    return _effect(
        sorted(y - x for x in before for y in after), ranks.rank_sum_tail(a, b), level,
        _Sample(
            paired=False, blocks=min(a, b), trials=2 * a * b / (a + b), freedom=a + b - 2,
            sd_log=spread,
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """What Student's t needs: `trials` pairs of standard deviation `sd_log`, and its freedom."""

    paired: bool
    blocks: int
    trials: float
    freedom: int
    sd_log: float


def _effect(
    ordered: Sequence[float], tail: Sequence[float], level: float, sample: _Sample
) -> Effect:
    centre = statistics.median(ordered)
    smallest_p = min(1.0, 2 * tail[0])
    inner_level = 1 - 2 * (1 - level)
    low, high = _interval(ordered, tail, level, sample)
    inner_low, inner_high = _interval(ordered, tail, inner_level, sample)
    return Effect(
        ratio=math.exp(centre),
        low=_exp(low),
        high=_exp(high),
        level=level,
        final_level=level,
        p_value=ranks.two_sided_p(ordered, tail),
        blocks=sample.blocks,
        method=_method(exact=ranks.rank_outside(tail, level) > 0, paired=sample.paired),
        paired=sample.paired,
        inner_low=_exp(inner_low),
        inner_high=_exp(inner_high),
        smallest_p=smallest_p,
        sd_log=_implied_spread(low, high, tail, level, sample),
    )


def _interval(
    ordered: Sequence[float], tail: Sequence[float], level: float, sample: _Sample
) -> tuple[float, float]:
    if ranks.rank_outside(tail, level) > 0:
        return ranks.bounds(ordered, tail, level)
    if sample.freedom < 1:
        return -math.inf, math.inf
    centre = statistics.median(ordered)
    reach = sample.sd_log / math.sqrt(sample.trials) * _student(level, sample.freedom)
    return centre - reach, centre + reach


def _implied_spread(
    low: float, high: float, tail: Sequence[float], level: float, sample: _Sample
) -> float:
    """The spread that the interval stands for: a stall counts as far as it widens the interval."""
    if sample.freedom < 1:
        return 0.0
    outside = ranks.rank_outside(tail, level)
    if outside == 0:
        return sample.sd_log
    achieved = 1 - 2 * tail[outside - 1]
    return (high - low) / 2 * math.sqrt(sample.trials) / _student(achieved, sample.freedom)


def _student(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return min(float(stdtrit(freedom, (1 + level) / 2)), _STUDENT_LIMIT)


def _method(*, exact: bool, paired: bool) -> str:
    test = "signed-rank test within blocks" if paired else "rank-sum test, not in blocks"
    if exact:
        return f"Hodges-Lehmann, interval and p by the exact {test}"
    return f"Hodges-Lehmann, p by the exact {test}; interval by Student's t (too few trials)"


def _exp(log_ratio: float) -> float:
    """Infinite, rather than an error, where a level is so high that nothing is excluded."""
    return math.exp(log_ratio) if log_ratio < _EXP_LIMIT else math.inf


def _log(value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"an effect is a ratio: {value:g} is not above 0")
    return math.log(value)
