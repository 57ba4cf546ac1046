"""The shared fixtures give a server that answers and databases that are empty and apart."""

from __future__ import annotations

import psycopg
import pytest

from pgdyno.servers.base import Server

pytestmark = pytest.mark.pg


def test_server_answers_and_says_what_it_is(server: Server) -> None:
    with psycopg.connect(server.conninfo) as connection:
        row = connection.execute("SELECT current_setting('server_version_num')::int").fetchone()
    assert row == (server.version_num,)
    assert server.private
    assert server.data is not None


@pytest.mark.parametrize("attempt", [1, 2])
def test_database_is_fresh_each_time(database: str, attempt: int) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
