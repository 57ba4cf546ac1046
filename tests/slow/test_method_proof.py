"""The proof of the method at length: every noise, from the fewest blocks to many, thousands each.

What is counted here stands as tables in docs/method.md (`tools/method_table.py`).
"""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from pgdyno.stats import power
from pgdyno.stats.scorecard import (
    Case,
    reaching_precision,
    score,
    stopping_early,
    unpaired,
)
from pgdyno.stats.simulator import NOISES, Noise, Tails

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EXPERIMENTS = 2000


def at_most(share: float, experiments: int) -> float:
    return float(binom.ppf(0.999, experiments, share)) / experiments


def at_least(share: float, experiments: int) -> float:
    return float(binom.ppf(0.001, experiments, share)) / experiments


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("blocks", [6, 7, 10, 20])
def test_level_and_coverage(name: str, blocks: int) -> None:
    same = score(
        Case(blocks=blocks, noise=NOISES[name], matters=0.001), experiments=EXPERIMENTS, seed=11
    )
    assert same.false_rate <= at_most(0.05, EXPERIMENTS)
    assert same.coverage >= at_least(0.95, EXPERIMENTS)
    other = score(
        Case(blocks=blocks, noise=NOISES[name], ratio=1.03), experiments=EXPERIMENTS, seed=12
    )
    assert other.coverage >= at_least(0.95, EXPERIMENTS)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("blocks", [5, 6, 12])
@pytest.mark.parametrize("ratio", [1.02, 1 / 1.02])
def test_equivalence(name: str, blocks: int, ratio: float) -> None:
    edge = score(
        Case(blocks=blocks, noise=NOISES[name], ratio=ratio), experiments=EXPERIMENTS, seed=13
    )
    assert edge.share("equivalent") <= at_most(0.05, EXPERIMENTS)


@pytest.mark.parametrize("sd_log", [0.005, 0.01, 0.02, 0.03, 0.05])
@pytest.mark.parametrize("tails", ["normal", "student t3"])
def test_power_is_at_least_what_a_plan_promises(sd_log: float, tails: Tails) -> None:
    needed = power.trials_needed(sd_log * math.sqrt(2), 0.03)
    case = Case(blocks=needed, noise=Noise(sd_log=sd_log, tails=tails), ratio=1.03)
    found = score(case, experiments=EXPERIMENTS, seed=14)
    assert found.share("better") >= at_least(0.8, EXPERIMENTS)


@pytest.mark.parametrize("most", [10, 25])
@pytest.mark.parametrize("name", ["calm", "stalls", "all at once"])
def test_stopping_early_keeps_level_and_coverage(most: int, name: str) -> None:
    case = Case(blocks=most, noise=NOISES[name], matters=0.005)
    found = score(case, experiments=1000, seed=15, method=stopping_early)
    assert found.false_rate <= at_most(0.05, 1000)
    assert found.coverage >= at_least(0.95, 1000)


@pytest.mark.parametrize("name", ["calm", "stalls", "all at once"])
def test_stopping_at_a_precision_keeps_coverage(name: str) -> None:
    case = Case(blocks=30, noise=NOISES[name], ratio=1.03, matters=0.03)
    found = score(case, experiments=1000, seed=16, method=reaching_precision)
    assert found.coverage >= at_least(0.95, 1000)


@pytest.mark.parametrize("comparisons", [2, 5, 10])
def test_a_family_of_comparisons_keeps_its_level(comparisons: int) -> None:
    case = Case(blocks=12, noise=NOISES["stalls"], comparisons=comparisons, matters=0.001)
    found = score(case, experiments=1000, seed=17)
    assert found.false_rate <= at_most(0.05, 1000)


@pytest.mark.parametrize("name", ["calm", "heavy tails", "skewed", "stalls"])
def test_unpaired_trials_keep_their_level_where_they_are_independent(name: str) -> None:
    case = Case(blocks=8, noise=NOISES[name], matters=0.001, order="one after the other")
    found = score(case, experiments=EXPERIMENTS, seed=18, method=unpaired)
    assert found.false_rate <= at_most(0.05, EXPERIMENTS)
