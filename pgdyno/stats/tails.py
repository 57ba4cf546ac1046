"""Whether a percentile is worth a number: how many transactions lie beyond it.

With k values beyond, the share that truly lies beyond is known to about ± 2/√k of itself. At
k = 10 a "p99.9" is anything from p99.82 to p99.95 (Poisson limits 4.8 to 18.4 for 10 at 95 %),
with fewer it is the name of one or two transactions. The rule counts transactions as if they were
independent; a stall hits many clients at once, so this is the least to ask for.

>>> transactions_needed(0.999), is_known(0.999, 9_000), refusal(0.999, 20_000)
(10000, False, None)
>>> refusal(0.999, 9_000)
'p99.9 needs 10000 transactions, so that 10 lie beyond it; there are 9000'
"""

from __future__ import annotations

import math
from typing import Final

BEYOND_NEEDED: Final = 10


def transactions_needed(quantile: float) -> int:
    """The fewest transactions of which `BEYOND_NEEDED` lie beyond a quantile in [0, 1)."""
    if not 0 <= quantile < 1:
        raise ValueError(f"nothing lies beyond quantile {quantile:g}")
    return math.ceil(round(BEYOND_NEEDED / (1 - quantile), 6))


def is_known(quantile: float, transactions: int) -> bool:
    """Whether so many transactions carry this percentile."""
    return transactions >= transactions_needed(quantile)


def refusal(quantile: float, transactions: int) -> str | None:
    """Why this percentile is not given; None where it is."""
    if is_known(quantile, transactions):
        return None
    return (
        f"p{100 * quantile:g} needs {transactions_needed(quantile)} transactions, so that"
        f" {BEYOND_NEEDED} lie beyond it; there are {transactions}"
    )
