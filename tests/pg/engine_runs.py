"""Running the engine alone, as `pgdyno-engine run PLAN.json`, and reading everything it wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.contract import Counters, Interval, Plan, Summary, TransactionType
from pgdyno.engine import find_engine

DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """An engine that has ended, and its files: validated by the contract."""

    status: int
    error: str
    folder: Path

    @property
    def summary(self) -> Summary:
        """`summary.json`."""
        return Summary.model_validate_json((self.folder / "summary.json").read_text())

    @property
    def intervals(self) -> list[Interval]:
        """`intervals.jsonl`."""
        lines = (self.folder / "intervals.jsonl").read_text().splitlines()
        return [Interval.model_validate_json(line) for line in lines]


def write_plan(
    folder: Path, conninfo: str, script: str | list[TransactionType], **words: Any
) -> Path:
    """A plan of one script (or of these types), measured for a second unless told otherwise."""
    types = script
    if isinstance(script, str):
        types = [TransactionType(name="t", weight=1, source="t.sql", script=script)]
    defaults: dict[str, Any] = {"clients": 4, "seed": 1, "interval_s": 0.25}
    if "transactions_per_client" not in words:
        defaults["duration_s"] = 1.0
    plan = Plan(
        name="test",
        conninfo=conninfo,
        transaction_types=types,
        output_dir=str(folder / "out"),
        **(defaults | words),
    )
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json())
    return path


def start_engine(
    *words: str | Path, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start the engine; nothing of the caller's PG* variables reaches it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return subprocess.Popen(
        [find_engine(), *words],
        env=kept | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def end_engine(
    engine: subprocess.Popen[str], folder: Path, *, deadline_s: float = DEADLINE_S
) -> EngineRun:
    """Wait for its end; it is killed when it misses the deadline."""
    try:
        _, error = engine.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        engine.send_signal(signal.SIGKILL)
        _, error = engine.communicate()
        raise AssertionError(f"the engine did not end in {deadline_s} s: {error}") from None
    return EngineRun(status=engine.returncode, error=error, folder=folder / "out")


def run_engine(
    folder: Path, conninfo: str, script: str | list[TransactionType], **words: Any
) -> EngineRun:
    """Run a plan to its end."""
    return end_engine(start_engine("run", write_plan(folder, conninfo, script, **words)), folder)


def total(counters: list[Counters]) -> dict[str, Any]:
    """Counters added up, as plain numbers."""
    sums: dict[str, Any] = {}
    for one in counters:
        for name, value in json.loads(one.model_dump_json()).items():
            if isinstance(value, dict):
                inner = sums.setdefault(name, dict.fromkeys(value, 0))
                sums[name] = {key: inner[key] + value[key] for key in value}
            else:
                sums[name] = sums.get(name, 0) + value
    return sums


def assert_adds_up(run: EngineRun) -> None:
    """The partition holds everywhere; lines, types and clients add up to the summary."""
    summary, intervals = run.summary, run.intervals
    everywhere = [summary.warmup, summary.measurement]
    everywhere += [line.counters for line in intervals]
    everywhere += [kind.counters for line in intervals for kind in line.types.values()]
    for counters in everywhere:
        ended = counters.committed + counters.failed.total + counters.unknown
        assert counters.scheduled == ended + counters.skipped + counters.in_flight_at_end
    for phase, whole, commits in (
        ("warmup", summary.warmup, summary.warmup_server_commits),
        ("measurement", summary.measurement, summary.server_commits),
    ):
        lines = [line for line in intervals if line.phase == phase]
        if lines:
            assert total([line.counters for line in lines]) == total([whole])
        assert sum(line.server_commits for line in lines) == commits
        assert sum(line.times.service.count for line in lines) == whole.committed
    measured = [line for line in intervals if line.phase == "measurement"]
    service = summary.times.service
    assert sum(line.times.service.sum_ns for line in measured) == service.sum_ns
    assert sum(line.times.service.sum_squares_ns2 for line in measured) == service.sum_squares_ns2
    by_type = [result.counters for result in summary.transaction_types]
    assert total(by_type) == total([summary.measurement])
    assert sum(client.committed for client in summary.clients) == summary.measurement.committed
    assert sum(client.sum_service_ns for client in summary.clients) == service.sum_ns
