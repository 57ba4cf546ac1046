"""What comes next, decided without a clock or a disk."""

import pytest

from pgdyno.experiment.phases import begin_phase, end_phase, spoken
from pgdyno.experiment.policies import Next, Stop, block_order, fixed
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


def test_one_variant_runs_once_and_stops() -> None:
    single = experiment("a", replicates=1)
    first = fixed(single, [])
    assert isinstance(first, Next) and (first.number, first.variant.name, first.replicate) == (
        1,
        "a",
        1,
    )
    assert isinstance(fixed(single, [trial(1)]), Stop)


def test_every_block_holds_every_variant_once() -> None:
    order = block_order(experiment("a", "b", "c", replicates=5))
    blocks = [order[start : start + 3] for start in range(0, 15, 3)]
    assert all({name for name, _ in block} == {"a", "b", "c"} for block in blocks)
    assert [{replicate for _, replicate in block} for block in blocks] == [{n} for n in range(1, 6)]


def test_order_is_the_seeds_and_differs_between_seeds() -> None:
    one = [block_order(experiment("a", "b", "c", replicates=4, seed=7)) for _ in range(2)]
    assert one[0] == one[1]
    assert (
        len({tuple(block_order(experiment("a", "b", "c", replicates=4, seed=s))) for s in range(9)})
        > 1
    )


def test_phases_are_spoken_of_as_people_write_them() -> None:
    assert [spoken(name) for name in ("load", "warmup")] == ["load", "warm-up"]


def test_phases_are_timed_and_end_once() -> None:
    one = end_phase(begin_phase(trial(1), "load", 1.0), 3.5, "reused")
    again = end_phase(one, 99.0)
    assert again == one
    assert one.phases == (Phase(name="load", begin_s=1.0, end_s=3.5, note="reused"),)
    assert begin_phase(one, "check", 4.0).phases[-1].end_s is None
