"""Real servers for tests: one private server a session, a fresh empty database a test.

`PGDYNO_TEST_PG` chooses the server's version or path, as `--pg` does.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from tests.pg.commands import Place


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private server on a socket folder of its own, ended with the session."""
    choice = SystemChoice(pg=os.environ.get("PGDYNO_TEST_PG"))
    # The person's own ledger, so that the next session cleans up after one that was killed.
    with provision(choice, Local()) as started:
        yield started


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """Conninfo of a fresh empty database, dropped after the test."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield make_conninfo(server.conninfo, dbname=name)
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


@pytest.fixture
def place() -> Iterator[Place]:
    """A place for commands, on disk and open to the server's account; nothing may be left in it."""
    folder = Path(tempfile.mkdtemp(prefix="run-test-", dir="/var/tmp"))
    folder.chmod(0o1777)
    here = Place(folder=folder)
    yield here
    running, behind = here.left_running(), here.left_behind()
    shutil.rmtree(folder, ignore_errors=True)
    assert (running, behind) == ([], [])
