"""The null server as clients see it: psycopg, stock pgbench, hostile clients, bad manners."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.calibration.null_server import NullServer, NullServerChoice, null_server
from pgdyno.calibration.store import Answer
from pgdyno.engine import find_engine
from pgdyno.errors import PgdynoError
from pgdyno.hosts.local import Local

pytestmark = pytest.mark.pg

DEADLINE_S = 20
READY = b"Z\0\0\0\x05I"
STARTUP = struct.pack("!ii", 17, 196608) + b"user\0me\0\0"


@pytest.fixture(params=["unix", "tcp", "unix epoll"])
def server(request: pytest.FixtureRequest) -> Iterator[NullServer]:
    reactor = "epoll" if "epoll" in request.param else "auto"
    choice = NullServerChoice(tcp=request.param == "tcp", reactor=reactor)
    with null_server(choice, Local()) as started:
        yield started


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.sql"
    path.write_text("\\set aid random(1, 1000)\nBEGIN;\nSELECT a FROM t WHERE b = :aid;\nEND;\n")
    return path


def raw(server: NullServer) -> socket.socket:
    """A connection without any client library."""
    target = conninfo_to_dict(server.conninfo)
    host, port = str(target["host"]), int(str(target["port"]))
    if host.startswith("/"):
        opened = socket.socket(socket.AF_UNIX)
        opened.settimeout(DEADLINE_S)
        opened.connect(f"{host}/.s.PGSQL.{port}")
    else:
        opened = socket.create_connection((host, port), timeout=DEADLINE_S)
    return opened


def read_all(opened: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    try:
        while piece := opened.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def read_until(opened: socket.socket, is_enough: Callable[[bytearray], bool]) -> bytearray:
    """What comes until it is enough; every receive has a deadline."""
    found = bytearray()
    while not is_enough(found):
        piece = opened.recv(1 << 20)
        assert piece, "the server closed"
        found += piece
    return found


def misbehaving(kind: str) -> NullServerChoice:
    return NullServerChoice(misbehave=kind)


def test_psycopg_gets_constant_rows(server: NullServer) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        assert connection.execute("select a from t").fetchall() == [("1234",)]
        assert connection.execute("select %s, %s", [1, "b"]).fetchall() == [("1234",)]
        assert connection.execute("show synchronous_commit").fetchone() == ("on",)
        assert connection.info.server_version == 150000


def test_psycopg_transactions_prepared_statements_and_pipelines(server: NullServer) -> None:
    with psycopg.connect(server.conninfo) as connection:
        with connection.transaction():
            cursor = connection.execute("update t set a = %s", [1], prepare=True)
            assert (cursor.rowcount, cursor.statusmessage) == (1, "UPDATE 1")
            assert connection.info.transaction_status.name == "INTRANS"
        assert connection.info.transaction_status.name == "IDLE"
        with connection.pipeline():
            cursors = [connection.execute("select %s", [n], prepare=True) for n in range(500)]
        assert [cursor.fetchone() for cursor in cursors] == [("1234",)] * 500


def test_an_error_fails_the_transaction_until_it_is_rolled_back(server: NullServer) -> None:
    with psycopg.connect(server.conninfo) as connection:
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("copy t from stdin")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        assert connection.execute("select 1").fetchone() == ("1234",)


def test_the_result_has_the_shape_asked_for() -> None:
    choice = NullServerChoice(answer=Answer(rows=3000, row_bytes=1000))
    with (
        null_server(choice, Local()) as server,
        psycopg.connect(server.conninfo) as connection,
    ):
        rows = connection.execute("select a from t").fetchall()
    assert (len(rows), {len(value) for (value,) in rows}) == (3000, {1000})


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_stock_pgbench_runs_against_it(server: NullServer, script: Path, protocol: str) -> None:
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        pytest.skip("pgbench is not installed")
    words = [pgbench, "-n", "-M", protocol, "-c", "8", "-j", "2", "-t", "200", "-f", str(script)]
    done = subprocess.run(
        [*words, server.conninfo],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"actually processed: 1600/1600", done.stdout)
    assert re.search(r"failed transactions: 0 ", done.stdout)
    report = server.report()
    assert report.statements >= 3 * 1600
    assert report.cpu_ns > 0


@pytest.mark.parametrize("builtin", ["select-only", "tpcb-like"])
def test_stock_pgbench_runs_its_own_scripts_against_it(server: NullServer, builtin: str) -> None:
    pgbench = shutil.which("pgbench")
    if pgbench is None:
        pytest.skip("pgbench is not installed")
    words = [pgbench, "-b", builtin, "-M", "prepared", "-c", "4", "-t", "50", server.conninfo]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "scaling factor: 100" in done.stdout
    assert re.search(r"actually processed: 200/200", done.stdout)


def test_a_server_that_never_sleeps_answers_all_the_same() -> None:
    choice = NullServerChoice(spins=True, threads=2)
    with (
        null_server(choice, Local()) as server,
        psycopg.connect(server.conninfo, autocommit=True) as connection,
    ):
        before = server.report().cpu_ns
        time.sleep(0.2)
        assert connection.execute("select 1").fetchone() == ("1234",)
        assert server.report().cpu_ns - before > 0.02e9


def test_it_counts_and_ends_and_removes_its_socket() -> None:
    with null_server(NullServerChoice(), Local()) as server:
        folder = Path(str(conninfo_to_dict(server.conninfo)["host"]))
        assert (folder / ".s.PGSQL.5432").is_socket()
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("select 1")
            report = server.report()
    assert (report.connections_accepted, report.connections_open) == (1, 1)
    assert report.statements == 1
    assert not folder.exists()


def test_sigterm_ends_it_with_a_report_and_without_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "null.sock"
    words = [str(find_engine()), "null-server", "--json", "--listen", str(path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "listening"
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert json.loads(rest)["event"] == "report"
    assert not path.exists()


def test_a_socket_file_left_over_is_replaced_but_no_other_file(tmp_path: Path) -> None:
    left_over = tmp_path / ".s.PGSQL.5432"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left_over))
    words = [str(find_engine()), "null-server", "--listen", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening: ")
        second = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert second.returncode == 1
        assert "a server is listening there" in second.stderr
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
    left_over.write_text("mine")
    third = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert third.returncode == 1
    assert left_over.read_text() == "mine"


def test_what_cannot_be_is_refused_all_at_once() -> None:
    words = [str(find_engine()), "null-server", "--listen", "8.8.8.8:1", "--threads", "0", "--x"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert "loopback only" in done.stderr
    assert "--threads 0" in done.stderr
    assert "unknown option --x" in done.stderr


def test_two_thousand_connections_at_once(server: NullServer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5000:
        pytest.skip(f"the limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5000), hard))
    opened = []
    try:
        for _ in range(2000):
            connection = raw(server)
            opened.append(connection)
            connection.sendall(STARTUP)
        for connection in opened:
            assert connection.recv(1) == b"R"
        report = server.report()
        assert report.connections_open == 2000
        assert report.max_rss_bytes < 64 * 2**20
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_hostile_clients_harm_nobody_else(server: NullServer) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as good:
        half = raw(server)
        half.sendall(STARTUP[:7])
        greedy = raw(server)
        greedy.sendall(STARTUP + b"Q" + struct.pack("!i", 2**31 - 1))
        assert b"08P01" in read_all(greedy)
        rude = raw(server)
        rude.sendall(os.urandom(4096))
        read_all(rude)
        gone = raw(server)
        gone.sendall(STARTUP + b"Q")
        gone.close()
        # Asks without end and reads nothing: it is not read from any more.
        deaf = raw(server)
        deaf.sendall(STARTUP)
        deaf.settimeout(0.5)
        query = b"Q" + struct.pack("!i", 13) + b"select 1\0"
        with pytest.raises(TimeoutError):
            while True:
                deaf.sendall(query * 1000)
        assert good.execute("select 1").fetchone() == ("1234",)
        assert server.report().max_rss_bytes < 64 * 2**20
        for each in (half, greedy, rude, deaf):
            each.close()


def test_replies_wait_for_a_client_that_reads_late(server: NullServer) -> None:
    query = b"Q" + struct.pack("!i", 13) + b"select 1\0"
    count = 1_000_000  # More than the kernel keeps for both sides of a connection.
    with raw(server) as late:
        late.sendall(STARTUP + query)
        begin = read_until(late, lambda found: found.count(READY) == 2)
        reply = begin[begin.index(READY) + len(READY) :]
        sender = threading.Thread(target=late.sendall, args=(query * count,), daemon=True)
        sender.start()
        sender.join(0.3)
        assert sender.is_alive(), "the server read on though its replies were not"
        answers = read_until(late, lambda found: len(found) >= count * len(reply))
        sender.join(DEADLINE_S)
    assert answers == reply * count


@pytest.mark.parametrize(
    "moment", ["connect", "startup", "authentication", "ready", "query", "row", "complete"]
)
def test_a_bad_server_closes_in_the_middle(moment: str) -> None:
    with (
        null_server(misbehaving(f"close-at={moment}"), Local()) as server,
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(server.conninfo, autocommit=True) as connection,
    ):
        connection.execute("select 1")


@pytest.mark.parametrize("moment", ["parse", "bind", "describe", "execute", "sync"])
def test_a_bad_server_closes_in_the_extended_protocol(moment: str) -> None:
    with (
        null_server(misbehaving(f"close-at={moment}"), Local()) as server,
        psycopg.connect(server.conninfo, autocommit=True) as connection,
        pytest.raises(psycopg.OperationalError),
    ):
        connection.execute("select %s", [1])


def test_a_bad_server_closes_at_commit() -> None:
    with null_server(misbehaving("close-at=commit"), Local()) as server:
        connection = psycopg.connect(server.conninfo)
        connection.execute("insert into t values (1)")
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
        connection.close()


@pytest.mark.parametrize("kind", ["half-message", "garbage"])
def test_a_bad_server_sends_no_whole_answer(kind: str) -> None:
    query = b"Q" + struct.pack("!i", 13) + b"select 1\0"
    with null_server(misbehaving(kind), Local()) as server, raw(server) as client:
        client.sendall(STARTUP)
        begin = client.recv(65536)
        assert begin.endswith(READY)
        client.sendall(query)
        answer = client.recv(65536)
        assert answer
        assert READY not in answer
        if kind == "half-message":
            assert answer.startswith(b"T")
            assert client.recv(1) == b""


def test_a_slow_server_gets_there_byte_by_byte() -> None:
    with null_server(misbehaving("slow-loris"), Local()) as server:
        began = time.monotonic()
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            assert connection.execute("select 1").fetchone() == ("1234",)
        assert time.monotonic() - began > 0.3


def test_a_frozen_server_stays_silent() -> None:
    with null_server(misbehaving("freeze-after=2"), Local()) as server, raw(server) as client:
        query = b"Q" + struct.pack("!i", 13) + b"select 1\0"
        client.sendall(STARTUP)
        client.recv(65536)
        for _ in range(2):
            client.sendall(query)
            assert client.recv(65536).endswith(READY)
        client.sendall(query)
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_a_null_server_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(PgdynoError, match="close-at=lunch"),
        null_server(misbehaving("close-at=lunch"), Local()),
    ):
        pass
