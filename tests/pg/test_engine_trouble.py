"""The engine when things go wrong: what it had is kept, what happened is said, nothing is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from tests.pg.engine_runs import assert_adds_up, end_engine, run_engine, start_engine, write_plan

pytestmark = pytest.mark.pg

SLOW = "SELECT pg_sleep(0.01);\n"


def wait_for(path: Path, lines: int) -> None:
    """Until a file has that many lines."""
    deadline = time.monotonic() + 30
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        assert time.monotonic() < deadline, f"{path} never had {lines} lines"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(
    database: str, tmp_path: Path, number: signal.Signals
) -> None:
    engine = start_engine("run", write_plan(tmp_path, database, SLOW, duration_s=600.0))
    wait_for(tmp_path / "out/intervals.jsonl", 2)
    engine.send_signal(number)
    run = end_engine(engine, tmp_path)
    assert (run.status, run.summary.outcome) == (130, "interrupted")
    assert run.summary.measurement.committed > 0
    assert run.summary.measurement.in_flight_at_end == 0
    assert run.summary.measured_s is not None and run.summary.measured_s < 60
    assert_adds_up(run)


def test_a_second_signal_cancels_at_once(database: str, tmp_path: Path) -> None:
    script = "SELECT pg_sleep(CASE WHEN :client_id = 0 THEN 300 ELSE 0.01 END);\n"
    engine = start_engine("run", write_plan(tmp_path, database, script, duration_s=600.0))
    wait_for(tmp_path / "out/intervals.jsonl", 2)
    engine.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert engine.poll() is None
    engine.send_signal(signal.SIGINT)
    run = end_engine(engine, tmp_path)
    assert (run.status, run.summary.measurement.in_flight_at_end) == (130, 1)
    assert_adds_up(run)
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
    deadline = time.monotonic() + 10
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute(asleep, ["%pg_sleep%"]).fetchone() != (0,):
            assert time.monotonic() < deadline, "the server still works for a client that is gone"
            time.sleep(0.05)


def test_the_drain_deadline_cuts_off(database: str, tmp_path: Path) -> None:
    run = run_engine(
        tmp_path, database, "SELECT pg_sleep(300);", clients=2, duration_s=0.5, drain_deadline_s=0.5
    )
    assert (run.status, run.summary.measurement.in_flight_at_end) == (0, 2)
    assert_adds_up(run)


def test_a_server_killed_in_the_middle_leaves_results(tmp_path: Path) -> None:
    with provision(SystemChoice(), Local()) as server:
        plan = write_plan(tmp_path, server.conninfo, SLOW, duration_s=600.0)
        engine = start_engine("run", plan)
        wait_for(tmp_path / "out/intervals.jsonl", 2)
        assert server.postmaster_pid is not None
        os.kill(server.postmaster_pid, signal.SIGQUIT)
        run = end_engine(engine, tmp_path)
    summary = run.summary
    assert (run.status, summary.outcome) == (1, "aborted")
    assert "no client is left" in run.error and summary.message in run.error
    measurement = summary.measurement
    assert measurement.committed > 0
    # An autocommit statement that got no answer may have committed.
    assert measurement.unknown + measurement.failed.connection <= 4
    assert measurement.unknown > 0
    assert any(error.phase == "measurement" for error in summary.errors)
    assert_adds_up(run)


def test_a_terminated_backend_ends_only_its_client(database: str, tmp_path: Path) -> None:
    script = "BEGIN;\nSELECT pg_sleep(0.01);\nCOMMIT;\n"
    engine = start_engine("run", write_plan(tmp_path, database, script, duration_s=2.0))
    wait_for(tmp_path / "out/intervals.jsonl", 2)
    victims = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'pgdyno-engine' LIMIT 1"
    )
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(victims)
    run = end_engine(engine, tmp_path)
    assert (run.status, run.summary.outcome) == (0, "completed")
    assert run.summary.measurement.failed.connection == 1
    assert run.summary.errors[0].sqlstate == "57P01"
    assert_adds_up(run)


def test_too_many_clients_are_told(tmp_path: Path) -> None:
    with provision(SystemChoice(settings={"max_connections": "10"}), Local()) as server:
        run = run_engine(tmp_path, server.conninfo, SLOW, clients=40)
    assert (run.status, run.summary.outcome) == (1, "aborted")
    assert "of 40 clients could not connect" in run.error
    assert "too many clients" in run.error and "hint: use fewer clients" in run.error
    assert run.summary.clients_connected < 40 and run.summary.timeline.connect_end_ns is None


@pytest.mark.parametrize(
    ("conninfo", "words"),
    [
        ("host=/nonexistent/folder", "No such file or directory"),
        ("host=127.0.0.1 port=1", "Connection refused"),
    ],
)
def test_no_server_is_told(tmp_path: Path, conninfo: str, words: str) -> None:
    run = run_engine(tmp_path, conninfo, SLOW)
    assert (run.status, run.summary.outcome) == (1, "aborted")
    assert run.error.startswith("pgdyno-engine: error: no client could connect to ")
    assert words in run.error


def test_everything_wrong_with_a_plan_is_told_at_once(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, "host=/x", "\\set a 1 +\nSELECT 'abc;\n")
    plan.write_text(plan.read_text().replace('"duration_s":1.0', '"duration_s":-1.0'))
    for command in ("check", "run"):
        run = end_engine(start_engine(command, plan), tmp_path)
        assert run.status == 2
        for part in ("duration_s", "t.sql:1:", "t.sql:2:8:", "\n       ^"):
            assert part in run.error
    assert not (tmp_path / "out").exists()


def test_more_clients_than_files_are_told(tmp_path: Path) -> None:
    command = ["prlimit", "--nofile=100:100", "--"]
    if shutil.which(command[0]) is None:
        pytest.skip("prlimit is not installed")
    from pgdyno.engine import find_engine

    plan = write_plan(tmp_path, "host=/x", SLOW, clients=200)
    ended = subprocess.run(
        [*command, find_engine(), "run", plan],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "200 clients need" in ended.stderr and "hint: raise the hard limit" in ended.stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A server that asks for passwords."""

    server: Server
    password: str

    def conninfo(self, user: str) -> str:
        """As this user."""
        return f"{self.server.conninfo} user={user}"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """Users whose passwords are asked for by three methods, on a server of its own."""
    with provision(SystemChoice(), Local()) as server:
        assert server.data is not None
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            for user, encryption in (("scram", "scram-sha-256"), ("md5", "md5"), ("clear", "md5")):
                connection.execute(f"SET password_encryption = '{encryption}'")
                connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'p:ss w\\ord'")
            rules = "local all scram scram-sha-256\nlocal all md5 md5\nlocal all clear password\n"
            hba = server.data / "pg_hba.conf"
            hba.write_text(rules + hba.read_text())
            connection.execute("SELECT pg_reload_conf()")
            time.sleep(0.5)
        yield Guarded(server=server, password="p:ss w\\ord")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("user", ["scram", "md5", "clear"])
def test_passwords_by_environment_and_file(guarded: Guarded, tmp_path: Path, user: str) -> None:
    plan = write_plan(tmp_path, guarded.conninfo(user), SLOW, transactions_per_client=2)

    def outcome(environment: dict[str, str]) -> tuple[int, str]:
        run = end_engine(start_engine("run", plan, environment=environment), tmp_path)
        return run.status, run.error

    assert outcome({"PGPASSWORD": guarded.password}) == (0, "")
    with tempfile.NamedTemporaryFile("w", dir=tmp_path) as file:
        file.write(f"*:*:*:{user}:p\\:ss w\\\\ord\n")
        file.flush()
        assert outcome({"PGPASSFILE": file.name}) == (0, "")
    status, error = outcome({"PGPASSWORD": "wrong"})
    assert status == 1 and f'password authentication failed for user "{user}"' in error
    status, error = outcome({})
    assert status == 1 and "set PGPASSWORD" in error
