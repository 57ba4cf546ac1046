"""Ceilings: what is kept under which key, and what share of one a measurement used."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.calibration.measure import Calibrating, ceiling_in, load_of
from pgdyno.calibration.store import (
    FILE_NAME,
    Answer,
    Calibration,
    Generator,
    ceiling_of,
    generator_of,
    keep,
    key_of,
    read,
)
from pgdyno.contract import ClosedLoop, Failed, Failure, OpenLoop, Plan, Summary, TransactionType
from pgdyno.errors import PgdynoError
from pgdyno.model import HostFacts
from pgdyno.stats.ceiling import Ceiling, generator_share, share_of_ceiling
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit

GENERATOR = Generator(cpu_model="cpu", cpus=2, kernel="6", engine_digest="e")
CEILING = Ceiling(
    throughput_per_s=90_000,
    transactions=200_000,
    cpu_ns=500_000_000,
    server_cpu_ns=1,
    clients=16,
    threads=1,
    reactor="epoll",
    measured_s=1.0,
)


def a_plan(**changes: object) -> Plan:
    kind = TransactionType(name="a", weight=1, source="a.sql", script="SELECT 1;")
    plan = Plan(
        name="a",
        conninfo="host=/x",
        clients=16,
        seed=1,
        duration_s=60.0,
        transaction_types=(kind,),
        output_dir="/y",
    )
    return plan.model_copy(update=changes)


def a_calibration(plan: Plan, ceiling: Ceiling = CEILING) -> Calibration:
    return Calibration(
        key=key_of(plan, GENERATOR, Answer()),
        name=plan.name,
        measured="2026-01-01T00:00:00+00:00",
        generator=GENERATOR,
        protocol=plan.protocol,
        answer=Answer(),
        ceiling=ceiling,
    )


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    found = build_run(tmp_path, RunOptions()).trials[0].summary
    assert found is not None
    return found


def test_what_is_kept_is_found_by_the_same_load_only(tmp_path: Path) -> None:
    keep(a_calibration(a_plan()), tmp_path)
    assert ceiling_of(a_plan(), GENERATOR, tmp_path) == CEILING
    assert ceiling_of(a_plan(seed=7, duration_s=1.0, conninfo=""), GENERATOR, tmp_path) == CEILING
    assert ceiling_of(a_plan(load=OpenLoop(rate_per_s=1.0)), GENERATOR, tmp_path) == CEILING


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "simple"},
        {"clients": 17},
        {"threads": 2},
        {"cpus": (0,)},
        {"reactor": "epoll"},
        {"variables": {"scale": "2"}},
        {"transaction_types": ()},
    ],
)
def test_another_load_has_another_ceiling(tmp_path: Path, changes: dict[str, object]) -> None:
    keep(a_calibration(a_plan()), tmp_path)
    assert ceiling_of(a_plan(**changes), GENERATOR, tmp_path) is None


def test_another_machine_engine_or_answer_has_another_ceiling(tmp_path: Path) -> None:
    keep(a_calibration(a_plan()), tmp_path)
    for name, value in {"cpus": 3, "kernel": "7", "cpu_model": None, "engine_digest": "f"}.items():
        other = GENERATOR.model_copy(update={name: value})
        assert ceiling_of(a_plan(), other, tmp_path) is None
    assert ceiling_of(a_plan(), GENERATOR, tmp_path, answer=Answer(row_bytes=9)) is None


def test_a_newer_one_takes_the_place_of_the_older(tmp_path: Path) -> None:
    newer = CEILING.model_copy(update={"cpu_ns": 1_000})
    keep(a_calibration(a_plan()), tmp_path)
    keep(a_calibration(a_plan(clients=2)), tmp_path)
    keep(a_calibration(a_plan(), newer), tmp_path)
    assert len(read(tmp_path)) == 2
    assert ceiling_of(a_plan(), GENERATOR, tmp_path) == newer


def test_a_file_that_cannot_be_read_counts_as_none_and_is_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"version": 1, "calibrations": [')
    assert ceiling_of(a_plan(), GENERATOR, tmp_path) is None
    keep(a_calibration(a_plan()), tmp_path)
    assert ceiling_of(a_plan(), GENERATOR, tmp_path) == CEILING


def test_a_folder_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PgdynoError, match="cannot keep the calibration") as caught:
        keep(a_calibration(a_plan()), tmp_path / "file")
    assert "XDG_STATE_HOME" in str(caught.value.hint)


def test_the_engine_is_known_by_its_contents(tmp_path: Path) -> None:
    facts = HostFacts(name="local", cpus=2, memory_bytes=1, kernel="6")
    digests = []
    for text in ("one", "two", "one"):
        (tmp_path / "engine").write_text(text)
        digests.append(generator_of(facts, tmp_path / "engine").engine_digest)
    assert digests[0] == digests[2] != digests[1]


def test_the_ceiling_of_a_core_comes_from_cpu_time() -> None:
    assert CEILING.per_core_per_s == pytest.approx(400_000)
    assert CEILING.cpu_ns_per_transaction == pytest.approx(2_500)
    assert CEILING.busy_share == pytest.approx(0.5)
    assert share_of_ceiling(92_000, CEILING, 1) == pytest.approx(0.23)
    assert share_of_ceiling(92_000, CEILING, 2) == pytest.approx(0.115)
    with pytest.raises(ValueError, match="at least one core"):
        share_of_ceiling(1, CEILING, 0)


def test_a_measurement_has_its_share_by_cores_it_could_use(summary: Summary) -> None:
    throughput_per_s, cost = summary.throughput_per_s, summary.own_cost
    assert throughput_per_s is not None
    assert cost is not None
    assert summary.measured_s is not None
    found = generator_share(summary, CEILING, host_cpus=1)
    assert found.of_ceiling == pytest.approx(throughput_per_s / 400_000)
    cpu_s = (cost.cpu_user_ns + cost.cpu_sys_ns) / 1e9
    assert found.busy == pytest.approx(cpu_s / summary.measured_s)
    assert generator_share(summary, None, host_cpus=1).of_ceiling is None


def test_the_load_on_the_null_server_is_closed_and_judges_no_results() -> None:
    kind = TransactionType(
        name="a",
        weight=1,
        source="a.sql",
        script="SELECT a FROM t \\gset\nUPDATE t SET b = :a::int, c = :c WHERE d = '12:30';",
        failure=Failure(column="a", success="1"),
    )
    plan = a_plan(transaction_types=(kind,), load=OpenLoop(rate_per_s=5.0), variables={"c": "3"})
    load = load_of(plan, Calibrating(duration_s=2.0))
    assert load.load == ClosedLoop()
    assert load.transaction_types[0].failure is None
    assert load.variables == {"a": "1", "c": "3"}
    assert load.duration_s == 2.0


def test_a_load_that_fails_on_the_null_server_has_no_ceiling(summary: Summary) -> None:
    failed = summary.measurement.model_copy(update={"failed": Failed(other=5)})
    with pytest.raises(PgdynoError, match="5 transactions failed on the null server"):
        ceiling_in(summary.model_copy(update={"measurement": failed}), 0)
    clean = summary.measurement.model_copy(update={"failed": Failed(), "unknown": 0})
    nothing = summary.model_copy(update={"measurement": clean, "own_cost": None})
    with pytest.raises(PgdynoError, match="finished no transaction"):
        ceiling_in(nothing, 0)
