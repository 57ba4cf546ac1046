"""What stands against a comparison: every rule refuses what it should and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.experiment.comparability import Comparability, Purpose, judge_comparability
from pgdyno.experiment.readings import Age, Side
from tests.comparisons import changed, side

pytestmark = pytest.mark.unit
ALIKE = side("a", [100.0, 101.0])
RUNS = Purpose()


def judged(other: Side, purpose: Purpose = RUNS) -> Comparability:
    return judge_comparability(ALIKE, other, purpose)


def experiment(*factors: str) -> Purpose:
    return Purpose(factors=frozenset(factors), one_experiment=True)


def test_nothing_stands_against_the_same() -> None:
    found = judged(side("b", [90.0, 91.0]))
    assert (found.obstacles, found.differences, found.like_for_like) == ((), (), True)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("durability", {"durability": "D1"}),
        ("state", {"data": {"workload": "tpcb", "data version": "1", "scale": "50"}}),
        ("host", {"host": "4 × CPU, 16.0 GB"}),
        ("engine", {"tool_version": "0.2.0"}),
        ("tool", {"tool": "pgbench"}),
        ("build", {"build": ("assertions are compiled in",)}),
        ("generator", {"generator_share": 0.93}),
        ("age", {"age": Age(measurements=4, dead_share=0.0, bytes=1_000_000)}),
        ("dead rows", {"age": Age(measurements=0, dead_share=0.3, bytes=1_000_000)}),
        ("bloat", {"age": Age(measurements=0, dead_share=0.0, bytes=1_400_000)}),
    ],
)
def test_what_is_refused(name: str, changes: dict[str, object]) -> None:
    found = judged(side("b", [100.0], **changes))
    assert [each.name for each in found.refused] == [name]
    assert not found.like_for_like


def test_what_nobody_wrote_down_is_no_difference() -> None:
    unknown = side(
        "b", [100.0], tool_version=None, data=None, settings=None, host=None, durability=None,
        writes=None, age=Age(), generator_share=None, server_version=None, kernel=None,
    )  # fmt: skip
    assert judged(unknown).obstacles == ()


def test_reading_only_has_no_class_to_differ_in() -> None:
    assert judged(side("b", [100.0], durability="none", writes=False)).refused == ()


def test_incomplete_trials_and_wrong_data_are_refused() -> None:
    cut = changed(side("b", [100.0]), complete=False, reason="was interrupted")
    wrong = changed(side("b", [100.0]), broken=("sums (a == b)",))
    assert [each.name for each in judged(cut).refused] == ["incomplete"]
    assert "was interrupted" in judged(cut).refused[0].sentence
    assert [each.name for each in judged(wrong).refused] == ["checks"]


def test_error_rates_are_held_against_what_matters() -> None:
    def failing(share: float) -> Side:
        return changed(side("b", [100.0]), values={"not_committed_share": share})

    # A quarter of 2 % is 0.5 %.
    assert judged(failing(0.0049)).obstacles == ()
    assert [each.name for each in judged(failing(0.0051)).refused] == ["errors"]
    loose = Purpose(matters=0.10)
    assert judge_comparability(ALIKE, failing(0.0051), loose).refused == ()


def test_a_class_that_was_asked_for_is_a_warning_and_marks_the_verdict() -> None:
    off = side("off", [100.0], durability="D1", settings={"shared_buffers": "1GB", "fsync": "off"})
    found = judged(off, experiment("set:fsync"))
    assert found.refused == ()
    assert [each.name for each in found.warned] == ["durability"]
    assert not found.like_for_like
    # In stored runs nobody asked for it; nor does another factor.
    assert judged(off).refused[0].name == "durability"
    assert judged(off, experiment("clients")).refused[0].name == "durability"


def test_a_providers_promise_is_compared_within_one_experiment_only() -> None:
    sides = side("a", [100.0], durability="D?"), side("b", [100.0], durability="D?")
    assert [each.name for each in judge_comparability(*sides, RUNS).refused] == ["provider"]
    found = judge_comparability(*sides, experiment("clients"))
    assert (found.refused, [each.name for each in found.warned]) == ((), ["provider"])
    assert found.like_for_like


def test_what_was_varied_is_no_other_data() -> None:
    scale = side("b", [100.0], data={"workload": "tpcb", "data version": "1", "scale": "50"})
    other = side("b", [100.0], data={"workload": "userlogin", "data version": "3", "users": "9"})
    assert judged(scale, experiment("param:scale")).refused == ()
    assert judged(scale, experiment("clients")).refused != ()
    assert judged(other, experiment("workload")).refused == ()


def test_another_server_version_is_told_and_not_refused() -> None:
    found = judged(side("b", [100.0], server_version="17.2"))
    assert found.refused == ()
    assert [each.sentence for each in found.differences] == ["server version: 18.4 against 17.2"]


def test_trials_in_turns_share_their_age() -> None:
    aged = side("b", [100.0], age=Age(measurements=4, dead_share=0.0, bytes=1_000_000))
    assert judged(aged, experiment("clients")).refused == ()
    assert [each.name for each in judged(aged, experiment("clients")).warned] == ["age"]


def test_several_differences_explain_nothing() -> None:
    found = judged(side("b", [100.0], load={"clients": "64", "protocol": "simple"}, settings={}))
    assert [each.what for each in found.differences] == ["clients", "protocol", "shared_buffers"]
    assert [each.name for each in found.warned] == ["several"]
    assert found.differences[2].variant == "default"


def test_the_same_odd_build_on_both_sides_is_named() -> None:
    odd = {"build": ("assertions are compiled in",)}
    found = judge_comparability(side("a", [1.0], **odd), side("b", [1.0], **odd), RUNS)
    assert (found.refused, [each.name for each in found.warned]) == ((), ["build"])


def told(one: Side, other: Side, purpose: Purpose) -> list[str]:
    return [each.sentence for each in judge_comparability(one, other, purpose).differences]


def test_a_factor_that_no_document_tells_of_is_told_by_its_level() -> None:
    one = side("a", [1.0], levels={"server_cpus": "0"})
    other = side("b", [1.0], levels={"server_cpus": "0-1"})
    assert told(one, other, experiment("server_cpus")) == ["server_cpus: 0 against 0-1"]
    assert told(ALIKE, other, experiment("server_cpus")) == ["server_cpus: as given against 0-1"]
    # Levels of different experiments do not stand beside each other.
    assert told(one, other, RUNS) == []


def test_a_factor_is_told_once() -> None:
    one = side("a", [1.0], levels={"clients": "16", "pg": "18", "mix:login": "1"})
    other = side(
        "b", [1.0], levels={"clients": "64", "pg": "17", "mix:login": "9"}, server_version="17.2",
        load={"clients": "64", "protocol": "prepared", "scripts and weights": "0123abcd"},
    )  # fmt: skip
    one = changed(one, circumstances=replace(one.readings[0].circumstances, load={
        "clients": "16", "protocol": "prepared", "scripts and weights": "4567abcd",
    }))  # fmt: skip
    assert told(one, other, experiment("clients", "pg", "mix:login")) == [
        "server version: 18.4 against 17.2", "clients: 16 against 64", "mix:login: 1 against 9",
    ]  # fmt: skip


def test_who_varies_cpus_or_the_server_compares_places() -> None:
    fewer = side("b", [1.0], host="8 × CPU, 16.0 GB, 2 CPUs allowed")
    assert judged(fewer, experiment("engine_cpus")).refused == ()
    assert [each.name for each in judged(fewer, experiment("clients")).refused] == ["host"]


def test_who_varies_standbys_asks_for_their_classes() -> None:
    found = judged(side("b", [1.0], durability="D3"), experiment("standbys"))
    assert (found.refused, [each.name for each in found.warned]) == ((), ["durability"])


def test_who_varies_initdb_asks_for_other_files_of_the_same_data() -> None:
    plain = {"workload": "tpcb", "initdb options": "none"}
    summed = {"workload": "tpcb", "initdb options": "--data-checksums"}
    one, other = side("a", [1.0], data=plain), side("b", [1.0], data=summed)
    assert judge_comparability(one, other, experiment("checksums")).refused == ()
    found = judge_comparability(one, other, experiment("clients"))
    assert [each.name for each in found.refused] == ["state"]
