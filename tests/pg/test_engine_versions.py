"""The engine's core against every PostgreSQL on this machine: same counts, whatever the version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import find_installations
from pgdyno.servers.provision import provision
from tests.pg.engine_runs import assert_adds_up, run_engine

pytestmark = pytest.mark.pg

PROTOCOLS = ("simple", "extended", "prepared")


def majors() -> list[str]:
    """One installation that works of each major version."""
    usable = [one for one in find_installations(Local()) if one.problem is None]
    return sorted({one.major for one in usable}, key=float)


@pytest.fixture(scope="module", params=majors())
def every(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A private server of each version, with a table of counts."""
    with provision(SystemChoice(pg=request.param), Local()) as server:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("CREATE TABLE counts (k int PRIMARY KEY, n bigint NOT NULL)")
            connection.execute("INSERT INTO counts SELECT k, 0 FROM generate_series(1, 10) k")
        yield server


def total(server: Server) -> int:
    """All counts together."""
    with psycopg.connect(server.conninfo) as connection:
        row = connection.execute("SELECT sum(n) FROM counts").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
def test_every_committed_transaction_is_in_the_table(
    every: Server, tmp_path: Path, protocol: str, reactor: str
) -> None:
    script = (
        "\\set k random(1, 10)\nBEGIN;\nUPDATE counts SET n = n + 1 WHERE k = :k;\n"
        "SELECT n AS m, NULL AS nothing FROM counts WHERE k = :k \\gset\nCOMMIT;\n"
    )
    before = total(every)
    run = run_engine(
        tmp_path,
        every.conninfo,
        script,
        transactions_per_client=50,
        protocol=protocol,
        reactor=reactor,
    )
    assert run.status == 0, run.error
    summary = run.summary
    assert (summary.measurement.committed, summary.server_commits) == (200, 200)
    assert total(every) - before == 200
    assert summary.server_version is not None
    assert summary.server_version.startswith(every.version.split()[0].split(".")[0])
    assert_adds_up(run)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_conflicts_are_retried(every: Server, tmp_path: Path, protocol: str) -> None:
    script = (
        "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT sum(n) FROM counts;\n"
        "UPDATE counts SET n = n + 1 WHERE k = 1 + :client_id;\nCOMMIT;\n"
    )
    before = total(every)
    run = run_engine(
        tmp_path,
        every.conninfo,
        script,
        transactions_per_client=30,
        protocol=protocol,
        retry={"max_tries": 0},
    )
    measurement = run.summary.measurement
    assert (measurement.committed, measurement.failed.total) == (120, 0)
    assert measurement.retries > 0
    assert total(every) - before == 120
    assert_adds_up(run)


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_pipelines_with_syncs(every: Server, tmp_path: Path, protocol: str) -> None:
    update = "UPDATE counts SET n = n + 1 WHERE k = {};\n"
    middle = "\\syncpipeline\n".join(update.format(1 + k) for k in range(3))
    script = f"\\startpipeline\n{middle}\\endpipeline\n"
    before = total(every)
    run = run_engine(
        tmp_path, every.conninfo, script, transactions_per_client=20, protocol=protocol
    )
    assert (run.status, run.summary.measurement.committed) == (0, 80), run.error
    assert run.summary.server_commits == 240
    assert total(every) - before == 240


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_copy_both_ways(every: Server, tmp_path: Path, protocol: str) -> None:
    script = "COPY counts TO STDOUT;\nCOPY counts FROM STDIN;\n"
    run = run_engine(tmp_path, every.conninfo, script, transactions_per_client=5, protocol=protocol)
    out, into = run.summary.statements
    assert (out.rows, into.errors) == (200, 20)
    assert run.summary.measurement.failed.other == 20


def test_a_request_without_end_is_cancelled(every: Server, tmp_path: Path) -> None:
    run = run_engine(
        tmp_path,
        every.conninfo,
        "SELECT pg_sleep(300);",
        clients=1,
        transactions_per_client=1,
        statement_timeout_s=0.2,
    )
    assert run.summary.statement_timeouts == run.summary.measurement.failed.other == 1
    assert [error.sqlstate for error in run.summary.errors] == ["57014"]
