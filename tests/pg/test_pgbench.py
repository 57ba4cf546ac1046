"""The engine in pgbench's place, beyond what a comparison with stock pgbench can show."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.provision import provision

pytestmark = pytest.mark.pg

DEADLINE_S = 30.0


def environment(conninfo: str) -> dict[str, str]:
    """Of a program that finds the database by libpq's variables."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    words = conninfo_to_dict(conninfo)
    found = {names[word]: str(value) for word, value in words.items() if word in names}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, **found}


def pgbench(*words: str, database: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run it with a script on its standard input."""
    return subprocess.run(
        [find_engine(), "pgbench", "-n", "-f", "-", *words],
        input=script,
        env=environment(database),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def one(database: str, query: str) -> object:
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_its_name_decides(tmp_path: Path) -> None:
    link = tmp_path / "pgbench"
    link.symlink_to(find_engine())
    lab = [sys.executable, "-m", "pgdyno", "pgbench"]
    told = [
        subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=DEADLINE_S, check=True
        ).stdout
        for command in ([str(link)], [str(find_engine()), "pgbench"], lab)
    ]
    assert re.match(r"pgbench \(PostgreSQL\) 18\.", told[0])
    assert told[0] == told[1] == told[2]


def test_each_transaction_has_a_session_of_its_own(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE seen (pid int, name text)")
    script = "INSERT INTO seen SELECT pg_backend_pid(), current_setting('application_name');\n"
    ran = pgbench("-C", "-c", "3", "-t", "5", "-M", "prepared", database=database, script=script)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "processed: 15/15" in ran.stdout
    assert "average connection time = " in ran.stdout
    assert one(database, "SELECT count(DISTINCT pid) FROM seen") == 15
    assert one(database, "SELECT min(name) || max(name) FROM seen") == "pgbenchpgbench"


def test_errors_of_sql_end_the_client_or_the_run_or_nothing(database: str) -> None:
    script = "\\set x :client_id + 0\nSELECT 1 / :x;\n"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return pgbench("-c", "2", "-t", "50", *words, database=database, script=script)

    ended = run()
    assert ended.returncode == 2
    assert "processed: 50/100" in ended.stdout
    assert (
        "client 0 script 0 aborted in command 1 query 0: ERROR:  division by zero" in ended.stderr
    )
    assert ended.stderr.rstrip().endswith("the above results are incomplete.")
    all_ended = run("--exit-on-abort")
    assert all_ended.returncode == 2
    assert "tps" not in all_ended.stdout
    assert "Run was aborted due to an error in thread 0" in all_ended.stderr
    went_on = run("--continue-on-error", "--failures-detailed")
    assert (went_on.returncode, went_on.stderr) == (0, "")
    assert "number of other failures: 50 (50.000%)" in went_on.stdout


def test_an_interrupted_run_is_reported_and_ends_by_the_signal(database: str) -> None:
    process = subprocess.Popen(
        [find_engine(), "pgbench", "-n", "-f", "-", "-T", "60", "-P", "1"],
        env=environment(database),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("SELECT pg_sleep(0.01);\n")
    process.stdin.close()
    process.stdin = None
    assert process.stderr is not None
    assert process.stderr.readline().startswith("progress: 1.0 s")
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == -signal.SIGINT
    processed = re.search(r"actually processed: (\d+)\n", stdout)
    assert processed is not None
    assert int(processed[1]) > 10


def test_clients_come_back_where_that_is_wanted(database: str) -> None:
    results: list[subprocess.CompletedProcess[str]] = []

    def run() -> None:
        words = ("-c", "2", "-T", "3", "--reconnect")
        results.append(pgbench(*words, database=database, script="SELECT pg_sleep(0.01);\n"))

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    ended = 0
    while ended < 2:
        assert time.monotonic() < deadline, "no session of pgbench was seen"
        count = one(
            database,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'pgbench' AND query LIKE '%pg_sleep%'"
            " AND datname = current_database()",
        )
        assert isinstance(count, int)
        ended += count
    thread.join(timeout=DEADLINE_S)
    (ran,) = results
    assert ran.returncode == 0, ran.stderr
    failed = re.search(r"number of failed transactions: (\d+) ", ran.stdout)
    processed = re.search(r"actually processed: (\d+)\n", ran.stdout)
    assert failed is not None and int(failed[1]) >= 1
    assert processed is not None and int(processed[1]) > 100


def test_it_asks_for_a_password_once() -> None:
    with provision(SystemChoice(tcp=True), Local()) as server:
        password = server.password
        assert password is not None
        child, terminal = pty.fork()
        if child == 0:
            words = ["pgbench", "-n", "-S", "-c", "3", "-t", "1"]
            variables = {**environment(server.conninfo), "HOME": "/nonexistent"}
            os.execve(find_engine(), words, variables)
        shown = _converse(terminal, answer=password)
        _, status = os.waitpid(child, 0)
    assert shown.count("Password: ") == 1
    assert password not in shown
    # It got in: what is missing are the tables.
    assert "could not count number of branches" in shown
    assert os.waitstatus_to_exitcode(status) == 1


def _converse(terminal: int, *, answer: str) -> str:
    """Give `answer` to the first question; everything that was shown."""
    shown = b""
    answered = False
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        readable, _, _ = select.select([terminal], [], [], 1.0)
        if not readable:
            continue
        try:
            received = os.read(terminal, 4096)
        except OSError:
            break
        if not received:
            break
        shown += received
        if b"Password: " in shown and not answered:
            answered = True
            time.sleep(0.1)
            os.write(terminal, answer.encode() + b"\n")
    return shown.decode(errors="replace")
