"""What comes next: pure functions from the trials so far to the next one, or to a stop.

A policy never looks at a clock or a disk; the runner asks it again after every trial, so that an
experiment which was killed continues where its stored trials end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgdyno.model import Experiment, Trial, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The next trial to run. `number` counts from 1 over the whole experiment."""

    number: int
    variant: Variant
    replicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Nothing is left to run."""

    reason: str


Policy = Callable[[Experiment, Sequence[Trial]], Next | Stop]


def fixed(experiment: Experiment, done: Sequence[Trial]) -> Next | Stop:
    """Every variant `replicates` times, in randomised blocks: each block holds every variant once.

    Blocks make a drift of the machine hit every variant alike (R. A. Fisher, The Design of
    Experiments, 1935); the order within a block comes from `order_seed`, so it can be repeated.
    """
    order = block_order(experiment)
    number = len(done) + 1
    if number > len(order):
        return Stop(reason=f"all {len(order)} trials are done")
    name, replicate = order[number - 1]
    variant = next(each for each in experiment.variants if each.name == name)
    return Next(number=number, variant=variant, replicate=replicate)


def block_order(experiment: Experiment) -> list[tuple[str, int]]:
    """(variant, replicate) of every trial in the order `fixed` runs them."""
    source = random.Random(experiment.order_seed)
    order: list[tuple[str, int]] = []
    for replicate in range(1, experiment.stopping.replicates + 1):
        block = [variant.name for variant in experiment.variants]
        source.shuffle(block)
        order.extend((name, replicate) for name in block)
    return order
