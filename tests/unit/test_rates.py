"""Counters to rates, jiffies to shares, averages and maxima."""

from __future__ import annotations

import pytest

from pgdyno.stats.rates import (
    Spread,
    Value,
    cpu_shares,
    cpu_spread,
    growth,
    rate_spread,
    rates,
    select,
    spread,
    total_growth,
    within,
)

pytestmark = pytest.mark.unit

SECOND_NS = 1_000_000_000


def counted(*values: Value) -> list[dict[str, Value]]:
    return [{"monotonic_ns": s * SECOND_NS, "reads": v} for s, v in enumerate(values)]


def cpu(
    second: int, jiffies: tuple[int, int, int, int, int], name: str = "all"
) -> dict[str, Value]:
    user, system, wait, steal, idle = jiffies
    return {
        "monotonic_ns": second * SECOND_NS, "cpu": name, "user_jiffies": user,
        "sys_jiffies": system, "wait_jiffies": wait, "steal_jiffies": steal, "idle_jiffies": idle,
    }  # fmt: skip


def test_a_reset_counter_has_no_rate_for_that_interval() -> None:
    assert [rate.per_s for rate in rates(counted(10, 30, 5, 15), "reads")] == [20, None, 10]


def test_a_missing_value_has_no_rate() -> None:
    assert [rate.per_s for rate in rates(counted(None, 10, 30), "reads")] == [None, 20]
    assert rates(counted(1), "reads") == ()


def test_rates_take_the_true_distance_of_samples() -> None:
    rows: list[dict[str, Value]] = [
        {"monotonic_ns": 0, "reads": 0}, {"monotonic_ns": 2 * SECOND_NS, "reads": 10},
        {"monotonic_ns": 2 * SECOND_NS, "reads": 10},
        {"monotonic_ns": 2 * SECOND_NS + SECOND_NS // 2, "reads": 20},
    ]  # fmt: skip
    assert [rate.per_s for rate in rates(rows, "reads")] == [5, 20]
    assert rate_spread(rates(rows, "reads")) == Spread(average=8.0, maximum=20.0)


def test_growth_over_all_samples_is_unknown_after_a_reset() -> None:
    assert total_growth(counted(10, 30, 70), "reads") == 60
    assert total_growth(counted(10, 30, 5), "reads") is None
    assert total_growth(counted(10), "reads") is None
    assert growth(1, None) is None


def test_cpu_shares_add_up_and_a_taken_back_jiffy_counts_as_none() -> None:
    rows = [cpu(0, (0, 0, 10, 0, 0)), cpu(1, (120, 40, 9, 0, 40)), cpu(1, (120, 40, 9, 0, 40))]
    (share,) = cpu_shares(rows)
    assert (share.user, share.sys, share.wait, share.steal, share.idle) == (0.6, 0.2, 0, 0, 0.2)
    assert share.busy == pytest.approx(0.8)


def test_cpu_summary_has_average_maximum_and_their_ratio() -> None:
    rows = [
        cpu(0, (0, 0, 0, 0, 0)), cpu(1, (50, 10, 0, 0, 40)), cpu(2, (80, 30, 0, 0, 90)),
        cpu(2, (0, 0, 0, 0, 0), name="0"),
    ]  # fmt: skip
    found = cpu_spread(cpu_shares(select(rows, "cpu", "all")))
    assert found["user"] == Spread(average=pytest.approx(0.40), maximum=pytest.approx(0.5))
    assert found["user"].maximum_to_average == pytest.approx(1.25)
    assert found["wait"].maximum_to_average is None
    assert found["busy"].average == pytest.approx(0.55)
    assert sum(found[kind].average for kind in ("user", "sys", "wait", "steal", "idle")) == (
        pytest.approx(1)
    )


def test_rows_that_cover_a_time() -> None:
    rows = counted(0, 1, 2, 3, 4, 5)
    covering = within(rows, int(1.5 * SECOND_NS), int(3.2 * SECOND_NS))
    assert [row["reads"] for row in covering] == [1, 2, 3, 4]
    assert within(rows, -5, 99 * SECOND_NS) == rows
    assert within([], 0, 1) == []


def test_no_values_have_no_spread() -> None:
    assert spread([], []) is None
    assert rate_spread(rates(counted(5, 1), "reads")) is None
