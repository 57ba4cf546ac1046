"""Steady state: simulated warm-ups whose end is known, asked once a second as a trial asks."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from pgdyno.stats.steady_state import FEWEST_KEPT, mser5, steadiness

pytestmark = pytest.mark.unit


def warmup(time_constant_s: float, *, sd: float, seed: int, seconds: int = 180) -> list[float]:
    """Throughput that approaches 1000 from 500, with noise."""
    source = random.Random(seed)
    return [
        1000 * (1 - 0.5 * math.exp(-second / time_constant_s)) * math.exp(source.gauss(0, sd))
        for second in range(seconds)
    ]


def told_at(values: list[float]) -> int | None:
    """The second at which the warm-up is called over."""
    return next((n for n in range(1, len(values) + 1) if steadiness(values[:n]).is_steady), None)


def test_mser_cuts_a_step_where_it_is() -> None:
    source = random.Random(1)
    values = [600 + source.gauss(0, 10) for _ in range(20)]
    values += [1000 + source.gauss(0, 10) for _ in range(60)]
    assert mser5(values) == 20
    assert mser5(values[:10]) == 0


def test_a_warm_up_ends_when_next_to_nothing_of_it_is_left() -> None:
    ends = [told_at(warmup(10, sd=0.02, seed=seed)) for seed in range(8)]
    assert None not in ends
    left = [0.5 * math.exp(-(end or 0) / 10) for end in ends]
    assert statistics.median(left) < 0.01
    assert max(end or 0 for end in ends) <= 90


def test_what_was_steady_from_the_start_is_called_so_at_once() -> None:
    ends = [told_at(warmup(1e-3, sd=0.02, seed=seed)) for seed in range(8)]
    assert statistics.median(end or math.inf for end in ends) <= FEWEST_KEPT + 5


def test_a_trend_is_never_steady_and_named() -> None:
    rising = [1000 * 1.005**second for second in range(120)]
    assert told_at(rising) is None
    assert steadiness(rising).reason.startswith("rising by ")
    assert steadiness(rising[::-1]).reason.startswith("falling by ")


def test_noise_that_may_hide_a_trend_is_said() -> None:
    source = random.Random(4)
    noisy = [max(1.0, source.gauss(1000, 400)) for _ in range(25)]
    found = steadiness(noisy)
    assert not found.is_steady
    assert found.reason.startswith("the noise may hide a trend of ")


def test_degenerate_series() -> None:
    assert not steadiness([]).is_steady
    assert steadiness([1000.0] * 10).reason == f"10 of at least {FEWEST_KEPT} values"
    assert steadiness([1000.0] * 30).is_steady
    stuck = steadiness([0.0] * 30 + [5.0] * 3)
    assert not stuck.is_steady


def test_an_hour_is_looked_at_in_no_time() -> None:
    values = warmup(60, sd=0.03, seed=2, seconds=3600)
    found = steadiness(values)
    assert found.is_steady
    assert 100 <= found.warmup_values <= 600
