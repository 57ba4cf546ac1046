"""What an experiment takes, what must be done again between trials, and whether it can decide."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from pgdyno.experiment.grouping import Grouping
from pgdyno.experiment.planning import (
    TrialTime,
    needed_blocks,
    plan_experiment,
    refusals,
    trial_time,
)
from pgdyno.experiment.policies import Next, Past, Stop, next_step
from pgdyno.experiment.precision import half_widths
from pgdyno.model import (
    Experiment,
    InitdbChoice,
    LoadChoice,
    LoadReport,
    Phase,
    Response,
    Stopping,
    SystemChoice,
    Trial,
    Variant,
    WorkloadChoice,
)
from pgdyno.workloads import catalog
from pgdyno.workloads.resolving import resolve

pytestmark = pytest.mark.unit

CONTEXTS = {"shared_buffers": "postmaster", "max_wal_size": "sighup", "work_mem": "user"}
TIME = TrialTime(first_s=70.0, again_s=60.0, known_s=55.0, trials=0)


def variant(name: str, *, scale: int = 1, workload: str = "tpcb", **parts: Any) -> Variant:
    """A variant; `parts` are fields of its system, or of its load."""
    system = {key: value for key, value in parts.items() if key in SystemChoice.model_fields}
    load = {key: value for key, value in parts.items() if key not in system}
    return Variant(
        name=name,
        workload=WorkloadChoice(name=workload, parameters={"scale": scale}),
        system=SystemChoice(**system),
        load=LoadChoice(**load),
    )


def grouping(*variants: Variant) -> Grouping:
    workloads = {
        each.name: resolve(
            catalog.find(each.workload.name), {"scale": str(each.workload.parameters["scale"])}
        )
        for each in variants
    }
    return Grouping(workloads=workloads, contexts=CONTEXTS)


def experiment(*variants: Variant, **fields: Any) -> Experiment:
    known: dict[str, Any] = {"responses": (Response(),), "baseline": variants[0].name}
    return Experiment(
        id="abc", name="x", created="2026-01-01T00:00:00+00:00", pgdyno_version="0",
        variants=variants, **(known | fields),
    )  # fmt: skip


PLAIN = variant("plain")


@pytest.mark.parametrize(
    ("other", "redo"),
    [
        (variant("b", pg="15"), "build"),
        (variant("b", dsn="host=x"), "build"),
        (variant("b", data="/srv/x"), "initdb"),
        (variant("b", tcp=True), "initdb"),
        (variant("b", initdb=InitdbChoice(checksums=True)), "initdb"),
        (variant("b", scale=2), "load"),
        (variant("b", settings={"Shared_Buffers": "1GB", "work_mem": "8MB"}), "restart"),
        (variant("b", settings={"never.heard.of": "1"}), "restart"),
        (variant("b", cpus=(0, 1)), "restart"),
        (variant("b", settings={"max_wal_size": "8GB"}), "reload"),
        (variant("b", settings={"work_mem": "8MB"}), "reload"),
        (variant("b", workload="select-only", clients=99), "run"),
        (variant("b", scale=2, pg="15", clients=9), "build"),
    ],
)
def test_what_must_be_done_again(other: Variant, redo: str) -> None:
    both = grouping(PLAIN, other)
    assert both.redo(PLAIN, other) == both.redo(other, PLAIN) == redo
    assert both.shares_state(PLAIN, other) == (redo in ("restart", "reload", "run"))


def test_variants_that_can_share_loaded_data_are_one_group() -> None:
    variants = (
        PLAIN,
        variant("big", scale=2),
        variant("settings", settings={"shared_buffers": "1GB"}),
        variant("old", pg="15"),
        variant("big read", scale=2, workload="select-only"),
    )
    groups = grouping(*variants).groups(variants)
    assert [group.names for group in groups] == [
        ("plain", "settings"),
        ("big", "big read"),
        ("old",),
    ]


def planned(asked: Experiment, **times: TrialTime) -> Any:
    variants = asked.variants
    return plan_experiment(
        asked, grouping(*variants), {each.name: times.get(each.name, TIME) for each in variants}
    )


def test_trials_follow_each_other_and_data_are_loaded_once_for_each_group() -> None:
    asked = experiment(PLAIN, variant("b", clients=2),
                       variant("big", scale=2), stopping=Stopping(replicates=7))  # fmt: skip
    plan = planned(asked)
    assert [trial.number for trial in plan.trials] == list(range(1, 22))
    assert sum(trial.loads for trial in plan.trials) == 2
    assert plan.trials[0].loads and plan.trials[0].redo is None
    for before, after in zip(plan.trials, plan.trials[1:], strict=False):
        assert after.begins_s == pytest.approx(before.begins_s + before.takes_s)
    assert plan.total_s == pytest.approx(21 * 60 + 2 * 10)
    assert plan.redo == {"plain": "run", "b": "run", "big": "load"}


def test_the_plan_is_the_order_in_which_the_policy_asks() -> None:
    asked = experiment(PLAIN, variant("b", clients=2), stopping=Stopping(replicates=6))
    past: list[Past] = []
    while isinstance(step := next_step(asked, past), Next):
        past.append(
            Past(
                number=step.number, variant=step.variant.name, block=step.block,
                outcome="completed", duration_s=1.0,
            )
        )  # fmt: skip
    assert [(t.number, t.block, t.variant) for t in planned(asked).trials] == [
        (each.number, each.block, each.variant) for each in past
    ]


def refused(asked: Experiment) -> list[tuple[str, str]]:
    variants = asked.variants
    return list(refusals(asked, grouping(*variants), {each.name: TIME for each in variants}))


@pytest.mark.parametrize(
    ("stopping", "told"),
    [
        (Stopping(replicates=3), [(
            "replicates",
            "replicates = 3 cannot decide: the smallest p of 3 blocks is 0.25, and 0.05 is wanted; "
            "replicates = 6 can (or responses = [], to measure without comparing)",
        )]),
        (Stopping(replicates=6), []),
        (Stopping(policy="precision", precision=0.01, max_replicates=5), [(
            "max_replicates",
            "max_replicates = 5 cannot decide: the smallest p of 5 blocks is 0.062, and 0.05 is "
            "wanted; max_replicates = 6 can (or responses = [], to measure without comparing)",
        )]),
        (Stopping(policy="budget", budget_s=200, replicates=2), [(
            "budget",
            "a budget of 3 min 20 s is too small for two trials of each variant; about 12 min 10 s "
            "would be enough",
        )]),
        (Stopping(policy="budget", budget_s=500, replicates=2), [(
            "budget",
            "a budget of 8 min 20 s has room for 4 blocks, which cannot decide: the smallest p of "
            "4 blocks is 0.12, and 0.05 is wanted; 6 can, for which about 12 min 10 s would be "
            "enough",
        )]),
        (Stopping(policy="budget", budget_s=731, replicates=2), []),
    ],
)  # fmt: skip
def test_a_design_that_cannot_decide_is_refused_with_what_could(
    stopping: Stopping, told: list[tuple[str, str]]
) -> None:
    asked = experiment(PLAIN, variant("b", clients=2), stopping=stopping)
    assert refused(asked) == told
    unjudged = refused(asked.model_copy(update={"responses": ()}))
    assert [key for key, _ in unjudged] == [key for key, text in told if "too small" in text]


def test_several_comparisons_need_more_blocks() -> None:
    three = experiment(PLAIN, variant("b", clients=2), variant("c", clients=3))
    copy = PLAIN.model_copy(update={"name": "plain (again)", "copy_of": "plain"})
    assert needed_blocks(three) == 7
    assert needed_blocks(experiment(PLAIN, variant("b", clients=2), copy)) == 6
    assert needed_blocks(experiment(PLAIN, copy)) == 6, "alone, the copy is what is compared"
    assert needed_blocks(experiment(PLAIN)) is None


def stored(number: int, *phases: tuple[str, float], reused: bool) -> Trial:
    at_s, made = 0.0, []
    for name, length_s in phases:
        made.append(Phase(name=name, begin_s=at_s, end_s=at_s + length_s))  # type: ignore[arg-type]
        at_s += length_s
    return Trial(
        number=number, variant="plain", began="2026-01-01T00:00:00+00:00", outcome="completed",
        phases=tuple(made), load=LoadReport(reused=reused, reason="x"),
    )  # fmt: skip


def test_a_trials_time_is_guessed_from_its_file_and_known_from_stored_trials() -> None:
    guessed = trial_time(variant("a", warmup_s=10.0, duration_s=60.0), 600_000_000, [])
    assert guessed.known_s == 70.0 and guessed.trials == 0
    assert 75 < guessed.again_s < guessed.first_s < 95
    first = stored(1, ("provision", 1), ("load", 40), ("warmup", 10), ("measure", 60), reused=False)
    again = stored(2, ("provision", 1), ("reset", 3), ("warmup", 10), ("measure", 60), reused=True)
    known = trial_time(PLAIN, 600_000_000, [first, again])
    assert (known.first_s, known.again_s, known.trials) == (111.0, 74.0, 2)


def test_a_steady_warmup_counts_as_it_turned_out() -> None:
    steady = variant("a", warmup_s=60.0, duration_s=60.0, steady_warmup=True)
    assert trial_time(steady, 0, []).known_s == 90.0
    ended = stored(1, ("provision", 1), ("warmup", 7), ("measure", 60), reused=True)
    assert trial_time(steady, 0, [ended]).known_s == 67.0


def values_of(noise: random.Random, sd_log: float) -> dict[str, float]:
    return {"throughput_per_s": 1000 * math.exp(noise.gauss(0, sd_log))}


@pytest.mark.parametrize(("sd_log", "least", "most"), [(0.002, 6, 9), (0.05, 40, 40)])
def test_precision_stops_as_soon_as_effects_are_known_well_enough(
    sd_log: float, least: int, most: int
) -> None:
    asked = experiment(
        PLAIN, variant("b", clients=2),
        stopping=Stopping(policy="precision", precision=0.01, max_replicates=40),
    )  # fmt: skip
    noise, past = random.Random(7), list[Past]()
    while isinstance(step := next_step(asked, past), Next):
        past.append(
            Past(
                number=step.number, variant=step.variant.name, block=step.block,
                outcome="completed", duration_s=1.0, values=values_of(noise, sd_log),
            )
        )  # fmt: skip
    assert isinstance(step, Stop) and not step.failed
    assert least <= len(past) / 2 <= most
    assert ("without the precision" in step.reason) == (len(past) == 80), step.reason
    values: dict[str, dict[int, float]] = {"plain": {}, "b": {}}
    for each in past:
        values[each.variant][each.block] = each.values["throughput_per_s"]
    width = half_widths(asked, values)["b"]
    assert width is not None and (width <= 0.01) == (len(past) < 80)
