"""`pgdyno compare` and `experiment report` over run folders and files, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pgdyno.cli import cli
from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import Run
from pgdyno.model import Durability
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).parent.parent / "golden" / "foreign"
QUICK = RunOptions(duration_s=3, warmup_s=0)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: two alike, one of another class, one killed, one of a newer pgdyno."""
    folder = tmp_path_factory.mktemp("compare")
    for name in ("before", "after", "delayed", "killed", "newer"):
        options = QUICK
        if name == "killed":
            options = RunOptions(duration_s=3, warmup_s=0, missing=("summary.json",))
        build_run(folder / name, options).folder.rename(folder / f"20261120T184000Z-x-{name}")
    delayed = next((folder / "20261120T184000Z-x-delayed").glob("trials/*/trial.json"))
    trial = json.loads(delayed.read_text())
    trial["durability"] = Durability(durability_class="D1", because=("said so",)).model_dump()
    delayed.write_text(json.dumps(trial))
    newer = next((folder / "20261120T184000Z-x-newer").glob("trials/*/trial.json"))
    newer.write_text(json.dumps({"version": 2}))
    return folder


def ran(output: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["compare", "--output", str(output), *words])


def test_two_runs_alike(output: Path) -> None:
    result = ran(output, "before", "--", "after", "--json")
    assert result.exit_code == 0, result.output
    (pair,) = json.loads(result.stdout)["pairs"]
    assert pair["obstacles"] == [] and pair["differences"] == []
    assert pair["findings"][0]["verdict"] == "undecided"


def test_another_class_is_refused_until_the_person_insists(output: Path) -> None:
    result = ran(output, "before", "--", "delayed")
    assert result.exit_code == 3
    assert "! different durability classes: D2" in result.stdout
    insisted = ran(output, "before", "--", "delayed", "--even-so")
    assert insisted.exit_code == 0 and "not like for like" in insisted.stdout


def test_an_incomplete_run_is_refused(output: Path) -> None:
    result = ran(output, "before", "--", "killed")
    assert result.exit_code == 3
    assert "has no readable summary.json" in " ".join(result.stdout.split())


def test_a_metric_and_worse_as_a_failure(output: Path) -> None:
    words = ("before", "--", "after", "-m", "p99_us", "-m", "p99_9_us", "--fail-if-worse")
    result = ran(output, *words)
    assert result.exit_code == 0 and "p99 of response time" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to compare"),
        (("before",), "one side only"),
        (("before", "--"), "nothing stands after '--'"),
        (("--", "before"), "nothing stands before '--'"),
        (("before", "--", "before"), "on both sides: before trial 1"),
        (("before", "before", "--", "after"), "named more than once on one side: before trial 1"),
        (("nobody", "--", "/etc/hostname"), "no run 'nobody'"),
        (("before", "--", "newer"), "has format version 2"),
        (("before", "--", "after:of"), "has no variant 'of'"),
        (("before", "--", "/etc"), "/etc is a folder, and neither a run nor a trial"),
        (("before", "--", "after", "-m", "p9_us"), "'p9_us' is not a response metric"),
    ],
)
def test_bad_input(output: Path, words: tuple[str, ...], said: str) -> None:
    result = ran(output, *words)
    assert isinstance(result.exception, PgdynoError), result.output
    assert said in result.exception.message
    assert result.exception.hint and result.exception.exit_code == 2


def test_all_bad_words_are_told_at_once(output: Path) -> None:
    result = ran(output, "nobody", "nothing", "--", "/etc")
    assert isinstance(result.exception, PgdynoError)
    assert len(result.exception.message.splitlines()) == 3


def test_files_of_pgbench(output: Path) -> None:
    one, other = GOLDEN / "pgbench-15.txt", GOLDEN / "pgbench-15-progress.txt"
    result = ran(output, str(one), "--", str(other))
    assert result.exit_code == 0
    joined = " ".join(result.stdout.split())
    assert "the files do not say: durability class, host, server settings" in joined
    assert "p99.9" not in joined, "pgbench never gives it"
    assert "too few for an interval" in joined
    mixed = ran(output, "before", "--", str(one))
    assert mixed.exit_code == 3 and "different load generators" in mixed.stdout


def test_a_run_of_one_variant_has_no_report_of_an_experiment(output: Path) -> None:
    words = ["experiment", "report", "before", "--output", str(output)]
    result = CliRunner().invoke(cli, words)
    assert isinstance(result.exception, PgdynoError)
    assert "there is nothing to compare" in result.exception.message


def test_a_trials_folder_is_a_side(output: Path) -> None:
    trial = Run(folder=output / "20261120T184000Z-x-before").trials[0].folder
    assert ran(output, str(trial), "--", "after").exit_code == 0
