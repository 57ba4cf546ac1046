"""Where a warm-up ends: the part of a series that would bias its mean, and whether it is over.

The cut is MSER-5 (K. P. White, "An Effective Truncation Heuristic for Bias Reduction in Simulation
Output", Simulation 69 (6), 1997; K. P. White, M. J. Cobb, S. C. Spratt, 2000): of the means of five
values each, drop as many at the beginning as make the standard error of the rest the smallest.

MSER is made for a series that is complete. Asked every second whether the warm-up is over, it says
yes in the first lull of the noise. So what it keeps must also be long enough and show no trend:
P. K. Sen's slope (1968) times its length is within ± `HIDDEN_TREND` at 80 %, and either no trend is
shown (Kendall's τ against time, H. B. Mann, 1945) or it is smaller than `SMALL_TREND`. MSER's usual
rule, "a cut in the second half means too little data", is not used: where trends are looked for
it only waits longer, twice the warm-up at the least. What is not seen: cycles longer than the
series, as of checkpoints.

>>> settled = [50, 70, 80, 90, 95] + [100, 101, 99, 100, 102] * 5
>>> mser5(settled), steadiness(settled).is_steady
(5, True)
>>> steadiness([float(second) for second in range(100, 160)]).reason
'rising by 12.7 % over the last 20 values'
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BATCH: Final = 5
FEWEST_KEPT: Final = 4 * BATCH
"""Fewer values than that after the cut say too little about a trend."""
SMALL_TREND: Final = 0.01
"""A relative change from end to end of what is kept that does no harm."""
HIDDEN_TREND: Final = 0.05
"""As much may the noise hide; a noisier series has to be longer."""
TREND_ALPHA: Final = 0.05
HIDDEN_LEVEL: Final = 0.8
MOST_LOOKED_AT: Final = 300
"""Longer series are looked at as so many means of neighbours, to answer at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """Whether a series has settled; `warmup_values` of its beginning belong to the warm-up.

    `reason` says why it is called steady or not, as a part of a sentence.
    """

    is_steady: bool
    warmup_values: int
    reason: str


def mser5(values: Sequence[float]) -> int:
    """How many values of the beginning to drop: a multiple of five that leaves `FEWEST_KEPT`.

    0 for a series that is too short to leave them.
    """
    batches = len(values) // BATCH
    means = [statistics.fmean(values[BATCH * at : BATCH * (at + 1)]) for at in range(batches)]
    best, best_error = 0, math.inf
    total = squares = 0.0
    # From the end backwards, so that each cut adds one batch to the sums of what is kept.
    for cut in range(len(means) - 1, -1, -1):
        total += means[cut] - means[-1]
        squares += (means[cut] - means[-1]) ** 2
        kept = len(means) - cut
        error = (squares - total * total / kept) / kept**2
        if kept >= FEWEST_KEPT // BATCH and error <= best_error:
            best, best_error = cut, error
    return best * BATCH


def steadiness(values: Sequence[float]) -> Steadiness:
    """Whether a series (one value a second, from the start of the load) has settled.

    Made to be asked after every value; takes milliseconds.
    """
    if len(values) < FEWEST_KEPT:
        return _unsteady(values, f"{len(values)} of at least {FEWEST_KEPT} values")
    cut = mser5(values)
    kept = values[cut:]
    reason = _trend(_thinned(kept), f"over the last {len(kept)} values")
    if reason is not None:
        return _unsteady(values, reason)
    return Steadiness(
        is_steady=True, warmup_values=cut, reason=f"no trend in the last {len(kept)} values"
    )


def _trend(values: Sequence[float], where: str) -> str | None:
    """What trend there is or may be; None where there is none that matters."""
    from scipy.stats import kendalltau, theilslopes

    if min(values) == max(values):
        return None
    level = statistics.median(values)
    if level <= 0:
        return f"nothing done in half of the time {where}"
    times = range(len(values))
    slopes = theilslopes(values, times, HIDDEN_LEVEL)
    change, low, high = (
        float(slope) * (len(values) - 1) / level
        for slope in (slopes.slope, slopes.low_slope, slopes.high_slope)
    )
    if abs(change) >= SMALL_TREND and kendalltau(times, values).pvalue <= TREND_ALPHA:
        return f"{'rising' if change > 0 else 'falling'} by {100 * abs(change):.1f} % {where}"
    hidden = max(abs(low), abs(high))
    if hidden > HIDDEN_TREND:
        return f"the noise may hide a trend of {100 * hidden:.0f} % {where}"
    return None


def _unsteady(values: Sequence[float], reason: str) -> Steadiness:
    return Steadiness(is_steady=False, warmup_values=len(values), reason=reason)


def _thinned(values: Sequence[float]) -> Sequence[float]:
    size = math.ceil(len(values) / MOST_LOOKED_AT)
    return [statistics.fmean(values[at : at + size]) for at in range(0, len(values), size)]
