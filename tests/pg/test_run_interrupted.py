"""Ctrl-C at each phase, a killed pgdyno and a killed server: results are kept, nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

import psycopg
import pytest

from pgdyno.experiment.store import find_run, list_runs
from tests.pg.commands import Place, finish

pytestmark = pytest.mark.pg
PHASES = ("provision", "load", "prewarm", "warm-up", "measure")


def start_until(place: Place, phase: str, *words: str) -> subprocess.Popen[str]:
    """Start a run and wait until it says that a phase has begun."""
    process = place.start("run", "userlogin", "--users", "300_000", "--clients", "2", *words)
    guard = threading.Timer(60, process.kill)
    guard.start()
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith(phase):
            guard.cancel()
            return process
    guard.cancel()
    raise AssertionError(f"phase {phase} never began: {said}")


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c(place: Place, phase: str) -> None:
    process = start_until(place, phase, "--warmup", "5s", "--time", "30s")
    time.sleep(1.5 if phase == "measure" else 0.3)
    os.kill(process.pid, signal.SIGINT)
    ended = finish(process, deadline_s=40)
    assert ended.status == 130, ended.error
    assert "Traceback" not in ended.error
    (run,) = list_runs(place.runs)
    (stored,) = run.trials
    assert stored.trial.outcome == "interrupted"
    if phase == "measure":
        summary = stored.summary
        assert summary is not None and summary.outcome == "interrupted"
        assert summary.measurement.committed > 0
        assert (run.folder / "report.html").exists()


def test_a_killed_pgdyno_takes_its_server_along(place: Place) -> None:
    process = start_until(place, "measure", "--warmup", "1s", "--time", "30s")
    time.sleep(2.5)
    process.kill()
    process.communicate(timeout=10)
    deadline = time.monotonic() + 20
    while place.left_running() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert place.left_running() == []
    (stored,) = find_run("last", place.runs).trials
    assert stored.trial.outcome is None and len(stored.intervals()) >= 2
    assert place.left_behind() != []
    # The next start finds what the killed one left, by its ledger, and removes it.
    ended = place.pgdyno("run", "noop", "--time", "1s", "--warmup", "0s", "--clients", "1")
    assert ended.status == 0, ended.error
    assert place.pgdyno("show", stored.folder.parent.parent.name[-6:]).status == 0


def test_a_server_killed_under_the_load(place: Place) -> None:
    process = start_until(place, "measure", "--warmup", "1s", "--time", "20s")
    time.sleep(2)
    (data,) = place.folder.glob("pgdyno-*/data")
    postmaster = int((data / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    ended = finish(process, deadline_s=60)
    assert ended.status == 1, ended.error
    (stored,) = find_run("last", place.runs).trials
    assert stored.trial.outcome == "failed" and stored.trial.reason
    assert stored.summary is not None and stored.summary.outcome == "aborted"
    assert stored.summary.measurement.committed > 0
    assert "report" in ended.output


def test_backends_terminated_under_the_load(place: Place, database: str) -> None:
    words = ("--dsn", database, "--warmup", "1s", "--time", "20s")
    process = start_until(place, "measure", *words)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    ended = finish(process, deadline_s=60)
    assert ended.status == 1, ended.error
    (stored,) = find_run("last", place.runs).trials
    assert stored.summary is not None and stored.summary.outcome == "aborted"
    assert "terminat" in (stored.trial.reason or "")
