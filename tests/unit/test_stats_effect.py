"""Effects: the estimate, its interval and p, held against scipy and against counting by hand."""

from __future__ import annotations

import math
import random
import statistics
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from pgdyno.stats import ranks
from pgdyno.stats.effect import estimate_effect, estimate_unpaired
from pgdyno.stats.multiplicity import holm

pytestmark = pytest.mark.unit

VALUES = st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=2, max_size=12)


def blocks(*values: float) -> dict[int, float]:
    return dict(enumerate(values, start=1))


@pytest.mark.parametrize("number", [1, 2, 5, 8])
def test_signed_ranks_are_counted_rightly(number: int) -> None:
    totals = [
        sum(rank for rank, positive in enumerate(signs, start=1) if positive)
        for signs in product((False, True), repeat=number)
    ]
    counted = [
        sum(total <= v for total in totals) / len(totals)
        for v in range(number * (number + 1) // 2 + 1)
    ]
    assert ranks.signed_rank_tail(number) == pytest.approx(counted)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 3), (2, 5), (4, 3)])
def test_rank_sums_are_counted_rightly(first: int, second: int) -> None:
    values = range(first + second)
    wins = [
        sum(a > b for a in chosen for b in values if b not in chosen)
        for chosen in combinations(values, first)
    ]
    counted = [sum(w <= u for w in wins) / len(wins) for u in range(first * second + 1)]
    assert ranks.rank_sum_tail(first, second) == pytest.approx(counted)


def test_many_trials_use_the_normal_distribution_without_a_step() -> None:
    def at(second: int, deviations: float) -> float:
        pairs = 100 * second
        place = pairs / 2 - deviations * math.sqrt(pairs * (101 + second) / 12)
        return ranks.rank_sum_tail(100, second)[round(place)]

    for deviations in (1.0, 2.0, 2.6):
        assert at(101, deviations) == pytest.approx(at(100, deviations), rel=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_p_is_that_of_scipy(seed: int) -> None:
    source = random.Random(seed)
    before = blocks(*(source.lognormvariate(5, 0.1) for _ in range(9)))
    after = blocks(*(source.lognormvariate(5.1, 0.1) for _ in range(9)))
    logs = [math.log(after[b] / before[b]) for b in before]
    paired = scipy_stats.wilcoxon(logs, method="exact").pvalue
    assert estimate_effect(before, after).p_value == pytest.approx(paired)
    unpaired = scipy_stats.mannwhitneyu(
        list(before.values()), list(after.values()), method="exact"
    ).pvalue
    effect = estimate_unpaired(list(before.values()), list(after.values()))
    assert effect.p_value == pytest.approx(unpaired)


def test_the_estimate_is_the_median_of_walsh_averages() -> None:
    # By hand: log₂ ratios 0, 1, 3; averages 0, ½, 1, 1½, 2, 3; median 1¼.
    effect = estimate_effect(blocks(1, 1, 1), blocks(1, 2, 8))
    assert effect.ratio == pytest.approx(2**1.25)


def test_six_blocks_give_an_exact_interval_from_lowest_to_highest() -> None:
    effect = estimate_effect(blocks(*[100] * 6), blocks(101, 102, 103, 104, 105, 106))
    assert (effect.low, effect.high) == pytest.approx((1.01, 1.06))
    assert effect.p_value == effect.smallest_p == 2 / 2**6
    assert "exact signed-rank" in effect.method


def test_three_blocks_cannot_decide_and_the_method_says_how_the_interval_was_made() -> None:
    effect = estimate_effect(blocks(100, 100, 100), blocks(104, 105, 106))
    assert effect.p_value == effect.smallest_p == 0.25
    assert "Student's t (too few trials)" in effect.method
    logs = [math.log(each) for each in (1.04, 1.05, 1.06)]
    reach = scipy_stats.t.ppf(0.975, 2) * statistics.stdev(logs) / math.sqrt(3)
    assert math.log(effect.high / effect.ratio) == pytest.approx(reach)
    assert effect.sd_log == pytest.approx(statistics.stdev(logs))


def test_one_block_says_nothing_but_the_ratio() -> None:
    effect = estimate_effect({1: 100.0}, {1: 110.0})
    assert (effect.low, effect.high, effect.p_value) == (0, math.inf, 1)
    assert effect.ratio == pytest.approx(1.1)


def test_blocks_without_both_do_not_count() -> None:
    effect = estimate_effect({1: 100.0, 2: 100.0, 4: 90.0}, {1: 110.0, 2: 110.0, 3: 5.0})
    assert effect.blocks == 2
    with pytest.raises(ValueError, match="no block holds"):
        estimate_effect({1: 1.0}, {2: 1.0})


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_value_that_has_no_ratio_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        estimate_effect({1: 1.0, 2: 2.0}, {1: value, 2: 2.0})


@given(VALUES, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_interval_and_p_never_disagree(pairs: list[tuple[float, float]], level: float) -> None:
    before, after = blocks(*(a for a, _ in pairs)), blocks(*(b for _, b in pairs))
    effects = [
        estimate_effect(before, after, level=level),
        estimate_unpaired(list(before.values()), list(after.values()), level=level),
    ]
    for effect in effects:
        assert effect.low <= effect.ratio <= effect.high
        if "Student" not in effect.method:
            assert (effect.p_value <= effect.alpha) == (effect.low > 1 or effect.high < 1)


@given(VALUES)
def test_exchanging_the_sides_inverts_the_effect(pairs: list[tuple[float, float]]) -> None:
    before, after = blocks(*(a for a, _ in pairs)), blocks(*(b for _, b in pairs))
    one, other = estimate_effect(before, after), estimate_effect(after, before)
    assert other.p_value == one.p_value
    assert other.ratio == pytest.approx(1 / one.ratio)
    assert other.low == pytest.approx(1 / one.high)


def test_a_stall_hardly_moves_the_estimate() -> None:
    before = [100 + n for n in range(10)]
    after = [1.03 * value for value in before]
    whole = estimate_effect(blocks(*before), blocks(*after))
    stalled = estimate_effect(blocks(*before), blocks(*after[:-1], after[-1] * 0.3))
    assert whole.ratio == pytest.approx(1.03)
    assert stalled.ratio == pytest.approx(1.03, abs=0.001)


def test_holm_by_hand_and_as_statsmodels_has_it() -> None:
    assert holm([]) == ()
    assert holm([0.03]) == (0.03,)
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    p_values = [0.2, 0.001, 0.9, 0.04, 0.04, 0.012, 0.7]
    expected = multipletests(p_values, method="holm")[1].tolist()
    assert holm(p_values) == pytest.approx(expected)
