"""Stored runs on the command line: good, broken and foreign folders beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pgdyno.cli import cli
from pgdyno.errors import PgdynoError
from pgdyno.experiment.store import find_run
from tests.builders import RunOptions, build_run

pytestmark = pytest.mark.unit
QUICK = RunOptions(duration_s=3, warmup_s=0)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """One good run, and folders spoilt in every way but one each."""
    good = build_run(tmp_path, QUICK).folder
    # An empty trial folder is what a kill between two steps leaves.
    (good / "trials" / "2-none").mkdir()
    for name in ("toml", "bytes", "tags", "trial"):
        build_run(tmp_path / name, QUICK).folder.rename(tmp_path / f"0-x-{name}")
        (tmp_path / name).rmdir()
    (tmp_path / "0-x-toml" / "experiment.toml").write_text("x = [")
    (tmp_path / "0-x-bytes" / "experiment.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "0-x-tags" / "tags.json").write_text('{"a": 1}')
    next((tmp_path / "0-x-trial").glob("trials/*/trial.json")).write_text("{")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "experiment.toml").write_text("mine = 1\n")
    (tmp_path / "foreign" / "precious").write_text("data\n")
    return tmp_path


def ran(output: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--output", str(output)])


def test_all_are_listed_and_what_cannot_be_read_is_told(output: Path) -> None:
    rows = json.loads(ran(output, "list", "--json").stdout)
    assert {row["outcome"] for row in rows} == {"completed", "unreadable"}
    assert {Path(row["folder"]).name for row in rows if row["problem"]} == {
        "0-x-toml", "0-x-bytes", "0-x-tags", "0-x-trial", "foreign",
    }  # fmt: skip
    listed = ran(output, "list")
    assert "k7m2qd" in listed.stdout and "completed" in listed.stdout
    assert "is not TOML" in listed.stderr


@pytest.mark.parametrize("verb", ["show", "report", "rerun"])
@pytest.mark.parametrize("name", ["toml", "bytes", "foreign"])
def test_what_cannot_be_read_is_refused_with_a_hint(output: Path, verb: str, name: str) -> None:
    result = ran(output, verb, name)
    assert isinstance(result.exception, PgdynoError)
    assert result.exception.hint


def test_a_spoilt_neighbour_stands_in_nobodys_way(output: Path) -> None:
    good = find_run("k7m2qd", output)
    good.set_tags(("mine",))
    assert find_run("mine", output).folder == good.folder
    assert ran(output, "show", "mine").exit_code == 0


def test_prune_deletes_what_is_certainly_ours_only(output: Path) -> None:
    result = ran(output, "prune", "--all")
    assert result.exit_code == 0
    left = {folder.name for folder in output.iterdir()}
    assert left == {"0-x-toml", "0-x-bytes", "0-x-tags", "foreign"}
    assert (output / "foreign" / "precious").exists()
    assert "left alone" in result.stderr
