"""Published configurations of 2013 to 2020 are taken by every server here, and are in force."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pgdyno.errors import Problems
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import find_installations
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.profiles import profiles
from pgdyno.servers.provision import provision
from pgdyno.servers.settings import check_settings, understood
from pgdyno.servers.settings_file import read_settings_file

pytestmark = pytest.mark.pg

FILES = sorted((Path(__file__).parent / "published").glob("*.conf"))
FOUND = {one.major: one for one in find_installations(Local()) if one.problem is None}


def shown(server: Server, *names: str) -> list[str]:
    with psycopg.connect(server.conninfo) as connection:
        rows = [connection.execute(f"SHOW {name}").fetchone() for name in names]
    return [str(row[0]) for row in rows if row is not None]


def test_the_profiles_say_what_the_files_say() -> None:
    for file in FILES:
        told = dict(read_settings_file(file).settings)
        # A profile leaves out how that server kept its log, and values that were defaults.
        expected = {name: value for name, value in told.items() if not name.startswith("log_")}
        kept = profiles()[file.stem].settings
        assert {name: kept[name] for name in expected} == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("major", FOUND)
def test_every_server_takes_every_file(file: Path, major: str) -> None:
    installation = FOUND[major]
    settings = read_settings_file(file).settings
    check_settings(settings, installation, Local(), None)
    told = understood(settings, installation.version_num, Local())
    assert "checkpoint_segments" not in told.settings
    assert ("checkpoint_segments" in settings) <= any("max_wal_size" in n for n in told.notices)


@pytest.mark.parametrize("major", FOUND)
def test_the_least_wal_starts_and_is_in_force(major: str, tmp_path: Path) -> None:
    """Its `wal_level = minimal` needs max_wal_senders = 0, which only a start can show."""
    file = next(file for file in FILES if file.stem == "osc-2014")
    settings = read_settings_file(file).settings | {"shared_buffers": "16MB"}
    choice = SystemChoice(pg=str(FOUND[major].bin_dir), settings=settings)
    with provision(choice, Local(), ledger=Ledger(tmp_path / "ledger")) as server:
        values = shown(server, "wal_level", "max_wal_senders", "max_wal_size", "wal_writer_delay")
    assert values == ["minimal", "0", "24GB", "10ms"]


def test_what_does_not_exist_is_still_refused() -> None:
    installation = next(iter(FOUND.values()))
    wrong = {"checkpoint_segment": "16", "work_mem": "lots", "wal_level": "hot_standby"}
    with pytest.raises(Problems) as raised:
        check_settings(wrong, installation, Local(), None)
    assert len(raised.value.problems) == 2
