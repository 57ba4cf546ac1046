"""What is known to have happened during a measurement, from what observers and the server left."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.experiment.disturbances import disturbances_of
from pgdyno.experiment.samples import Samples
from pgdyno.experiment.store import Run, StoredTrial
from pgdyno.experiment.trial_readings import read_trial, values_of
from tests.builders import RunOptions, build_run
from tests.simulation import MONOTONIC_NS, SECOND_NS, write_table

pytestmark = pytest.mark.unit
BEGIN_NS = MONOTONIC_NS + SECOND_NS // 5


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return build_run(tmp_path, RunOptions(duration_s=4, warmup_s=0))


def happened(run: Run) -> tuple[str, ...]:
    (stored,) = run.trials
    assert stored.summary is not None
    return disturbances_of(Samples(stored=stored, summary=stored.summary))


def observe(run: Run, name: str, *rows: dict[str, object]) -> None:
    """Samples a second apart, from the beginning of the measurement on."""
    times = ({"monotonic_ns": BEGIN_NS + n * SECOND_NS} for n in range(len(rows)))
    table = [{**time, **row} for time, row in zip(times, rows, strict=True)]
    write_table(run.trials[0].folder / "observations", name, table)


def checkpoints(timed: int, buffers: int) -> dict[str, object]:
    return {
        "checkpoints_timed": timed, "checkpoints_requested": 1, "checkpoint_buffers": buffers,
    }  # fmt: skip


def cpu(user: int, steal: int, idle: int) -> dict[str, object]:
    return {
        "cpu": "all", "user_jiffies": user, "sys_jiffies": 0, "wait_jiffies": 0,
        "steal_jiffies": steal, "idle_jiffies": idle,
    }  # fmt: skip


def used(*jiffies: int) -> list[dict[str, object]]:
    """Samples of both roles, each of which used so much."""
    return [
        {
            "monotonic_ns": BEGIN_NS + number * SECOND_NS, "role": role, "user_jiffies": value,
            "sys_jiffies": 0,
        }
        for number, value in enumerate(jiffies)
        for role in ("engine", "server")
    ]  # fmt: skip


def test_a_quiet_measurement_has_none(run: Run) -> None:
    observe(run, "bgwriter", checkpoints(3, 10), checkpoints(3, 10))
    assert happened(run) == ()


def test_checkpoints(run: Run) -> None:
    observe(run, "bgwriter", checkpoints(3, 10), checkpoints(4, 10), checkpoints(5, 900))
    assert happened(run) == ("2 checkpoints",)
    observe(run, "bgwriter", checkpoints(3, 10), checkpoints(3, 900))
    assert happened(run) == ("the end of a checkpoint",)


def test_autovacuum_that_was_seen_at_work(run: Run) -> None:
    idle = {"workers": 0, "doing": None}
    doing = "autovacuum: VACUUM ANALYZE public.accounts; autovacuum: VACUUM pg_catalog.pg_class"
    observe(run, "autovacuum", idle, {"workers": 2, "doing": doing}, idle)
    assert happened(run) == ("autovacuum of accounts, pg_class",)
    # A server that is not ours may not say what its workers do.
    observe(run, "autovacuum", idle, {"workers": 1, "doing": None}, idle)
    assert happened(run) == ("autovacuum",)
    observe(run, "autovacuum", idle, idle)
    assert happened(run) == ()


def test_stolen_time_and_other_programs(run: Run) -> None:
    stored = run.trials[0]
    observe(run, "host_cpu", cpu(0, 0, 0), cpu(100, 10, 90))
    write_table(stored.folder / "observations", "processes", used(0, 50))
    # 100 of 200 jiffies busy, all of them the engine's and the server's.
    assert happened(run) == ("5.0 % of the CPU time stolen",)
    write_table(stored.folder / "observations", "processes", used(0, 20))
    assert happened(run)[1] == "other programs used 30.0 % of the CPU time"


def test_costs_of_a_transaction(run: Run) -> None:
    stored = run.trials[0]
    write_table(stored.folder / "observations", "processes", used(0, 50))
    observe(run, "wal", {"wal_position_bytes": 0}, {"wal_position_bytes": 7_000_000})
    values = read_trial(stored, run).values
    per_s = values["throughput_per_s"]
    assert values["server_cpu_us_per_transaction"] == pytest.approx(0.5e6 / per_s)
    assert values["wal_bytes_per_transaction"] == pytest.approx(7e6 / per_s)


def test_a_value_is_read_without_tables_that_it_does_not_need(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored,) = run.trials
    observe(run, "wal", {"wal_position_bytes": 0}, {"wal_position_bytes": 7_000_000})
    every = read_trial(stored, run).values
    read: list[str] = []
    whole = StoredTrial.observations

    def told(self: StoredTrial, name: str) -> object:
        read.append(name)
        return whole(self, name)

    monkeypatch.setattr(StoredTrial, "observations", told)
    assert values_of(stored, ("p99_us",)) == {"p99_us": every["p99_us"]}
    assert read == []
    name = "wal_bytes_per_transaction"
    assert values_of(stored, (name,)) == {name: every[name]}
    assert read == ["wal"]
    read_trial(stored, run)
    assert len(read[1:]) == len(set(read[1:])), "a table was read twice"
