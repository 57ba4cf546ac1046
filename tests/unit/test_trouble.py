"""What a log says about a server that crashed, and what it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.servers.base import Server
from pgdyno.servers.trouble import last_lines, read_log, server_trouble

pytestmark = pytest.mark.unit

QUIET = (
    "2026 LOG:  database system is ready to accept connections\n2026 ERROR:  deadlock detected\n"
)
CRASH = "2026 LOG:  server process (PID 7) was terminated by signal 9: Killed\n"


def server(log: Path, pid: int | None) -> Server:
    return Server(
        conninfo="",
        version_num=180004,
        version="18.4",
        host_name="local",
        private=pid is not None,
        postmaster_pid=pid,
        log=log,
    )


def test_errors_of_statements_are_no_trouble(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(QUIET)
    assert server_trouble(server(log, os.getpid())) is None


def test_a_crash_is_trouble_and_an_earlier_one_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(QUIET + CRASH)
    told = server_trouble(server(log, os.getpid()))
    assert told is not None
    assert "crashed and recovered" in told
    assert "signal 9" in told
    assert server_trouble(server(log, os.getpid()), from_byte=log.stat().st_size) is None


def test_a_server_that_is_gone_says_so_without_a_log(tmp_path: Path) -> None:
    gone = 2**22 + 1  # Above the kernel's highest process number.
    told = server_trouble(server(tmp_path / "none", gone))
    assert told == f"the server (process {gone}) is gone; its log does not say why"


def test_of_a_persons_own_server_nothing_is_known(tmp_path: Path) -> None:
    assert server_trouble(server(tmp_path / "none", None)) is None


def test_last_lines_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))
    assert last_lines(log, count=2) == ("line 99998", "line 99999")


def test_what_many_sessions_say_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "12:00:01 [1] FATAL:  terminating connection\n"
        "12:00:01 [2] ERROR:  division by zero\n"
        "12:00:02 [3] FATAL:  terminating connection\n"
    )
    assert read_log(log)[1] == [
        "12:00:01 [2] ERROR:  division by zero",
        "12:00:02 [3] FATAL:  terminating connection",
    ]
