"""A person's own server by --dsn: found, described, and its refusals explained."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.errors import PgdynoError, Problems
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
from pgdyno.servers.trouble import server_trouble

pytestmark = pytest.mark.pg


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on loopback with a password, standing for a person's own."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    with provision(SystemChoice(tcp=True), Local(), ledger=ledger) as server:
        yield server


def uri(server: Server, *, password: str | None, dbname: str = "postgres") -> str:
    parts = conninfo_to_dict(server.conninfo)
    secret = "" if password is None else f":{password}"
    return f"postgresql://{parts['user']}{secret}@{parts['host']}:{parts['port']}/{dbname}"


def connect(dsn: str, tmp_path: Path) -> Server:
    with provision(SystemChoice(dsn=dsn), Local(), ledger=Ledger(tmp_path)) as server:
        return server


def test_a_uri_is_described_and_its_password_taken_out(listening: Server, tmp_path: Path) -> None:
    found = connect(uri(listening, password=listening.password), tmp_path)
    assert found.password == listening.password
    assert str(listening.password) not in found.conninfo
    assert (found.version_num, found.version) == (listening.version_num, listening.version)
    assert (found.private, found.data, found.postmaster_pid) == (False, None, None)
    assert server_trouble(found) is None
    with psycopg.connect(found.conninfo, password=found.password) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("postgres",)


def test_the_server_is_still_there_afterwards(listening: Server, tmp_path: Path) -> None:
    for _ in range(2):
        connect(uri(listening, password=listening.password), tmp_path)


def test_what_the_environment_fills_in_is_written_out(
    listening: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = conninfo_to_dict(listening.conninfo)
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{listening.password}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGHOST", parts["host"])
    monkeypatch.setenv("PGPORT", str(parts["port"]))
    monkeypatch.setenv("PGUSER", parts["user"])
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    found = connect("dbname=postgres application_name=mine", tmp_path)
    assert found.password == listening.password
    assert conninfo_to_dict(found.conninfo).items() >= {**parts, "application_name": "mine"}.items()


def test_refusals_are_explained(listening: Server, tmp_path: Path) -> None:
    for dsn, told in (
        (uri(listening, password="wrong"), "refused the password"),
        (uri(listening, password=None), "wants a password"),
        (make_conninfo(host=str(tmp_path), port=5432), "nothing listens on"),
        ("host=no-such-host.invalid", "the host of no-such-host.invalid is unknown"),
    ):
        with pytest.raises(PgdynoError, match=told) as caught:
            connect(dsn, tmp_path)
        assert caught.value.hint
        assert "\n" not in caught.value.message


def test_nothing_listens_on_a_free_port(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(PgdynoError, match=f"nothing listens on 127.0.0.1:{port}"):
        connect(f"host=127.0.0.1 port={port} user=x dbname=y", tmp_path)


def test_a_missing_database_names_the_nearest(listening: Server, tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="database 'postgers' does not exist on") as caught:
        connect(uri(listening, password=listening.password, dbname="postgers"), tmp_path)
    assert str(caught.value.hint).startswith("did you mean 'postgres'?")


def test_options_of_a_private_server_beside_a_dsn_are_told_together(tmp_path: Path) -> None:
    choice = SystemChoice(dsn="host=db", pg="18", settings={"work_mem": "1MB"}, tcp=True, port=0)
    with (
        pytest.raises(Problems) as caught,
        provision(choice, Local(), ledger=Ledger(tmp_path)),
    ):
        pytest.fail("it connected")
    assert [problem.split()[0] for problem in caught.value.problems] == [
        "--pg",
        "--set",
        "--tcp",
        "--port",
        "--port",
    ]
