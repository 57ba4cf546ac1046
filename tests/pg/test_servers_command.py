"""`pgdyno servers list`, as a table and as JSON."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pgdyno.cli.servers import servers
from pgdyno.hosts.local import Local
from pgdyno.servers.binaries import find_installations

pytestmark = pytest.mark.pg


def test_the_list_shows_every_installation_newest_first() -> None:
    found = find_installations(Local())
    assert found
    result = CliRunner().invoke(servers, ["list"])
    assert result.exit_code == 0
    places = [result.output.index(one.version) for one in found]
    assert places == sorted(places)
    assert all(str(one.bin_dir) in result.output for one in found)


def test_json_holds_the_same() -> None:
    result = CliRunner().invoke(servers, ["list", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.output)
    assert [row["bin_dir"] for row in rows] == [
        str(one.bin_dir) for one in find_installations(Local())
    ]
    assert set(rows[0]) == {
        "version",
        "version_num",
        "origin",
        "bin_dir",
        "client_programs",
        "extensions",
        "problem",
        "names",
        "made",
    }


@pytest.mark.parametrize("columns", ["80", "200"])
def test_paths_stay_whole_however_narrow_the_terminal_is(columns: str) -> None:
    lines = CliRunner().invoke(servers, ["list"], env={"COLUMNS": columns}).output.splitlines()
    for one in find_installations(Local()):
        assert any(line.rstrip().endswith(f" {one.bin_dir}") for line in lines)
    wide = [line for line in lines if len(line) > int(columns) and not line.startswith("  ")]
    assert wide == []
