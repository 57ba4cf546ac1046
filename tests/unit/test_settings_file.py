"""Files of server settings: postgresql.conf's syntax, both kinds of comments, all faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, Problems
from pgdyno.servers.profiles import profile, profiles, settings_from
from pgdyno.servers.settings_file import parse_settings, read_settings_file

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("shared_buffers = 8192MB                 # min 128kB", "shared_buffers", "8192MB"),
        ("num = 150 // clients at once", "num", "150"),
        ("archive_command = '/bin/date'  # a // b", "archive_command", "/bin/date"),
        ("datestyle = 'iso, mdy'", "datestyle", "iso, mdy"),
        ("work_mem 4MB", "work_mem", "4MB"),
        ("  fsync=on", "fsync", "on"),
        ("a.b = 'it''s \\'so\\''", "a.b", "it's 'so'"),
        (r"log_line_prefix = '%m\t%p\041'", "log_line_prefix", "%m\t%p!"),
        ("search_path = ''", "search_path", ""),
        ("random_page_cost = 1.0", "random_page_cost", "1.0"),
    ],
)
def test_a_line(line: str, name: str, value: str) -> None:
    assert parse_settings(line, "x.conf").settings == {name: value}


def test_comments_and_empty_lines_say_nothing() -> None:
    assert parse_settings("# a\n\n   // b\n", "x.conf").settings == {}


def test_the_last_of_equal_names_counts() -> None:
    assert parse_settings("work_mem = 1MB\nwork_mem = 2MB", "x").settings == {"work_mem": "2MB"}


def test_every_fault_is_told_with_its_line() -> None:
    with pytest.raises(Problems) as raised:
        parse_settings("a b c\nfsync = on\n=\ninclude 'more.conf'\nx = 'open\n", "x.conf")
    assert raised.value.problems == (
        "x.conf, line 1: 'c' stands behind the value of 'a'",
        "x.conf, line 3: '=' is not of the form name = value",
        "x.conf, line 4: 'include' is not followed: put those settings here",
        "x.conf, line 5: 'x = 'open' is not of the form name = value",
    )


def test_where_that_server_listened_is_left_out_with_a_notice() -> None:
    found = parse_settings("port = 1921\nunix_socket_directory = '.'\nfsync = on", "x.conf")
    assert found.settings == {"fsync": "on"}
    assert [notice.partition(":")[2].partition(" is left out")[0] for notice in found.notices] == [
        " port = '1921'",
        " unix_socket_directory = '.'",
    ]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_settings_file(tmp_path / "no.conf")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_settings_file(tmp_path / "binary")


def test_what_is_given_wins_over_the_file_and_the_file_over_the_profile(tmp_path: Path) -> None:
    file = tmp_path / "mine.conf"
    file.write_text("max_connections = 200\nwork_mem = 1MB\n")
    found = settings_from("web-2016", file, {"WORK_MEM": "2MB"}).settings
    assert (found["max_connections"], found["WORK_MEM"]) == ("200", "2MB")
    assert "work_mem" not in found
    assert found["shared_buffers"] == "2GB"


def test_a_mistyped_profile_gets_its_nearest() -> None:
    with pytest.raises(InvalidInput) as raised:
        profile("osc2014")
    assert raised.value.hint == "did you mean 'osc-2014'?"


def test_every_profile_says_what_it_is_for_and_only_sets() -> None:
    assert len(profiles()) >= 7
    for one in profiles().values():
        assert one.about and one.settings
        lines = "\n".join(f"{name} = '{value}'" for name, value in one.settings.items())
        assert parse_settings(lines, one.name).notices == ()
