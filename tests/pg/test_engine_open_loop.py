"""Open loops: starts that wait for nobody, times that count from the intended start.

The freeze is the proof: all sessions of a server stand still for a while (SIGSTOP). With arrivals
at a steady rate, a start that was due t before the thaw answers after t, so of a measurement of
length T with a freeze of length f a share x of all answers takes longer than f − x·T. A closed loop
would only show as many slow answers as it has clients.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from pgdyno.contract import Series
from tests.pg.engine_runs import (
    EngineRun,
    assert_adds_up,
    end_engine,
    run_engine,
    start_engine,
    write_plan,
)

pytestmark = pytest.mark.pg

ONE = "SELECT 1;"
SLOW = "SELECT pg_sleep(0.1);"


def freeze(conninfo: str, *, after_s: float, for_s: float) -> None:
    """Stop every session of the database, once `after_s` have passed since all had connected."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        sessions = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        deadline = time.monotonic() + 20
        pids: list[int] = []
        while len(pids) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
            found = connection.execute(f"{sessions} AND pid <> pg_backend_pid()").fetchall()
            pids = [pid for (pid,) in found]
        time.sleep(after_s)
        found = connection.execute(f"{sessions} AND pid <> pg_backend_pid()").fetchall()
    stopped = [pid for (pid,) in found]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(for_s)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def run_frozen(
    folder: Path, conninfo: str, load: dict[str, Any], length_s: float, freeze_s: float
) -> EngineRun:
    """Measure for `length_s` with a freeze in the middle; above 0.1 s is late."""
    freezer = threading.Thread(
        target=freeze, args=(conninfo,), kwargs={"after_s": length_s / 3, "for_s": freeze_s}
    )
    freezer.start()
    words: dict[str, Any] = {"clients": 8, "response_time_limit_s": 0.1}
    plan = write_plan(folder, conninfo, ONE, load=load, duration_s=length_s, **words)
    run = end_engine(start_engine("run", plan), folder, deadline_s=length_s + 60)
    freezer.join(timeout=60)
    assert run.status == 0, run.error
    assert_adds_up(run)
    return run


def series(run: EngineRun, name: str) -> Series:
    found = getattr(run.summary.times, name)
    assert isinstance(found, Series)
    return found


def assert_the_freeze_shows(run: EngineRun, length_s: float, freeze_s: float, rate: float) -> None:
    """What the formula says, and what little a busy machine may add to it."""
    response, measured = series(run, "response"), run.summary.measurement
    assert freeze_s - 0.02 <= response.max_ns / 1e9 <= freeze_s + 0.4
    for share, value_ns in ((0.001, response.p99_9_ns), (0.01, response.p99_ns)):
        expected_s = freeze_s - share * length_s
        if expected_s > 0.1:
            assert expected_s - 0.03 <= value_ns / 1e9 <= expected_s + 0.4, share
    # Besides those due in the freeze, whatever waits while the backlog is worked off.
    late = rate * (freeze_s - 0.1)
    assert late * 0.97 <= measured.late <= late + rate * (0.3 + 0.4 * freeze_s)
    assert measured.late == pytest.approx(responses_above(run, 0.1), rel=0.002)
    assert measured.committed == measured.scheduled == pytest.approx(rate * length_s, abs=2)
    goodput = (measured.committed - measured.late) / length_s
    assert run.summary.goodput_per_s == pytest.approx(goodput, rel=1e-3)
    # Lag and service time stand apart, and are the response time together.
    lag, service = series(run, "lag"), series(run, "service")
    assert response.sum_ns == lag.sum_ns + service.sum_ns
    # Only what was under way when the server froze has a long service time.
    assert service.p99_ns < 0.1e9 < lag.p99_ns


