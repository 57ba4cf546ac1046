"""What is told before loading: connections, open files, disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.servers.preflight import (
    ConnectionLimits,
    Facts,
    check_connections,
    check_disk,
    free_bytes,
)

pytestmark = pytest.mark.unit

LIMITS = ConnectionLimits(
    max_connections=100,
    superuser_reserved_connections=3,
    reserved_connections=2,
    in_use=5,
    superuser=False,
    role_limit=-1,
    database_limit=-1,
)
FACTS = Facts(limits=LIMITS, open_files_soft=1024, open_files_hard=4096, private=False)


def test_what_fits_is_no_problem() -> None:
    assert check_connections(90, FACTS) == []


def test_one_too_many_names_the_setting_its_value_and_the_restart() -> None:
    assert check_connections(91, FACTS) == [
        "91 connections are needed, but max_connections = 100 leaves 90 "
        "(5 are reserved, 5 in use): set max_connections to 101 and restart the server"
    ]


def test_of_a_private_server_the_option_is_named() -> None:
    superuser = replace(FACTS, private=True, limits=replace(LIMITS, superuser=True, in_use=0))
    assert check_connections(100, superuser) == []
    (problem,) = check_connections(200, superuser)
    assert problem.endswith("give --set max_connections=200")


def test_limits_of_role_and_database_are_told_together() -> None:
    facts = replace(FACTS, limits=replace(LIMITS, role_limit=10, database_limit=0))
    problems = check_connections(20, facts)
    assert ["ROLE" in problems[0], "DATABASE" in problems[1]] == [True, True]
    assert all("(no restart)" in problem for problem in problems)


@pytest.mark.parametrize(("needed", "told"), [(1000, "ulimit -n 1064 in this"), (5000, "as root")])
def test_open_files(needed: int, told: str) -> None:
    facts = replace(FACTS, limits=replace(LIMITS, max_connections=10000))
    (problem,) = check_connections(needed, facts)
    assert told in problem
    assert "RLIMIT_NOFILE" in problem


def test_disk_keeps_a_reserve() -> None:
    assert check_disk(94, 100) == []
    assert len(check_disk(96, 100)) == 1


def test_free_space_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "a" / "b") > 0
