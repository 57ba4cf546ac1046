"""PostgreSQL itself, built from the source in PGDYNO_TEST_SOURCE with pages of 16 kB."""

from __future__ import annotations

import os

import psycopg
import pytest

from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.build_options import BuildOptions
from pgdyno.servers.building import build
from pgdyno.servers.cache import Cache
from pgdyno.servers.provision import provision

pytestmark = pytest.mark.slow

SOURCE = os.environ.get("PGDYNO_TEST_SOURCE")


@pytest.mark.skipif(SOURCE is None, reason="PGDYNO_TEST_SOURCE names no source of PostgreSQL")
@pytest.mark.timeout(3600)
def test_a_server_with_pages_of_16_kb_runs() -> None:
    assert SOURCE is not None
    options = BuildOptions(block_kb=16)
    kept = build(SOURCE, options, Local(), cache=Cache(), notice=print)
    assert (kept.facts["assertions"], "-O2" in kept.facts["cflags"]) == (False, True)
    choice = SystemChoice(pg=f"build:{kept.facts['digest']}")
    with (
        provision(choice, Local()) as server,
        psycopg.connect(server.conninfo, autocommit=True) as connection,
    ):
        row = connection.execute("SELECT current_setting('block_size')").fetchone()
        assert row == ("16384",)
        connection.execute("CREATE EXTENSION pg_prewarm")
