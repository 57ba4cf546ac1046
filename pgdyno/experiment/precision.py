"""Whether an experiment knows its effects well enough to stop. Pure.

Judged in the first response only: a p99 is rarely known as well as a throughput, and the first is
the one that the question is about. It is asked after every block, so the intervals are those of
`stats.sequential`, which stay true however often one looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.model import Experiment, Variant
from pgdyno.stats.sequential import look, planned_looks

ALPHA = 0.05


def compared_variants(experiment: Experiment) -> tuple[Variant, ...]:
    """The variants that are held against the baseline; its copy only where there is nothing else.

    None at all where nothing is judged.
    """
    if not experiment.responses:
        return ()
    others = [each for each in experiment.variants if each.name != experiment.baseline]
    own = tuple(each for each in others if each.copy_of is None)
    return own or tuple(others)


def comparisons(experiment: Experiment) -> int:
    """How many questions are asked at once: every compared variant, in every response."""
    return len(compared_variants(experiment)) * len(experiment.responses)


def half_widths(
    experiment: Experiment, values: Mapping[str, Mapping[int, float]]
) -> dict[str, float | None]:
    """Variant → half the width of its effect's interval now; None before the first look.

    `values`: variant → block → value of the first response.
    """
    most = experiment.stopping.max_replicates or 1
    looks = planned_looks(most, alpha=ALPHA, comparisons=max(1, comparisons(experiment)))
    baseline = values.get(experiment.baseline or "", {})
    widths: dict[str, float | None] = {}
    for variant in compared_variants(experiment):
        try:
            effect = look(baseline, values.get(variant.name, {}), looks)
        except ValueError:
            effect = None  # A value that is not above 0 has no ratio.
        widths[variant.name] = None if effect is None else effect.half_width
    return widths


def is_reached(widths: Sequence[float | None], precision: float) -> bool:
    """Whether every effect is known to within `precision`."""
    return all(width is not None and width <= precision for width in widths)
