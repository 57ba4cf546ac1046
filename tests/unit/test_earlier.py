"""Trials of the same variants that were stored before, by which a plan knows how long one takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.experiment.design import again
from pgdyno.experiment.earlier import earlier_trials
from pgdyno.experiment.store import new_run
from pgdyno.model import Variant
from tests.builders import RunOptions, build_experiment, build_trial

pytestmark = pytest.mark.unit
OPTIONS = RunOptions(duration_s=4)
(WANTED,) = build_experiment(OPTIONS).variants


def store(output: Path, minute: int, *outcomes: str, clients: int = WANTED.load.clients) -> None:
    """A run of so many trials, made in that minute."""
    options = RunOptions(duration_s=4, clients=clients)
    made = {"created": f"2026-11-20T18:{minute}:00+00:00", "id": f"aaaa{minute}"}
    run = new_run(build_experiment(options).model_copy(update=made), output)
    for number, outcome in enumerate(outcomes, start=1):
        trial = build_trial(options).model_copy(update={"number": number, "outcome": outcome})
        run.new_trial(trial)


def numbers(output: Path, *variants: Variant) -> dict[str, list[int]]:
    found = earlier_trials(output, variants)
    return {name: [trial.number for trial in trials] for name, trials in found.items()}


def test_completed_trials_of_what_runs_the_same_the_newest_first(tmp_path: Path) -> None:
    store(tmp_path, 10, "completed")
    store(tmp_path, 20, "completed", "failed", "completed")
    store(tmp_path, 30, "completed", clients=99)
    seeded = WANTED.load.model_copy(update={"seed": 7})
    renamed = WANTED.model_copy(update={"name": "b", "load": seeded})
    assert numbers(tmp_path, renamed) == {"b": [3, 1, 1]}
    other = WANTED.model_copy(update={"load": WANTED.load.model_copy(update={"clients": 7})})
    assert numbers(tmp_path, other, again(other)) == {
        other.name: [], f"{other.name} (again)": [],
    }  # fmt: skip
    assert numbers(tmp_path, WANTED, again(WANTED))[f"{WANTED.name} (again)"] == [3, 1, 1]


def test_enough_is_enough_and_a_spoilt_run_is_passed_over(tmp_path: Path) -> None:
    store(tmp_path, 10, "completed")
    store(tmp_path, 20, *["completed"] * 25)
    (spoilt,) = tmp_path.glob("*aaaa20/trials/025-*")
    assert len(numbers(tmp_path, WANTED)[WANTED.name]) == 20
    (spoilt / "trial.json").write_text("{")
    assert numbers(tmp_path, WANTED) == {WANTED.name: [1]}