def responses_above(run: EngineRun, limit_s: float) -> int:
    """Counted from the histograms: within 0.1 % of the limit they cannot tell."""
    whole = HdrHistogram(1, 3600 * 10**9, 3)
    reader = HistogramLogReader(
        str(run.folder / "transactions.hlog"), HdrHistogram(1, 3600 * 10**9, 3)
    )
    while (histogram := reader.get_next_interval_histogram()) is not None:
        if histogram.get_tag() == "t.response":
            whole.add(histogram)
    reader.close()
    items = whole.get_recorded_iterator()
    return sum(
        item.count_at_value_iterated_to for item in items if item.value_iterated_to > limit_s * 1e9
    )


CONSTANT = {"kind": "open", "rate_per_s": 1000, "arrival": "constant"}


def test_a_frozen_server_shows_in_an_open_loop(database: str, tmp_path: Path) -> None:
    run = run_frozen(tmp_path, database, CONSTANT, 6, 0.5)
    assert_the_freeze_shows(run, 6, 0.5, 1000)


def test_a_frozen_server_hides_in_a_closed_loop(database: str, tmp_path: Path) -> None:
    run = run_frozen(tmp_path, database, {"kind": "closed"}, 3, 0.5)
    service = series(run, "service")
    assert service.max_ns >= 0.48e9
    assert 1 <= run.summary.measurement.late <= 8 + run.summary.measurement.committed * 0.001
    assert service.p99_ns < 0.1e9
    assert run.summary.times.lag is None


@pytest.mark.slow
def test_two_frozen_seconds_of_sixty(database: str, tmp_path: Path) -> None:
    run = run_frozen(tmp_path, database, CONSTANT, 60, 2)
    assert_the_freeze_shows(run, 60, 2, 1000)
    assert 1.9e9 <= series(run, "response").p99_9_ns <= 2.1e9


def test_stages_step_and_ramp(database: str, tmp_path: Path) -> None:
    stages = [
        {"duration_s": 1, "rate_per_s": 200},
        {"duration_s": 1, "rate_per_s": 0},
        {"duration_s": 2, "rate_per_s": 0, "end_rate_per_s": 800},
    ]
    load = {"kind": "open", "stages": stages, "arrival": "constant"}
    run = run_engine(tmp_path, database, ONE, load=load, duration_s=4, warmup_s=0.5, interval_s=1)
    assert run.status == 0, run.error
    assert_adds_up(run)
    summary = run.summary
    assert summary.warmup.scheduled == pytest.approx(100, abs=2)
    assert summary.measurement.scheduled == pytest.approx(1000, abs=2)
    begin_ns = summary.timeline.measurement_begin_ns
    assert begin_ns is not None
    measured = [line for line in run.intervals if line.phase == "measurement"]
    by_second = {
        round((line.begin_ns - begin_ns) / 1e9): line.counters.scheduled for line in measured[:4]
    }
    # Counted when they ended, so a few of one second may stand in the next.
    assert by_second == pytest.approx({0: 200, 1: 0, 2: 200, 3: 600}, abs=30)


def test_sessions_arrive_openly_and_go_on_by_themselves(database: str, tmp_path: Path) -> None:
    load = {
        "kind": "partly_open",
        "sessions_per_s": 20,
        "arrival": "constant",
        "transactions_per_session": 5,
        "think_time_s": 0.02,
    }
    run = run_engine(tmp_path, database, ONE, load=load, duration_s=2)
    assert run.status == 0, run.error
    assert_adds_up(run)
    # 39 or 40 sessions; those of the last 80 ms are cut short by the end.
    assert 180 <= run.summary.measurement.committed <= 200


def test_an_overloaded_server_gets_no_closed_loop(database: str, tmp_path: Path) -> None:
    """Two clients can do 20 a second, 100 arrive: what nobody could take in time is skipped."""
    load = {"kind": "open", "rate_per_s": 100, "arrival": "constant"}
    run = run_engine(
        tmp_path, database, SLOW, load=load, clients=2, duration_s=2, drain_deadline_s=0.5
    )
    measured = run.summary.measurement
    assert measured.scheduled == pytest.approx(200, abs=2)
    assert measured.skipped >= 130
    # The last one taken had waited for most of the measurement.
    assert series(run, "lag").max_ns > 1.5e9
    assert series(run, "service").p50_ns < 0.2e9
    assert_adds_up(run)


