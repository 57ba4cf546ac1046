"""Noise floors kept by machine, workload and metric, and what a later comparison says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pgdyno.calibration.noise import KeptNoise, Machine, keep_noise, latest_noise, read_noise
from pgdyno.experiment.comparing import compare
from pgdyno.experiment.noise_keeping import keep_floors
from pgdyno.reports.comparison import kept_noise_words
from tests.builders import RunOptions, build_run
from tests.comparisons import asked, side

pytestmark = pytest.mark.unit
MACHINE = Machine(cpu_model="CPU", cpus=8, memory_bytes=2**34, kernel="6.1")


def floor(**changes: object) -> KeptNoise:
    known = {
        "machine": MACHINE, "workload": "tpcb", "metric": "throughput_per_s", "run": "k7m2qd",
        "measured": "2026-11-20T18:40:00+00:00", "blocks": 10, "sd_log": 0.01, "floor": 0.012,
    }  # fmt: skip
    return KeptNoise.model_validate(known | changes)


def test_the_newest_of_a_kind_is_kept(tmp_path: Path) -> None:
    keep_noise(floor(), tmp_path)
    keep_noise(floor(metric="p99_us", floor=0.08), tmp_path)
    keep_noise(floor(measured="2026-11-21T18:40:00+00:00", floor=0.02), tmp_path)
    found = latest_noise(tmp_path, MACHINE, "tpcb", "throughput_per_s")
    assert found is not None and found.floor == 0.02
    assert len(read_noise(tmp_path, MACHINE)) == 2
    # The report of an experiment from before says nothing about today.
    keep_noise(floor(measured="2026-11-19T18:40:00+00:00", floor=0.5), tmp_path)
    found = latest_noise(tmp_path, MACHINE, "tpcb", "throughput_per_s")
    assert found is not None and found.floor == 0.02


@pytest.mark.parametrize(("blocks", "kept"), [(5, 0), (6, 1)])
def test_an_experiment_that_was_stopped_early_is_not_kept(
    tmp_path: Path, blocks: int, kept: int
) -> None:
    run = build_run(tmp_path / "runs", RunOptions(duration_s=4, warmup_s=0))
    values = [1000.0 + number for number in range(blocks)]
    again = side("on (again)", values[::-1])
    found = compare(side("on", values), [again], replace(asked(), again="on (again)"))
    keep_floors(run, found, tmp_path / "state")
    file = tmp_path / "state" / "noise.json"
    assert (len(json.loads(file.read_text())["floors"]) if file.exists() else 0) == kept


@pytest.mark.parametrize("change", [{"cpus": 4}, {"kernel": "6.2"}, {"memory_bytes": 2**33}])
def test_another_machine_has_its_own(tmp_path: Path, change: dict[str, object]) -> None:
    keep_noise(floor(), tmp_path)
    other = MACHINE.model_copy(update=change)
    assert latest_noise(tmp_path, other, "tpcb", "throughput_per_s") is None
    assert latest_noise(tmp_path, MACHINE, "userlogin", "throughput_per_s") is None


def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "noise.json").write_text("{")
    assert read_noise(tmp_path, MACHINE) == ()
    keep_noise(floor(), tmp_path)
    assert read_noise(tmp_path, MACHINE) == (floor(),)


def test_its_age_and_what_it_means_are_said() -> None:
    now = datetime(2026, 11, 23, 18, 40, tzinfo=UTC)
    assert floor().age_s(now) == 3 * 86400
    words = kept_noise_words(floor(), "3 days", 10)
    assert words.startswith(
        "throughput: 1.2 % (A/A of tpcb 3 days ago, 10 blocks); 10 blocks find "
    )
    assert kept_noise_words(floor(), "3 days", 3).endswith("; 3 blocks cannot decide")
