"""Verdicts: every row of the table in `verdict`, with the sentences and numbers beside them."""

from __future__ import annotations

from typing import Literal

import pytest

from pgdyno.stats.effect import Effect, estimate_effect
from pgdyno.stats.noise import noise_floor
from pgdyno.stats.outliers import find_outliers
from pgdyno.stats.tails import is_known, refusal, transactions_needed
from pgdyno.stats.verdict import Verdict, judge

pytestmark = pytest.mark.unit

NARROW = (-0.004, -0.003, -0.002, -0.001, 0.0, 0.001, 0.002, 0.003, 0.004)
"""Noise of nine blocks, relative."""


def effect(change: float, *, noise: tuple[float, ...] = NARROW) -> Effect:
    """An effect of `change` with some noise in every block."""
    return estimate_effect(
        {block: 100.0 for block in range(len(noise))},
        {block: 100.0 * (1 + change + each) for block, each in enumerate(noise)},
    )


def verdict(change: float, direction: Literal["higher", "lower"] = "higher") -> Verdict:
    return judge(effect(change), direction=direction, matters=0.02)


def test_better_and_worse_follow_the_direction() -> None:
    assert verdict(0.05).kind == verdict(-0.05, "lower").kind == "better"
    assert verdict(-0.05).kind == verdict(0.05, "lower").kind == "worse"
    assert verdict(0.05).reason == (
        "more than the baseline (p = 0.0039), by more than the 2 % that matters"
    )
    assert verdict(0.021).reason.endswith("which may still be smaller than the 2 % that matters")


def test_a_difference_too_small_to_matter_is_equivalent_and_said_to_be_there() -> None:
    found = verdict(0.01)
    assert found.effect.p_value < 0.05
    assert found.kind == "equivalent"
    assert found.reason == "there is a difference (p = 0.0039), smaller than the 2 % that matters"


def test_no_difference_shown_and_none_that_matters_possible_is_equivalent() -> None:
    found = verdict(0.0)
    assert found.kind == "equivalent"
    assert found.reason == "any difference is smaller than the 2 % that matters"
    assert found.more_trials is None


def test_wide_intervals_are_undecided_with_what_would_decide() -> None:
    wide = tuple(10 * each for each in NARROW)
    found = judge(effect(0.0, noise=wide), direction="higher", matters=0.02)
    assert found.kind == "undecided"
    assert found.more_trials is not None
    assert found.reason.endswith(f"about {found.more_trials} more trials of each would decide")
    # What seems large is shown sooner, if it is as large as it seems.
    wider = tuple(30 * each for each in NARROW)
    seen = judge(effect(0.06, noise=wider), direction="higher", matters=0.02)
    whatever = judge(effect(0.0, noise=wider), direction="higher", matters=0.02)
    assert seen.kind == whatever.kind == "undecided"
    assert (seen.more_trials or 0) < (whatever.more_trials or 0)
    assert seen.reason.endswith("would decide, were the difference as large as it seems")
    # Half the difference that matters needs about four times the blocks.
    finer = judge(effect(0.0, noise=wide), direction="higher", matters=0.01).more_trials
    assert finer is not None
    assert (finer + 9) / (found.more_trials + 9) == pytest.approx(4, rel=0.15)


def test_too_few_blocks_decide_nothing_however_clear_they_look() -> None:
    three = effect(0.05, noise=NARROW[:3])
    found = judge(three, direction="higher", matters=0.02)
    assert three.low > 1.03
    assert found.kind == "undecided"
    assert found.reason.startswith("3 blocks cannot decide: p is 0.25 at best")
    assert found.more_trials == 3
    assert judge(effect(0.0, noise=NARROW[:4]), direction="higher", matters=0.5).kind == "undecided"


def test_one_block_knows_no_interval_and_no_number_of_trials() -> None:
    found = judge(effect(0.05, noise=(0.0,)), direction="higher", matters=0.02)
    assert (found.kind, found.more_trials, found.text) == ("undecided", None, "+5.0 %")


def test_what_holm_took_away_is_said() -> None:
    found = judge(effect(0.05), direction="higher", matters=0.02, adjusted_p=0.08, comparisons=20)
    assert found.kind == "undecided"
    assert "once all comparisons are allowed for (p = 0.08)" in found.reason


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.0503, "+5.0 % [4.8, 5.3]"),
        (-0.0503, "−5.0 % [−5.3, −4.8]"),
        (-0.0003, "+0.0 % [−0.3, 0.2]"),
        (4.0, "×5.00 [5.00, 5.00]"),
    ],
)
def test_the_text_of_an_effect(change: float, text: str) -> None:
    assert judge(effect(change), direction="higher", matters=0.02).text == text


def test_noise_floor_is_the_farther_end_of_an_aa_interval() -> None:
    first = {block: 100.0 for block in range(9)}
    second = {block: 100.0 * (1 + each) for block, each in enumerate(NARROW)}
    floor = noise_floor(first, second)
    assert floor.floor == pytest.approx(max(floor.effect.high, 1 / floor.effect.low) - 1)
    assert floor.floor == pytest.approx(0.003, abs=0.0005)
    assert not floor.suspicious
    assert floor.detectable_with(36) == pytest.approx(floor.detectable / 2, rel=0.15)
    assert noise_floor(first, {block: 101.0 for block in first}).suspicious


def test_noise_floor_of_one_block_is_unknown() -> None:
    floor = noise_floor({1: 100.0}, {1: 101.0})
    assert floor.floor == floor.detectable == float("inf")


def test_outliers_are_flagged_in_both_directions_and_kept_apart_from_few_values() -> None:
    values = [100.0, 101, 99, 102, 60, 100, 98, 170]
    assert [(each.index, each.score > 0) for each in find_outliers(values)] == [
        (4, False), (7, True),
    ]  # fmt: skip
    assert find_outliers(values)[0].ratio_to_median == pytest.approx(0.6)
    assert find_outliers([100.0, 100, 100, 1, 100]) == ()
    assert [each.index for each in find_outliers([0.0, 0, 0, 0, 0, 3])] == [5]


def test_percentiles_need_ten_transactions_beyond() -> None:
    assert [transactions_needed(q) for q in (0.5, 0.99, 0.999, 0.9999)] == [20, 1000, 10000, 100000]
    assert is_known(0.999, 10_000)
    assert not is_known(0.999, 9_999)
    assert refusal(0.99, 500) == (
        "p99 needs 1000 transactions, so that 10 lie beyond it; there are 500"
    )
    with pytest.raises(ValueError, match="nothing lies beyond"):
        transactions_needed(1.0)
