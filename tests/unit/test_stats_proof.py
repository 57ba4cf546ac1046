"""The method keeps what it claims, counted on simulated experiments: the quick part of the proof.

Seeds are fixed, so a count never changes by itself; limits are what a method that keeps its claim
exceeds in one of a thousand such tests. `tests/slow/test_method_proof.py` counts more of it.
"""

from __future__ import annotations

import math
import statistics

import pytest
from scipy.stats import binom

from pgdyno.stats import power
from pgdyno.stats.scorecard import (
    Case,
    peeking,
    reaching_precision,
    score,
    stopping_early,
    unpaired,
)
from pgdyno.stats.simulator import NOISES, Noise, simulate

pytestmark = pytest.mark.unit


def at_most(share: float, experiments: int) -> float:
    """The highest share that is no surprise (one in a thousand) where `share` is the truth."""
    return float(binom.ppf(0.999, experiments, share)) / experiments


def at_least(share: float, experiments: int) -> float:
    return float(binom.ppf(0.001, experiments, share)) / experiments


@pytest.mark.parametrize("name", NOISES)
def test_identical_variants_are_called_different_at_most_as_claimed(name: str) -> None:
    found = score(Case(blocks=8, noise=NOISES[name]), experiments=400, seed=1)
    # Those whose interval leaves 1 out: more than are called different, some are equivalent.
    missed = found.experiments - found.covered
    assert found.differing <= missed <= 400 * at_most(0.05, 400)


@pytest.mark.parametrize("name", ["calm", "skewed", "all at once"])
def test_intervals_hold_a_planted_effect(name: str) -> None:
    found = score(Case(blocks=7, noise=NOISES[name], ratio=1.03), experiments=400, seed=2)
    assert found.coverage >= at_least(0.95, 400)


def test_three_per_cent_are_found_as_often_as_planned() -> None:
    blocks = power.trials_needed(0.02 * math.sqrt(2), 0.03)
    found = score(Case(blocks=blocks, ratio=1.03), experiments=600, seed=3)
    assert at_least(0.8, 600) <= found.share("better") <= 0.9
    assert found.share("worse") == 0


def test_what_matters_is_called_equivalent_at_most_as_claimed() -> None:
    case = Case(blocks=20, noise=NOISES["heavy tails"], ratio=1.02)
    assert score(case, experiments=300, seed=4).share("equivalent") <= at_most(0.05, 300)


def test_holm_keeps_the_rate_of_the_whole_family() -> None:
    case = Case(blocks=10, comparisons=4, matters=0.01)
    assert score(case, experiments=250, seed=5).false_rate <= at_most(0.05, 250)


def test_stopping_early_keeps_the_rate_and_saves_blocks() -> None:
    same = score(Case(blocks=15), experiments=200, seed=6, method=stopping_early)
    assert same.false_rate <= at_most(0.05, 200)
    slower = score(Case(blocks=15, ratio=1.05), experiments=50, seed=6, method=stopping_early)
    assert slower.share("better") > 0.95
    assert slower.blocks < 12


def test_the_interval_of_a_precision_that_was_reached_holds_the_truth() -> None:
    case = Case(blocks=15, ratio=1.03, matters=0.03)
    assert score(case, experiments=150, seed=7, method=reaching_precision).coverage >= at_least(
        0.95, 150
    )


def test_the_simulator_finds_methods_out_that_do_not_keep_their_level() -> None:
    peeked = score(Case(blocks=25, matters=0.005), experiments=100, seed=9, method=peeking)
    assert peeked.false_rate > at_most(0.05, 100)
    drifting = Case(blocks=10, noise=NOISES["drifting"], order="one after the other")
    assert score(drifting, experiments=50, seed=8, method=unpaired).false_rate > 0.9
    kept = score(
        Case(blocks=8, order="one after the other"), experiments=300, seed=8, method=unpaired
    )
    assert kept.coverage >= at_least(0.95, 300)


def test_simulated_noise_is_what_it_says() -> None:
    def logs(noise: Noise) -> list[float]:
        values = simulate(noise, {"a": 1.0}, blocks=20_000, seed=9)["a"].values()
        return [math.log(value / 1000) for value in values]

    for name in ("calm", "skewed", "autocorrelated"):
        assert statistics.stdev(logs(NOISES[name])) == pytest.approx(0.02, rel=0.1)
    series = logs(NOISES["autocorrelated"])
    assert statistics.correlation(series[1:], series[:-1]) == pytest.approx(0.7, abs=0.03)
    drifting = logs(NOISES["drifting"])
    assert drifting[-1] - drifting[0] == pytest.approx(-0.15, abs=0.08)
    stalled = sum(each < -0.2 for each in logs(NOISES["stalls"])) / 20_000
    assert stalled == pytest.approx(0.05, abs=0.006)


def test_a_seed_makes_the_same_experiment_again() -> None:
    made = [
        simulate(NOISES["all at once"], {"a": 1.0, "b": 1.1}, blocks=3, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert made[0] == made[1] != made[2]
