"""The view of a running trial: what its lines say, moving in a terminal and plain elsewhere."""

from __future__ import annotations

import io

import pytest

from pgdyno.contract import Interval, Series
from pgdyno.experiment.progress import Place, Step
from pgdyno.reports.live import Moving, Plain, interval_text, new_live

pytestmark = pytest.mark.unit


def interval(*, committed: int, failed: int = 0, unknown: int = 0) -> Interval:
    times = dict.fromkeys(Series.model_fields, 0)
    times |= {"count": committed, "p99_ns": 4_200_000 if committed else 0}
    counters = {"committed": committed, "failed": {"other": failed}, "unknown": unknown}
    return Interval.model_validate(
        {
            "phase": "measurement", "begin_ns": 0, "end_ns": 2_000_000_000, "counters": counters,
            "server_commits": committed, "in_flight": 0, "times": {"service": times}, "types": {},
            "cpu_user_ns": 0, "cpu_sys_ns": 0,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"committed": 3000}, "1 500.0/s, p99 4.200 ms"),
        ({"committed": 2, "failed": 12345}, "1.0/s, p99 4.200 ms, 12 345 failed"),
        ({"committed": 0, "failed": 1, "unknown": 2}, "0.0/s, 1 failed, 2 unknown"),
    ],
)
def test_an_interval_in_one_line(counts: dict[str, int], text: str) -> None:
    assert interval_text(interval(**counts)) == text


def test_plain_lines_say_phases_at_once_and_steps_seldom() -> None:
    stream = io.StringIO()
    live = Plain(stream)
    live.phase("load", "")
    for _ in range(1000):
        live.step(Step(text="rows", share=0.5, left_s=9.0))
    live.notice("no [disk] to watch")
    live.end()
    assert stream.getvalue() == "load: loading data\nnotice: no [disk] to watch\n"


def of_experiment(last: int | None) -> list[str]:
    """What is said of one trial of so many."""
    stream = io.StringIO()
    live = Plain(stream)
    live.trial(Place(number=3, last=last, block=2, variant="off", left_s=95.0))
    for note in ("", "", "sorting"):
        live.phase("load", note)
    live.step(Step(text="rows", share=0.5, left_s=9.0))
    live.notice("it is dark")
    return stream.getvalue().splitlines()


def test_many_trials_take_a_line_each_where_lines_stay() -> None:
    assert of_experiment(20) == [
        "trial 3 of 20, block 2: off; about 1 min 35 s left", "notice: it is dark",
    ]  # fmt: skip
    assert of_experiment(None)[1:] == ["notice: it is dark"]
    assert of_experiment(4)[1:] == ["load: loading data", "load: sorting", "notice: it is dark"]


def test_the_moving_line_leaves_a_line_for_every_phase() -> None:
    stream = io.StringIO()
    live = Moving(stream)
    live.phase("load", "")
    live.step(Step(text="rows [1]", share=0.5, left_s=9.0))
    live.phase("measure", "measuring with 1 client")
    live.interval(interval(committed=3000), Step(text="2 of 2 s", share=1.0, left_s=0.0))
    live.notice("no [disk] to watch")
    live.end()
    lines = stream.getvalue().splitlines()
    assert any(line.startswith("load ") for line in lines)
    assert "notice: no [disk] to watch" in lines
    measured = next(line for line in lines if line.startswith("measure "))
    assert measured.endswith("1 500.0/s, p99 4.200 ms")


def test_a_stream_that_is_no_terminal_gets_plain_lines() -> None:
    assert isinstance(new_live(io.StringIO()), Plain)
