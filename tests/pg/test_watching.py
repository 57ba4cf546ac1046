"""Everything watched while pgbench loads a real server: the numbers agree with pgbench's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from pgdyno.hosts.local import Local
from pgdyno.observers.durability_facts import read_settled_writes, written_between
from pgdyno.observers.host import host_observers
from pgdyno.observers.postgres import PostgresObserver, postgres_observers
from pgdyno.observers.process import ProcessGroup, ProcessObserver
from pgdyno.observers.session import session
from pgdyno.observers.watch import Watching, collect, watch
from pgdyno.servers.base import Server
from pgdyno.stats.rates import cpu_shares, cpu_spread, select, total_growth

pytestmark = pytest.mark.pg

CLIENTS = 4
LOAD_S = 3


def pgbench(server: Server, database: str, *options: str) -> subprocess.Popen[str]:
    """pgbench on a database, under way."""
    assert server.bin_dir is not None
    environment = {**os.environ, "PGPASSWORD": server.password or ""}
    return subprocess.Popen(
        [str(server.bin_dir / "pgbench"), *options, database],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    )  # fmt: skip


def transactions_of(report: str) -> int:
    match = re.search(r"number of transactions actually processed: (\d+)", report)
    assert match is not None, report
    return int(match[1])


def stored(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{name}.parquet").to_pylist()
    return rows


def test_a_load_is_seen_from_all_sides(server: Server, database: str, tmp_path: Path) -> None:
    pgbench(server, database, "-i", "-q", "-s", "1").communicate(timeout=60)
    generator: list[int] = []
    groups = (
        ProcessGroup(role="engine", root=lambda: generator[0] if generator else None),
        ProcessGroup(role="server", root=lambda: server.postmaster_pid),
    )
    observers = (
        *host_observers(Local(), resolution_s=0.5),
        *postgres_observers(database, password=server.password, resolution_s=0.5),
        ProcessObserver(host=Local(), groups=groups, resolution_s=0.5),
    )
    with session(database, server.password) as asking:
        before = read_settled_writes(asking)
        with watch(observers, tmp_path) as watching:
            load = pgbench(server, database, "-n", "-c", str(CLIENTS), "-T", str(LOAD_S))
            generator.append(load.pid)
            report, _ = load.communicate(timeout=60)
            after = read_settled_writes(asking)
        transactions = transactions_of(report)
        written = written_between(before, after, transactions=transactions)
    assert watching.notices == ()
    assert collect(observers, tmp_path) == ()

    # Three tables are updated and one is inserted into by each of pgbench's transactions.
    assert written.rows_changed == 4 * transactions
    assert written.transaction_ids >= transactions
    assert not any(table.unlogged for table in written.tables)

    commits = total_growth(stored(tmp_path, "database"), "commits")
    assert commits is not None
    assert transactions <= commits <= transactions + 200
    wal_bytes = total_growth(stored(tmp_path, "wal"), "wal_position_bytes")
    assert wal_bytes is not None
    assert wal_bytes > 100 * transactions

    processes = stored(tmp_path, "processes")
    engine, served = select(processes, "role", "engine"), select(processes, "role", "server")
    assert max(row["processes"] for row in served) > CLIENTS
    for rows in (engine, served):
        busy_s = sum((total_growth(rows, f"{kind}_jiffies") or 0) / 100 for kind in ("user", "sys"))
        assert 0.01 < busy_s < LOAD_S * (os.cpu_count() or 1) * 1.5

    shares = cpu_spread(cpu_shares(select(stored(tmp_path, "host_cpu"), "cpu", "all")))
    assert shares["busy"].average > 0.05
    assert sum(shares[k].average for k in ("user", "sys", "wait", "steal", "idle")) == (
        pytest.approx(1.0)
    )


def wait_until_sampled(watching: Watching, name: str, after_ns: int) -> None:
    deadline_s = time.monotonic() + 20
    while watching.recent(name)[-1].monotonic_ns < after_ns:
        assert time.monotonic() < deadline_s, "no new sample in 20 s"
        time.sleep(0.01)


def test_sessions_that_are_killed_cost_samples_and_nothing_else(
    server: Server, database: str, tmp_path: Path
) -> None:
    observers = postgres_observers(database, password=server.password, resolution_s=0.1)
    with watch(observers, tmp_path) as watching:
        with psycopg.connect(server.conninfo, password=server.password or "") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'pgdyno observer'"
            )
            killed_ns = time.monotonic_ns()
        for observer in observers:
            wait_until_sampled(watching, observer.table.name, killed_ns)
    assert len(watching.notices) == len(observers)
    assert all("missed 1 of" in notice for notice in watching.notices)
    assert collect(observers, tmp_path) == ()


def test_a_server_that_does_not_answer_does_not_hold_the_measurement_up(
    server: Server, database: str, tmp_path: Path
) -> None:
    observer = PostgresObserver(
        conninfo=database, password=server.password, resolution_s=0.05,
        table=postgres_observers(database)[0].table,
    )  # fmt: skip
    with (
        psycopg.connect(server.conninfo, password=server.password or "") as connection,
        watch([observer], tmp_path) as watching,
    ):
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgdyno observer'"
        ).fetchone()
        assert found is not None
        os.kill(found[0], signal.SIGSTOP)
        # Nothing here waits for the stopped session; the watch ends once it goes on.
        time.sleep(0.2)
        newest = watching.recent("database")[-1]
        os.kill(found[0], signal.SIGCONT)
        wait_until_sampled(watching, "database", newest.monotonic_ns + 1)
    assert watching.notices == ()
