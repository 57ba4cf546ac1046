"""Experiments as a person would run them: files for them, their trials, and killing them."""

from __future__ import annotations

import os
import signal
import threading

from pgdyno.experiment.store import Run, find_run
from pgdyno.model import Trial
from tests.pg.commands import Place

SHORT = """\
workload = "tpcb"
param = { scale = 1 }
time = "500ms"
warmup = "0s"
responses = []
"""
ONCE = SHORT + "replicates = 1\n"
TWICE = SHORT + "replicates = 2\n"
PAIR = "[factors]\nclients = [1, 2]\n"


def write(place: Place, text: str) -> str:
    """An experiment file in the place."""
    file = place.folder / "experiment.toml"
    file.write_text(text)
    return str(file)


def trials_of(run: Run) -> list[Trial]:
    """The trials of a run, as stored."""
    return [stored.trial for stored in run.trials]


def run_short(place: Place, text: str) -> list[Trial]:
    """Run an experiment to its end; its trials."""
    ended = place.pgdyno("experiment", "run", write(place, text), "--no-report")
    assert ended.status == 0, ended.error
    assert "Traceback" not in ended.error
    return trials_of(find_run("last", place.runs))


def kill_at(place: Place, moment: tuple[str, int], *words: str) -> None:
    """Start a command and kill it, as -9 does, when a line begins so for the nth time."""
    beginning, times = moment
    process = place.start(*words)
    guard = threading.Timer(60, process.kill)
    guard.start()
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        times -= line.startswith(beginning)
        if times == 0:
            os.kill(process.pid, signal.SIGKILL)
            break
    guard.cancel()
    process.communicate(timeout=20)
    assert times == 0, f"'{beginning}' was not said often enough: {said}"


def kill_and_resume(place: Place, text: str, moments: tuple[tuple[str, int], ...]) -> list[Trial]:
    """Kill an experiment at each of the moments, resume it to its end; its trials.

    Whatever had ended before a kill must stay as it was.
    """
    resume = ("experiment", "resume", "last", "--no-report")
    kept: dict[int, str] = {}
    words: tuple[str, ...] = ("experiment", "run", write(place, text))
    for moment in moments:
        kill_at(place, moment, *words)
        words = resume
        documents = {
            stored.trial.number: (stored.folder / "trial.json").read_text()
            for stored in find_run("last", place.runs).trials
            if stored.trial.outcome == "completed"
        }
        assert kept.items() <= documents.items(), "a trial that had ended was touched"
        kept = documents
    ended = place.pgdyno(*resume)
    assert ended.status == 0, ended.error
    assert "was cleaned up" in ended.error
    trials = trials_of(find_run("last", place.runs))
    again = place.pgdyno(*resume)
    assert again.status == 0 and trials_of(find_run("last", place.runs)) == trials
    completed = [trial for trial in trials if trial.outcome == "completed"]
    assert len(completed) == len({(trial.block, trial.variant) for trial in completed})
    others = [trial for trial in trials if trial not in completed]
    assert {trial.outcome for trial in others} == {"interrupted"}
    assert all("broken off" in (trial.reason or "") for trial in others)
    return trials
