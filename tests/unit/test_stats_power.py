"""Power and looks: limits of exact tests, and boundaries held against published ones."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from pgdyno.stats import power, sequential
from pgdyno.stats.effect import estimate_effect
from pgdyno.stats.verdict import judge

pytestmark = pytest.mark.unit


def test_what_few_trials_can_reach() -> None:
    assert [power.smallest_p(n) for n in (0, 1, 2, 3, 6)] == [1, 1, 0.5, 0.25, 0.03125]
    assert power.smallest_p(3, paired=False) == pytest.approx(0.1)
    assert power.blocks_that_can_decide() == 6
    assert power.blocks_that_can_decide(paired=False) == 4
    assert power.blocks_that_can_decide(comparisons=10) == 9
    assert power.chance_to_find(0.001, 0.5, 5) == 0
    assert power.detectable(0.02, 5) == math.inf


def test_power_with_many_blocks_is_that_of_a_normal_shift() -> None:
    # Φ(shift − z): the textbook's formula, with the efficiency of ranks.
    shift = math.log1p(0.03) / 0.1 * math.sqrt(400 * 3 / math.pi)
    expected = float(norm.cdf(shift - norm.isf(0.025)))
    assert power.chance_to_find(0.1, 0.03, 400) == pytest.approx(expected, abs=0.005)


def test_trials_needed_and_detectable_are_inverse() -> None:
    needed = power.trials_needed(0.03, 0.03)
    assert power.chance_to_find(0.03, 0.03, needed) >= 0.8
    assert power.chance_to_find(0.03, 0.03, needed - 1) < 0.8
    assert power.detectable(0.03, needed) <= 0.03 < power.detectable(0.03, needed - 1)
    assert power.trials_needed(0.03, 0.03, comparisons=5) > needed
    assert power.trials_needed(0.0, 0.03) == 6
    assert power.trials_needed(10.0, 0.0001) == power.MOST_TRIALS


def test_boundaries_are_the_published_ones() -> None:
    # Five equal looks at 0.05, as printed for Lan-DeMets with O'Brien-Fleming type spending.
    alphas = sequential.nominal_alphas((1, 2, 3, 4, 5), 5, 0.05)
    boundaries = [float(norm.isf(alpha / 2)) for alpha in alphas]
    assert boundaries == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)


def test_one_look_spends_everything() -> None:
    assert sequential.nominal_alphas((10,), 10, 0.05)[0] == pytest.approx(0.05)


def test_looks_get_laxer_and_end_near_the_level() -> None:
    looks = sequential.planned_looks(20)
    levels = [looks.level(blocks) for blocks in range(looks.first, 21)]
    assert levels == sorted(levels, reverse=True)
    assert 0.95 < levels[-1] < 0.97
    assert looks.first == 6
    with pytest.raises(ValueError, match="no look is planned"):
        looks.level(5)


def test_a_look_widens_the_interval_and_knows_the_last_one() -> None:
    before = {block: 100.0 + block % 3 for block in range(12)}
    after = {block: value * (1.02 + 0.001 * block) for block, value in before.items()}
    looks = sequential.planned_looks(30)
    early = sequential.look(before, after, looks)
    assert early is not None
    plain = estimate_effect(before, after)
    assert early.low < plain.low < plain.high < early.high
    assert early.final_level == looks.level(30) < early.level
    assert sequential.look({1: 1.0}, {1: 1.0}, looks) is None
    assert judge(early, direction="higher", matters=0.02).adjusted_p == early.p_value


def test_a_very_early_look_excludes_nothing_and_stays_finite_where_it_counts() -> None:
    before = {block: 100.0 for block in range(6)}
    after = {block: 101.0 + block for block in range(6)}
    early = sequential.look(before, after, sequential.planned_looks(200))
    assert early is not None
    assert (early.low, early.high) == (0, math.inf)
    found = judge(early, direction="higher", matters=0.02)
    assert (found.kind, found.text) == ("undecided", "+3.5 %")
    assert found.more_trials is not None


def test_every_plan_that_is_offered_can_decide_at_its_last_look() -> None:
    for comparisons in (1, 2, 6, 25):
        fewest = sequential.planned_looks(100, comparisons=comparisons).first
        for most in range(fewest, fewest + 12):
            looks = sequential.planned_looks(most, comparisons=comparisons)
            assert power.smallest_p(most) <= 1 - looks.level(most)
