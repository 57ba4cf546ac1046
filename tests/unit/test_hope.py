"""When a measurement is given up, and when not."""

import pytest

from pgdyno.contract import Counters, Failed, Interval
from pgdyno.experiment.hope import Hope

pytestmark = pytest.mark.unit
SERIES = dict.fromkeys(
    ("count", "sum_ns", "sum_squares_ns2", "min_ns", "max_ns", "p50_ns", "p90_ns", "p95_ns",
     "p99_ns", "p99_9_ns", "p99_99_ns"),
    0,
)  # fmt: skip


def second(*, committed: int = 0, failed: Failed | None = None) -> Interval:
    failed = failed or Failed()
    counters = Counters(scheduled=committed + failed.total, committed=committed, failed=failed)
    return Interval.model_validate(
        {
            "phase": "warmup", "begin_ns": 0, "end_ns": 1_000_000_000, "counters": counters,
            "server_commits": committed, "in_flight": 0, "times": {"service": SERIES}, "types": {},
            "cpu_user_ns": 0, "cpu_sys_ns": 0,
        }
    )  # fmt: skip


def after(*intervals: Interval) -> Hope:
    hope = Hope(clients=4)
    for interval in intervals:
        hope = hope.after(interval)
    return hope


def test_nothing_but_errors_for_three_seconds() -> None:
    errors = second(failed=Failed(other=500))
    assert [after(*[errors] * n).lost for n in (1, 2, 3, 4)] == [False, False, True, True]


def test_one_commit_is_hope_enough() -> None:
    assert not after(second(committed=1), *[second(failed=Failed(other=500))] * 9).lost


def test_collisions_and_slow_transactions_are_waited_for() -> None:
    assert not after(*[second(failed=Failed(serialization=500, deadlock=3))] * 9).lost
    assert not after(*[second()] * 60).lost
