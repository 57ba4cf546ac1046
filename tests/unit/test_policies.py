"""What comes next, decided without a clock or a disk."""

import pytest

from pgdyno.experiment.phases import begin_phase, end_phase, spoken
from pgdyno.experiment.policies import Next, Past, Stop, next_step, trial_order
from pgdyno.model import (
    Experiment,
    LoadChoice,
    Phase,
    Stopping,
    SystemChoice,
    Trial,
    Variant,
    WorkloadChoice,
)

pytestmark = pytest.mark.unit


def experiment(*names: str, replicates: int, seed: int = 1) -> Experiment:
    variants = tuple(
        Variant(
            name=name,
            workload=WorkloadChoice(name="noop"),
            system=SystemChoice(),
            load=LoadChoice(),
        )
        for name in names
    )
    return Experiment(
        id="abc", name="x", created="2026-01-01T00:00:00+00:00", pgdyno_version="0",
        variants=variants, stopping=Stopping(replicates=replicates), order_seed=seed,
    )  # fmt: skip


def trial(number: int) -> Trial:
    return Trial(number=number, variant="a", began="2026-01-01T00:00:00+00:00")


def ran(experiment: Experiment, *outcomes: str, took_s: float = 10.0) -> list[Past]:
    """What there is after trials with these outcomes, each the one that the policy asked for."""
    past: list[Past] = []
    for outcome in outcomes:
        step = next_step(experiment, past)
        assert isinstance(step, Next)
        past.append(
            Past(
                number=step.number, variant=step.variant.name, block=step.block,
                outcome=None if outcome == "killed" else outcome, duration_s=took_s,
            )
        )  # fmt: skip
    return past


def test_one_variant_runs_once_and_stops() -> None:
    single = experiment("a", replicates=1)
    first = next_step(single, [])
    assert isinstance(first, Next) and (first.number, first.variant.name, first.block) == (
        1,
        "a",
        1,
    )
    assert next_step(single, ran(single, "completed")) == Stop(reason="all 1 trials are done")


def test_every_block_holds_every_variant_once() -> None:
    order = list(trial_order(experiment("a", "b", "c", replicates=5)))
    blocks = [order[start : start + 3] for start in range(0, 15, 3)]
    assert all({name for _, name in block} == {"a", "b", "c"} for block in blocks)
    assert [{number for number, _ in block} for block in blocks] == [{n} for n in range(1, 6)]


def test_order_is_the_seeds_and_differs_between_seeds() -> None:
    def order(seed: int) -> tuple[tuple[int, str], ...]:
        return tuple(trial_order(experiment("a", "b", "c", replicates=4, seed=seed)))

    assert order(7) == order(7)
    assert len({order(seed) for seed in range(9)}) > 1


def test_the_stored_trials_alone_say_what_is_next() -> None:
    pair = experiment("a", "b", replicates=3)
    order = list(trial_order(pair))
    for done in range(6):
        step = next_step(pair, ran(pair, *["completed"] * done))
        assert isinstance(step, Next)
        assert (step.number, step.block, step.variant.name) == (done + 1, *order[done])


def test_variants_of_a_block_share_a_seed_and_blocks_do_not() -> None:
    pair = experiment("a", "b", replicates=2)
    seeds = []
    for done in range(4):
        step = next_step(pair, ran(pair, *["completed"] * done))
        assert isinstance(step, Next)
        seeds.append(step.variant.load.seed)
    assert seeds == [0, 0, 1, 1]


@pytest.mark.parametrize("ended", ["interrupted", "killed"])
def test_a_trial_cut_short_is_repeated_in_its_place_under_the_next_number(ended: str) -> None:
    pair = experiment("a", "b", replicates=2)
    before, again = (
        next_step(pair, ran(pair, "completed")),
        next_step(pair, ran(pair, "completed", ended, ended, ended)),
    )
    assert isinstance(before, Next) and isinstance(again, Next)
    assert (again.variant, again.block) == (before.variant, before.block)
    assert (before.number, again.number) == (2, 5)


def test_a_variant_that_never_completed_stops_the_experiment() -> None:
    pair = experiment("a", "b", replicates=3)
    stop = next_step(pair, ran(pair, "completed", "failed"))
    assert isinstance(stop, Stop) and stop.failed and "before it ever completed" in stop.reason
    resumed = next_step(pair, ran(pair, "completed", "failed"), earlier=2)
    assert isinstance(resumed, Next) and resumed.number == 3


def test_a_failure_is_tried_once_more_and_the_second_stops_the_experiment() -> None:
    pair = experiment("a", "b", replicates=3)
    assert isinstance(next_step(pair, ran(pair, *["completed"] * 3, "failed")), Next)
    stop = next_step(pair, ran(pair, *["completed"] * 3, "failed", "failed"))
    assert isinstance(stop, Stop) and stop.failed and "failed twice in block 2" in stop.reason


def test_a_budget_ends_before_the_block_that_does_not_fit() -> None:
    budget = experiment("a", "b", replicates=2).model_copy(
        update={"stopping": Stopping(policy="budget", replicates=2, budget_s=100.0)}
    )
    assert isinstance(next_step(budget, ran(budget, *["completed"] * 8)), Next)
    stop = next_step(budget, ran(budget, *["completed"] * 10))
    assert isinstance(stop, Stop) and not stop.failed and "5 blocks took 100 s" in stop.reason


def test_a_block_that_began_is_finished_even_over_the_budget() -> None:
    budget = experiment("a", "b", replicates=2).model_copy(
        update={"stopping": Stopping(policy="budget", replicates=1, budget_s=30.0)}
    )
    third = next_step(budget, ran(budget, "completed", "completed", took_s=5.0))
    assert isinstance(third, Next) and third.block == 2
    late = [*ran(budget, *["completed"] * 2, took_s=5.0)]
    late.append(Past(number=3, variant=third.variant.name, block=2, outcome="completed",
                     duration_s=300.0))  # fmt: skip
    assert isinstance(next_step(budget, late), Next)


def test_phases_are_spoken_of_as_people_write_them() -> None:
    assert [spoken(name) for name in ("load", "warmup")] == ["load", "warm-up"]


def test_phases_are_timed_and_end_once() -> None:
    one = end_phase(begin_phase(trial(1), "load", 1.0), 3.5, "reused")
    again = end_phase(one, 99.0)
    assert again == one
    assert one.phases == (Phase(name="load", begin_s=1.0, end_s=3.5, note="reused"),)
    assert begin_phase(one, "check", 4.0).phases[-1].end_s is None
