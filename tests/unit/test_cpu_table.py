"""The CPU table of a report: hosts, CPUs given to roles, roles; each with average and maximum."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from pgdyno.model import Placement, Trial
from pgdyno.reports.cpu_table import CpuLine, cpu_lines
from pgdyno.reports.documents import read_run
from pgdyno.reports.timeline import TimeAxis, time_axis
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

SECOND_NS = 10**9


def lines_of(folder: Path, placement: dict[str, tuple[int, ...]]) -> dict[str, CpuLine]:
    """The table of two CPUs: one busy 80 % in programs, the other idle; the primary took 60."""
    (documents,) = read_run(build_run(folder, RunOptions(duration_s=8, warmup_s=2))).trials
    axis = time_axis(documents)
    assert isinstance(axis, TimeAxis)
    trial = documents.trial.model_copy(
        update={
            "placement": {
                role: Placement(host="local", cpus=cpus) for role, cpus in placement.items()
            }
        }
    )
    assert isinstance(trial, Trial)
    times = [axis.zero_monotonic_ns + at * SECOND_NS for at in range(9)]
    cpu = [
        row
        for at, time_ns in enumerate(times)
        for row in (
            cpu_row(time_ns, "all", 80 * at, 120 * at),
            cpu_row(time_ns, "0", 80 * at, 20 * at),
            cpu_row(time_ns, "1", 0, 100 * at),
        )
    ]
    jiffies = [0, 30, 60, 90, 120, 150, 180, 210, 300]
    processes = [
        {"monotonic_ns": time_ns, "role": "primary", "user_jiffies": taken, "sys_jiffies": taken}
        for time_ns, taken in zip(times, jiffies, strict=True)
    ]
    seen = SimpleNamespace(
        trial=trial,
        environment=documents.environment,
        observations={
            "host_cpu": pa.Table.from_pylist(cpu),
            "processes": pa.Table.from_pylist(processes),
        },
    )
    return {line.name: line for line in cpu_lines(seen, axis)}  # type: ignore[arg-type]


def cpu_row(time_ns: int, cpu: str, user: int, idle: int) -> dict[str, object]:
    none = {f"{kind}_jiffies": 0 for kind in ("sys", "wait", "steal")}
    return {
        "monotonic_ns": time_ns, "cpu": cpu, "user_jiffies": user, "idle_jiffies": idle, **none
    }  # fmt: skip


def test_cpus_given_to_roles_are_told_like_machines(tmp_path: Path) -> None:
    lines = lines_of(
        tmp_path, {"primary": (0,), "standby-1": (1,), "engine": (1,), "observers": (0, 1)}
    )
    assert list(lines) == ["host", "CPU 0: primary", "CPU 1: standby-1, engine", "primary"]
    assert lines["host"].kinds["busy"].average == pytest.approx(0.4)
    assert lines["CPU 0: primary"].kinds["user"].average == pytest.approx(0.8)
    assert lines["CPU 1: standby-1, engine"].kinds["idle"].average == pytest.approx(1.0)


def test_a_role_is_judged_by_the_cpus_it_may_use(tmp_path: Path) -> None:
    (alone,) = [lines_of(tmp_path / "1", {"primary": (0,)})["primary"]]
    assert alone.cpus == 1
    assert alone.kinds["busy"].average == pytest.approx(0.75)
    assert alone.kinds["busy"].maximum == pytest.approx(1.8)
    shared = lines_of(tmp_path / "2", {"primary": (0, 1)})["primary"]
    assert shared.kinds["busy"].average == pytest.approx(0.375)


def test_the_rows_say_average_maximum_and_how_uneven_it_was(tmp_path: Path) -> None:
    line = lines_of(tmp_path, {"primary": (0,)})["primary"]
    assert line.label == "primary, of 1 CPU"
    assert line.rows == (
        ("average", ("37.5 %", "37.5 %", "", "", "75.0 %")),
        ("maximum", ("90.0 %", "90.0 %", "", "", "180.0 %")),
        ("max : avg", ("2.4", "2.4", "", "", "2.4")),
    )
