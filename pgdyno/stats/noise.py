"""How much two identical variants differ: the noise floor of a machine on a day.

An A/A experiment runs the baseline twice in each block, as two variants. Whatever differs is noise,
and nothing smaller than that can be shown by as many blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.stats import power
from pgdyno.stats.effect import Effect, estimate_effect


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """`floor` is the smallest relative difference that the A/A experiment cannot exclude.

    It is the farther end of the interval (0.012: 1.2 %), infinite with a single block.
    `detectable` is the smallest difference that as many blocks find at a power of 0.8; infinite
    where they cannot decide. `sd_log` is the spread of one block's log ratio.
    """

    floor: float
    detectable: float
    sd_log: float
    blocks: int
    effect: Effect

    @property
    def suspicious(self) -> bool:
        """Whether two identical variants differ by more than chance: then something is wrong.

        By chance alone it happens in 1 − level of all A/A experiments.
        """
        return self.effect.p_value <= self.effect.alpha

    def detectable_with(self, blocks: int, *, comparisons: int = 1) -> float:
        """The smallest difference that `blocks` blocks find at a power of 0.8."""
        return power.detectable(
            self.sd_log, blocks, alpha=self.effect.alpha, comparisons=comparisons
        )


def noise_floor(
    first: Mapping[int, float], second: Mapping[int, float], *, level: float = 0.95
) -> NoiseFloor:
    """The noise floor from block → value of two identical variants; `ValueError` as for effects."""
    effect = estimate_effect(first, second, level=level)
    farther = max(effect.high, 1 / effect.low if effect.low > 0 else math.inf)
    return NoiseFloor(
        floor=farther - 1,
        detectable=power.detectable(effect.sd_log, effect.blocks, alpha=effect.alpha)
        if effect.blocks > 1
        else math.inf,
        sd_log=effect.sd_log,
        blocks=effect.blocks,
        effect=effect,
    )
