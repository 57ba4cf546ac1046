"""Where a running experiment stands: which trial of how many, and the time that is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.experiment.guard import sole_runner
from pgdyno.experiment.policies import Next, next_step, past_of
from pgdyno.experiment.progress import Place
from pgdyno.experiment.remaining import place_of
from pgdyno.experiment.store import new_run
from pgdyno.model import (
    Experiment,
    LoadChoice,
    LoadReport,
    Phase,
    Stopping,
    SystemChoice,
    Trial,
    TrialOutcome,
    Variant,
    WorkloadChoice,
)
from pgdyno.reports.live import place_text

pytestmark = pytest.mark.unit

SIZES = {"a": 0, "b": 0}


def experiment(stopping: Stopping) -> Experiment:
    variants = tuple(
        Variant(
            name=name,
            workload=WorkloadChoice(name="noop"),
            system=SystemChoice(),
            load=LoadChoice(warmup_s=1, duration_s=9),
        )
        for name in SIZES
    )
    return Experiment(
        id="abcdef", name="x", created="2026-11-21T00:00:00+00:00", pgdyno_version="1",
        variants=variants, stopping=stopping,
    )  # fmt: skip


def trial(number: int, step: Next, outcome: TrialOutcome, length_s: float) -> Trial:
    return Trial(
        number=number,
        variant=step.variant.name,
        block=step.block,
        began="2026-11-21T00:00:00+00:00",
        outcome=outcome,
        load=LoadReport(reused=number > 1, reason=""),
        phases=(Phase(name="measure", begin_s=0, end_s=length_s),),
    )


def place_after(asked: Experiment, *outcomes: TrialOutcome) -> Place:
    """The place of the trial after those, each of which took 20 s."""
    stored: list[Trial] = []
    for outcome in (*outcomes, None):
        past = [past_of(each) for each in stored]
        step = next_step(asked, past)
        assert isinstance(step, Next)
        if outcome is None:
            return place_of(asked, step, past, stored, SIZES)
        stored.append(trial(len(stored) + 1, step, outcome, 20.0))
    raise AssertionError("unreachable")


def test_of_a_fixed_number_all_that_is_left_counts() -> None:
    asked = experiment(Stopping(replicates=3))
    first = place_after(asked)
    assert (first.number, first.last, first.block) == (1, 6, 1)
    assert 6 * 10 < first.left_s < 6 * 20
    third = place_after(asked, "completed", "completed")
    assert (third.number, third.last, third.block) == (3, 6, 2)
    assert third.left_s == pytest.approx(4 * 20)


def test_what_is_repeated_is_one_trial_more() -> None:
    again = place_after(experiment(Stopping(replicates=3)), "completed", "interrupted")
    assert (again.number, again.last, again.block) == (3, 7, 1)


def test_a_budget_knows_its_time_and_no_number() -> None:
    asked = experiment(Stopping(policy="budget", replicates=2, budget_s=100.0))
    place = place_after(asked, "completed")
    assert (place.number, place.last, place.left_s) == (2, None, 80.0)


def test_a_place_in_one_line() -> None:
    place = Place(number=3, last=20, block=2, variant="off", left_s=560.0)
    assert place_text(place) == "trial 3 of 20, block 2: off; about 9 min 20 s left"


def test_one_at_a_time_works_on_a_run(tmp_path: Path) -> None:
    run = new_run(experiment(Stopping()), tmp_path)
    with (
        sole_runner(run),
        pytest.raises(PgdynoError, match="under way in another process"),
        sole_runner(run),
    ):
        pytest.fail("two worked on it")
    with sole_runner(run):
        pass
