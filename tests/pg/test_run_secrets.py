"""A password is used and kept nowhere: not in a run's folder, not in what the command says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
from tests.pg.commands import Place

pytestmark = pytest.mark.pg
QUICK = ("--warmup", "0s", "--time", "1s", "--clients", "2")


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on loopback with a password, standing for a person's own."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    with provision(SystemChoice(tcp=True), Local(), ledger=ledger) as server:
        yield server


def holding(folder: Path, secret: str) -> list[str]:
    """Files below a folder that hold the secret."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    return [str(file) for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.parametrize("form", ["uri", "conninfo"])
def test_the_password_of_a_dsn_is_in_no_file(place: Place, listening: Server, form: str) -> None:
    password = listening.password
    assert password
    if form == "uri":
        parts = conninfo_to_dict(listening.conninfo)
        where = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
        dsn = f"postgresql://{parts['user']}:{password}@{where}"
    else:
        dsn = f"{listening.conninfo} password={password}"
    for words in (("run", "noop", "--dsn", dsn, *QUICK), ("rerun", "last", "--dsn", dsn)):
        ended = place.pgdyno(*words)
        assert ended.status == 0, ended.error
        assert password not in ended.output + ended.error
    assert holding(place.folder, password) == []
    # Without it the server refuses, and says what is missing.
    refused = place.pgdyno("rerun", "last")
    assert refused.status == 1 and "password" in refused.error
