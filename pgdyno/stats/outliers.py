"""Values that lie far from the others of their variant: flagged by a stated rule, never dropped.

The rule is the modified z score of B. Iglewicz and D. C. Hoaglin ("How to Detect and Handle
Outliers", 1993): distance from the median in units of the median absolute deviation, 0.6745 · |x −
median| / MAD > 3.5, on logarithms where all values are above 0. The method needs no removal: the
estimate and the test use ranks, where one odd trial weighs no more than any other.

>>> [outlier.index for outlier in find_outliers([100, 101, 99, 102, 60, 100, 98])]
[4]
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LIMIT: Final = 3.5
FEWEST: Final = 6
"""Of fewer values none can be called far from the others: the median deviation is too rough."""
_TO_DEVIATION: Final = 0.6745


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """One flagged value: where it stands in the sequence, and its ratio to the median.

    `score` is the modified z score, negative below the median; infinite where more than half of
    the values are equal and this one is not.
    """

    index: int
    value: float
    ratio_to_median: float
    score: float


def find_outliers(values: Sequence[float]) -> tuple[Outlier, ...]:
    """The values of one variant that the rule flags, in order; none of fewer than `FEWEST`."""
    if len(values) < FEWEST:
        return ()
    logarithmic = all(value > 0 for value in values)
    scaled = [math.log(value) for value in values] if logarithmic else list(values)
    centre, middle = statistics.median(scaled), statistics.median(values)
    deviation = statistics.median(abs(each - centre) for each in scaled)
    found = []
    for index, each in enumerate(scaled):
        score = _score(each - centre, deviation)
        if abs(score) > LIMIT:
            ratio = values[index] / middle if middle else math.inf
            found.append(
                Outlier(index=index, value=values[index], ratio_to_median=ratio, score=score)
            )
    return tuple(found)


def _score(distance: float, deviation: float) -> float:
    if deviation > 0:
        return _TO_DEVIATION * distance / deviation
    return math.copysign(math.inf, distance) if distance else 0.0
