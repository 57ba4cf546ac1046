"""Percentiles from histogram logs: vectors shared with the engine, merging, half-written logs."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.stats.percentiles import (
    EMPTY,
    Distribution,
    Layout,
    distributions_by_tag,
    merge,
    read_log,
)

pytestmark = pytest.mark.unit

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "golden" / "percentiles.json").read_text()
)["cases"]
counts_of_values = st.dictionaries(
    st.integers(min_value=0, max_value=3_600_000_000_000),
    st.integers(min_value=1, max_value=10_000),
    min_size=1,
    max_size=50,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_engine_and_lab_agree_on_logged_histograms(case: dict[str, Any]) -> None:
    found = distributions_by_tag(case["log"])
    assert list(found) == ["a", "other"]
    assert found["a"].count == case["count"]
    assert [[q, found["a"].value_at(q)] for q, _ in case["quantiles"]] == case["quantiles"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_values_counted_here_give_the_same_percentiles(case: dict[str, Any]) -> None:
    merged = merge(Distribution.of(dict(i), digits=case["digits"]) for i in case["intervals"])
    assert [[q, merged.value_at(q)] for q, _ in case["quantiles"]] == case["quantiles"]


def test_a_percentile_is_not_the_mean_of_percentiles() -> None:
    quiet, stalled = Distribution.of({100: 990}), Distribution.of({100: 1, 1_000_000: 9})
    assert merge([quiet, stalled]).value_at(0.99) == 100
    assert (quiet.value_at(0.99) + stalled.value_at(0.99)) / 2 > 500_000


@given(counts_of_values, st.floats(min_value=0, max_value=1))
def test_percentile_is_the_nearest_rank_within_a_bucket(
    counts: dict[int, int], quantile: float
) -> None:
    values = sorted(value for value, count in counts.items() for _ in range(count))
    expected = values[max(1, math.ceil(quantile * len(values))) - 1]
    found = Distribution.of(counts).value_at(quantile)
    if quantile == 0.0:
        assert found <= expected <= found * 1.001 + 1
    else:
        assert expected <= found <= expected * 1.001 + 1


@given(counts_of_values, counts_of_values)
def test_merging_adds_counts(one: dict[int, int], other: dict[int, int]) -> None:
    both = {value: one.get(value, 0) + other.get(value, 0) for value in {*one, *other}}
    assert merge([Distribution.of(one), Distribution.of(other)]) == Distribution.of(both)


@given(st.integers(min_value=0, max_value=2**50), st.integers(min_value=1, max_value=5))
def test_a_value_lies_in_its_bucket(value: int, digits: int) -> None:
    layout = Layout.of_digits(digits)
    index = layout.index(value)
    assert layout.lowest(index) <= value <= layout.highest(index)
    assert layout.highest(index) + 1 == layout.lowest(index + 1)


def test_histograms_of_different_precision_are_not_merged() -> None:
    with pytest.raises(ValueError, match="different precision"):
        merge([Distribution.of({1: 1}, digits=2), Distribution.of({1: 1}, digits=3)])


def test_nothing_recorded() -> None:
    assert merge([]) == EMPTY
    assert (EMPTY.count, EMPTY.value_at(0.99), EMPTY.points(), EMPTY.bins()) == (0, 0, (), ())


def test_a_quantile_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        EMPTY.value_at(99.0)


def test_bins_hold_every_value_on_a_logarithmic_axis() -> None:
    bins = Distribution.of({1_000: 5, 150_000: 7, 99_000_000: 1}).bins(per_decade=10)
    assert sum(one.count for one in bins) == 13
    assert [one.count for one in bins if one.count] == [5, 7, 1]
    assert all(one.high / one.low == pytest.approx(10**0.1) for one in bins)
    assert all(a.high == pytest.approx(b.low) for a, b in pairwise(bins))


def test_points_rise_to_the_last_value() -> None:
    points = Distribution.of(dict.fromkeys(range(1000, 101_000), 1)).points()
    assert points[0].quantile == 0.0
    assert points[-1].quantile == 1.0
    assert points[-2].quantile > 0.9999
    assert [point.value for point in points] == sorted(point.value for point in points)
    assert points[-1].value >= 100_999


def test_intervals_keep_their_times_and_a_half_line_is_dropped() -> None:
    log = next(case for case in CASES if case["name"].startswith("three intervals"))["log"]
    intervals = list(read_log(log, tags={"a"}))
    assert [(one.begin_s, one.length_s) for one in intervals] == [(0, 1), (1, 1), (2, 1)]
    torn = log[: log.rindex("Tag=a") + 200]
    assert len(list(read_log(torn, tags={"a"}))) == 2


def test_a_damaged_line_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 of the histogram log"):
        list(read_log("#comment\nTag=a,0.000,1.000,1.000,HISTFAAAABx4nJNpmSzM\n"))
