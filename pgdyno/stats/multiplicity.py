"""Several comparisons at once: the more questions, the more answers by chance alone.

S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
Statistics 6 (2), 1979. The chance that any of the comparisons is called different when it is not
stays at α, whatever the comparisons have in common (here: the baseline).

>>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
[0.03, 0.06, 0.06]
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p values in the order given: to be held against α itself."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for step, at in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - step) * p_values[at]))
        adjusted[at] = reached
    return tuple(adjusted)
