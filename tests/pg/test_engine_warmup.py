"""A warm-up that the lab ends: SIGUSR1, at a boundary of intervals, the same for all threads."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.pg.engine_runs import (
    EngineRun,
    assert_adds_up,
    end_engine,
    start_engine,
    write_plan,
)

pytestmark = pytest.mark.pg

INTERVAL_NS = 250_000_000
LINES_DEADLINE_S = 20.0


def told_during_warmup(folder: Path, conninfo: str, **words: object) -> EngineRun:
    """The engine is told after its second interval, and twice, and once more when measuring."""
    engine = start_engine("run", write_plan(folder, conninfo, "SELECT 1;", **words))
    wait_for_lines(folder / "out" / "intervals.jsonl", 2)
    engine.send_signal(signal.SIGUSR1)
    engine.send_signal(signal.SIGUSR1)
    wait_for_lines(folder / "out" / "intervals.jsonl", 5)
    engine.send_signal(signal.SIGUSR1)
    return end_engine(engine, folder)


def wait_for_lines(file: Path, count: int) -> None:
    """Intervals are written as they end."""
    deadline = time.monotonic() + LINES_DEADLINE_S
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, f"no {count} lines in {file} in {LINES_DEADLINE_S} s"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "load",
    [
        {"kind": "closed"},
        {"kind": "open", "rate_per_s": 2000},
        # Starts beyond the new end of the measurement: nobody may wait for them.
        {"kind": "open", "rate_per_s": 0.05, "schedule": "per_client"},
    ],
    ids=["closed", "open", "seldom"],
)
def test_the_warm_up_ends_when_it_is_told(database: str, tmp_path: Path, load: object) -> None:
    begin_s = time.monotonic()
    words = {"warmup_s": 30.0, "warmup_ends": "told", "threads": 2, "load": load}
    run = told_during_warmup(tmp_path, database, **words)
    assert (run.status, run.error) == (0, "")
    assert time.monotonic() - begin_s < 25
    timeline = run.summary.timeline
    assert timeline.warmup_begin_ns is not None and timeline.measurement_begin_ns is not None
    warmup_ns = timeline.measurement_begin_ns - timeline.warmup_begin_ns
    assert warmup_ns % INTERVAL_NS == 0 and 2 * INTERVAL_NS < warmup_ns < 15e9
    assert run.summary.measured_s == pytest.approx(1.0)
    for line in run.intervals:
        early = line.begin_ns < timeline.measurement_begin_ns
        assert line.phase == "warmup" or not early
        assert line.end_ns <= timeline.measurement_begin_ns or not early
    assert_adds_up(run)


def test_who_is_not_to_be_told_is_not_disturbed(database: str, tmp_path: Path) -> None:
    run = told_during_warmup(tmp_path, database, warmup_s=0.8)
    assert (run.status, run.error) == (0, "")
    timeline = run.summary.timeline
    assert timeline.warmup_begin_ns is not None and timeline.measurement_begin_ns is not None
    assert timeline.measurement_begin_ns - timeline.warmup_begin_ns == 800_000_000
    assert run.summary.measured_s == pytest.approx(1.0)