def test_a_bounded_backlog_turns_the_rest_away(database: str, tmp_path: Path) -> None:
    load = {"kind": "open", "rate_per_s": 100, "arrival": "constant"}
    for number, (limit, longest_s) in enumerate(
        (({"backlog_limit": 4}, 0.5), ({"backlog_limit_s": 0.05}, 0.05))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = run_engine(folder, database, SLOW, load=load | limit, clients=2, duration_s=2)
        measured = run.summary.measurement
        assert measured.scheduled == pytest.approx(200, abs=2), limit
        assert measured.skipped == measured.scheduled - measured.committed >= 150
        assert 20 <= measured.committed <= 46
        # Nothing that was started had waited longer than the bound allows.
        assert series(run, "lag").max_ns <= longest_s * 1e9
        assert_adds_up(run)


def test_clients_with_schedules_of_their_own_do_the_same(database: str, tmp_path: Path) -> None:
    load = {"kind": "open", "rate_per_s": 100, "arrival": "constant", "schedule": "per_client"}
    run = run_engine(tmp_path, database, ONE, load=load, duration_s=2, threads=2)
    assert [client.committed for client in run.summary.clients] == pytest.approx([50] * 4, abs=1)


def test_two_threads_share_one_schedule(database: str, tmp_path: Path) -> None:
    load = {"kind": "open", "rate_per_s": 300, "arrival": "constant"}
    run = run_engine(tmp_path, database, ONE, load=load, duration_s=2, threads=2, clients=5)
    assert run.summary.measurement.scheduled == pytest.approx(600, abs=2)
    assert run.summary.measurement.committed == run.summary.measurement.scheduled
    assert_adds_up(run)


def test_thinking_clients_and_the_cost_of_it_all(database: str, tmp_path: Path) -> None:
    load = {"kind": "closed", "think_time_s": 0.02, "think_time": "exponential"}
    run = run_engine(tmp_path, database, ONE, load=load, duration_s=2, receive="oneshot")
    assert run.status == 0, run.error
    # Four clients, 20 ms of thinking on average: at most 400 transactions, and not many fewer.
    assert 250 <= run.summary.measurement.committed <= 500
    own = run.summary.own_cost
    assert own is not None
    assert own.schedule_error is not None
    assert own.schedule_error.count == pytest.approx(run.summary.measurement.committed, abs=8)
    assert sum(own.batch_sizes) == own.loops
    assert own.events >= sum(
        size * 2 ** max(i - 1, 0) for i, size in enumerate(own.batch_sizes) if i
    )
    assert own.run_delay_ns is None or own.run_delay_ns >= 0


def busy_share() -> float:
    """The share of all CPUs that was in use during the last second, when nothing of ours ran."""

    def ticks() -> tuple[int, int]:
        fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return sum(fields[:8]), fields[3] + fields[4]

    before = ticks()
    time.sleep(1)
    all_ticks, idle_ticks = (after - then for after, then in zip(ticks(), before, strict=True))
    return 1 - idle_ticks / all_ticks


@pytest.mark.slow
def test_sends_keep_their_time_at_half_of_the_capacity(database: str, tmp_path: Path) -> None:
    """Only a machine that does nothing else can show it, so one that does is skipped aloud."""
    closed, opened = tmp_path / "closed", tmp_path / "open"
    closed.mkdir(), opened.mkdir()
    capacity = run_engine(closed, database, ONE, clients=16, duration_s=5).summary.throughput_per_s
    assert capacity is not None
    if (busy := busy_share()) > 0.1:
        pytest.skip(f"the machine is busy with other work: {busy:.0%}")
    load = {"kind": "open", "rate_per_s": capacity / 2}
    run = run_engine(opened, database, ONE, load=load, clients=16, duration_s=10, warmup_s=1)
    own = run.summary.own_cost
    assert own is not None
    assert own.schedule_error is not None
    assert own.schedule_error.p99_ns <= 200_000
