"""Workload parameters on the command line: none is hidden by an option, all stand in the help."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pgdyno.cli import cli
from pgdyno.cli.parameters import default_of, option_of, values_of
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Parameter

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("command", ["run", "calibrate"])
def test_no_parameter_of_the_catalogue_is_hidden_by_an_option(command: str) -> None:
    options = {option for one in cli.commands[command].params for option in one.opts}
    for workload in catalog.catalog():
        hidden = {option_of(name) for name in workload.parameters} & options
        assert not hidden, (workload.name, hidden)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "userlogin", "--help"],
        ["run", "--clients", "4", "userlogin", "-h"],
        ["run", "--help", "userlogin"],
        ["calibrate", "userlogin", "--help"],
    ],
)
def test_the_help_lists_the_parameters_of_the_workload_that_is_named(words: list[str]) -> None:
    text = CliRunner().invoke(cli, words, catch_exceptions=False).output
    assert "Parameters of userlogin:" in text
    assert "--users INTEGER" in text
    assert "[default: 2_000_000]" in " ".join(text.split())
    assert "login | logout | both" in " ".join(text.split())
    # Examples keep their lines.
    assert "\\b" not in text
    assert re.search(r"^  +pgdyno \w+ userlogin( --clients 64)?$", text, re.M)


@pytest.mark.parametrize("words", [["run", "--help"], ["run", "nosuch", "--help"]])
def test_the_help_without_a_workload_lists_options_only(words: list[str]) -> None:
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "--clients" in result.output and "Parameters of" not in result.output


def test_a_parameter_that_an_option_hides_is_listed_with_the_way_to_give_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "transactions").mkdir(parents=True)
    (folder / "transactions" / "one.sql").write_text("SELECT :clients;\n")
    (folder / "workload.toml").write_text(
        """
description = "mine"
source = "me"
data_version = 1

[parameters.clients]
type = "integer"
default = 1
affects = "load"
about = "not the engine's clients"

[[transaction_types]]
name = "one"
file = "transactions/one.sql"
"""
    )
    (folder / "README.md").write_text("Mine.\n")
    text = CliRunner().invoke(cli, ["run", str(folder), "--help"], catch_exceptions=False).output
    assert "--param clients=INTEGER" in text


def test_values_and_defaults_read_as_they_are_typed() -> None:
    users = Parameter(
        type="integer", default=2_000_000, min=1, max=1e9, unit="users", affects="data", about="u"
    )
    assert (values_of(users), default_of(users)) == ("integer 1…1_000_000_000 users", "2_000_000")
    switch = Parameter(type="boolean", default=True, affects="load", about="s")
    assert (values_of(switch), default_of(switch)) == ("boolean", "on")


def test_a_parameter_without_a_value_is_told() -> None:
    with pytest.raises(click.ClickException) as told:
        cli.main(["run", "userlogin", "--time"], standalone_mode=False)
    assert "--time" in told.value.format_message()
