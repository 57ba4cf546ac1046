"""What `plan` and `show` print, as a person reads it in 80 columns."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from pgdyno.experiment.grouping import Grouping
from pgdyno.experiment.planning import ExperimentPlan, TrialTime, plan_experiment
from pgdyno.experiment.policies import Next, Past, next_step
from pgdyno.experiment.standing import standing
from pgdyno.model import (
    Experiment,
    LoadChoice,
    Response,
    Stopping,
    SystemChoice,
    Variant,
    WorkloadChoice,
)
from pgdyno.reports import plan as plan_report
from pgdyno.reports import standing as standing_report
from pgdyno.workloads import catalog
from pgdyno.workloads.resolving import resolve

pytestmark = pytest.mark.unit


def variant(name: str, value: str) -> Variant:
    return Variant(
        name=name,
        levels={"set:synchronous_commit": value},
        workload=WorkloadChoice(name="tpcb", parameters={"scale": 1}),
        system=SystemChoice(settings={"synchronous_commit": value}),
        load=LoadChoice(),
    )


ON, OFF = variant("commit=on", "on"), variant("commit=off", "off")
ASKED = Experiment(
    id="abcdef", name="commit", question="does it pay?", created="2026-01-01T00:00:00+00:00",
    pgdyno_version="0", baseline="commit=on", responses=(Response(),), aa=True, order_seed=3,
    variants=(ON, OFF, ON.model_copy(update={"name": "commit=on (again)", "copy_of": ON.name})),
    stopping=Stopping(replicates=6),
)  # fmt: skip


def printed(show: object) -> str:
    text = io.StringIO()
    show(Console(file=text, width=80, color_system=None))  # type: ignore[operator]
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def planned() -> ExperimentPlan:
    resolved = resolve(catalog.find("tpcb"), {"scale": "1"})
    grouping = Grouping(
        workloads={each.name: resolved for each in ASKED.variants},
        contexts={"synchronous_commit": "user"},
    )
    guessed = TrialTime(first_s=95.0, again_s=80.0, known_s=70.0, trials=0)
    known = TrialTime(first_s=95.0, again_s=75.0, known_s=70.0, trials=4)
    return plan_experiment(
        ASKED, grouping, {each.name: known if each is OFF else guessed for each in ASKED.variants}
    )


def test_a_plan_reads_from_the_question_to_what_it_can_show() -> None:
    text = printed(lambda console: plan_report.render_plan(ASKED, planned(), 0.021, console))
    head, _, rest = text.partition("\n\n")
    assert head == "commit: does it pay?"
    assert rest.startswith(
        """\
variant            needs redone                a trial takes  from
commit=on          is the baseline                1 min 20 s  a guess
commit=off         a reload                       1 min 15 s  4 earlier trials
commit=on (again)  nothing: tells noise (A/A)     1 min 20 s  a guess
one loaded state, shared by all trials; loading it takes about 15.0 s in all

trial  block  variant            redo      begins at       takes
    1      1  commit=off         all             0 s  1 min 35 s
    2         commit=on (again)  reload   1 min 35 s  1 min 20 s
    3         commit=on          run      2 min 55 s  1 min 20 s
    4      2  commit=on          run      4 min 15 s  1 min 20 s
"""
    ), rest
    assert "18 trials in 6 blocks, about 23 min 50 s" in text
    assert "it can decide: the smallest p of 6 blocks is 0.031, 0.05 is wanted" in text
    assert "finds a difference of 2.1 %" in text.replace("\n", " ")
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_plan_for_programs_says_the_same() -> None:
    document = json.loads(json.dumps(plan_report.as_json(ASKED, planned(), None)))
    assert [each["number"] for each in document["trials"]] == list(range(1, 19))
    assert document["trials"][0]["loads"] and not document["trials"][1]["loads"]
    assert document["total_s"] == pytest.approx(sum(t["takes_s"] for t in document["trials"]))
    assert (document["needed_blocks"], document["detectable"]) == (6, None)


def past(trials: int) -> list[Past]:
    ran: list[Past] = []
    for number in range(1, trials + 1):
        step = next_step(ASKED, ran)
        assert isinstance(step, Next)
        ran.append(
            Past(
                number=number, variant=step.variant.name, block=step.block, outcome="completed",
                duration_s=30.0, values={"throughput_per_s": 1000.0 + number},
            )
        )  # fmt: skip
    return ran


def shown(ran: list[Past]) -> str:
    found = standing(ASKED, ran)
    return printed(lambda console: standing_report.render_standing(ASKED, found, console))


def test_how_far_it_is_says_what_comes_next() -> None:
    text = shown(past(7))
    assert "commit (abcdef): does it pay?" in text
    assert "7 of 18 trials have completed, 2 whole blocks, in 3 min 30 s" in text
    step = next_step(ASKED, past(7))
    assert isinstance(step, Next)
    assert f"next: trial 8, block 3, {step.variant.name}; go on with: pgdyno exp" in text
    assert "finished: all 18 trials are done" in shown(past(18))


def test_a_trial_that_has_not_ended_is_told_apart_from_one_that_failed() -> None:
    ran = past(3)
    failed = Past(number=4, variant="commit=off", block=2, outcome="failed", duration_s=1.0)
    running = Past(number=5, variant="commit=off", block=2, outcome=None, duration_s=1.0)
    found = standing(ASKED, [*ran, failed, running])
    assert [each.repeated for each in found.variants] == [0, 1, 0]
    assert found.open == running
    assert "trial 5, block 2, commit=off: under way, or broken off" in shown(
        [*ran, failed, running]
    )
    document = standing_report.as_json(ASKED, found)
    assert (document["open"], document["completed"], document["trials_at_most"]) == (5, 3, 18)
