"""Checks against a real server: they hold after a load, and a planted fault is caught.

Stock pgbench stands in for the engine: the scripts are in its language, and with `-t` it says how
many transactions it committed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from pgdyno.contract import Counters
from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import CheckResult
from pgdyno.servers.base import Server
from pgdyno.workloads import catalog
from pgdyno.workloads.checking import take_snapshot
from pgdyno.workloads.definition import ResolvedWorkload
from pgdyno.workloads.judging import Snapshot, judge_measurement
from pgdyno.workloads.loading import LoadRequest, load
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.target import Target

pytestmark = pytest.mark.pg

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "noop": ("noop", {}),
    "tpcb": ("tpcb", {"scale": "1"}),
    "simple-update": ("simple-update", {"scale": "1"}),
    "select-only": ("select-only", {"scale": "1"}),
    "seed of 2013": ("userlogin", {"users": "500"}),
    "logout": ("userlogin", {"users": "500", "transactions": "logout"}),
    "both": ("userlogin", {"users": "500", "transactions": "both"}),
    "sql": ("userlogin", {"users": "500", "functions": "sql", "transactions": "logout"}),
    "seed of 2014": (
        "userlogin",
        {
            "users": "500",
            "shards": "5",
            "functions": "sql",
            "log_tables": "unlogged",
            "transactions": "both",
        },
    ),
    "shards in plpgsql": ("userlogin", {"users": "50", "shards": "3", "transactions": "both"}),
}


def loaded(case: str, database: str) -> ResolvedWorkload:
    name, parameters = CASES[case]
    workload = resolve(catalog.find(name), parameters)
    loader = Loader(engine=find_engine(), host=Local(), connections=2)
    load(workload, LoadRequest(target=Target(conninfo=database), loader=loader))
    return workload


def snapshot(workload: ResolvedWorkload, database: str) -> Snapshot:
    return take_snapshot(workload, Target(conninfo=database), deadline_s=30)


def run(
    workload: ResolvedWorkload,
    database: str,
    server: Server,
    folder: Path,
    protocol: str = "prepared",
) -> dict[str, Counters]:
    """Run 4 × 50 transactions with stock pgbench; what it committed of each type."""
    assert server.bin_dir is not None
    words = [
        str(server.bin_dir / "pgbench"),
        "-n",
        "-M",
        protocol,
        "-c",
        "4",
        "-j",
        "2",
        "-t",
        "50",
    ]
    for name, value in workload.variables.items():
        words += ["-D", f"{name}={value}"]
    for kind in workload.transaction_types:
        path = folder / f"{kind.name}.sql"
        path.write_text(kind.script)
        words += ["-f", f"{path}@{kind.weight}"]
    ended = subprocess.run(
        [*words, database], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "number of transactions actually processed: 200/200" in ended.stdout
    committed = re.findall(r"- (\d+) transactions", ended.stdout) or ["200"]
    names = [kind.name for kind in workload.transaction_types]
    return {
        name: Counters(scheduled=int(count), committed=int(count))
        for name, count in zip(names, committed, strict=True)
    }


def verdicts(results: tuple[CheckResult, ...]) -> dict[str, str]:
    worst: dict[str, str] = {}
    for result in results:
        if worst.get(result.check) != "broken":
            worst[result.check] = result.verdict
    return worst


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_checks_hold_after_transactions(
    case: str, protocol: str, database: str, server: Server, tmp_path: Path
) -> None:
    workload = loaded(case, database)
    before = snapshot(workload, database)
    counts = run(workload, database, server, tmp_path, protocol)
    results = judge_measurement(workload, before, snapshot(workload, database), counts)
    assert [result for result in results if result.verdict != "held"] == []
    assert bool(results) == (case != "noop")


@pytest.mark.parametrize(
    "planted",
    [
        ("seed of 2013", "delete from user_session where userid = 7", "users"),
        ("seed of 2013", "delete from user_info where userid = 7", "users"),
        (
            "seed of 2013",
            "delete from user_login_rec where ctid in (select ctid from user_login_rec limit 1)",
            "login_rows",
        ),
        (
            "seed of 2013",
            "update user_session set login_count = 0 where login_count > 0",
            "login_counts",
        ),
        ("seed of 2013", "insert into user_logout_rec values (1, now(), null)", "no_logouts"),
        (
            "both",
            "delete from user_logout_rec where ctid in (select ctid from user_logout_rec limit 1)",
            "logout_rows",
        ),
        (
            "seed of 2014",
            "delete from user_login_rec where ctid in (select ctid from user_login_rec limit 1)",
            "login_rows",
        ),
        ("seed of 2014", "delete from user_session_3 where userid = 301", "users"),
        ("tpcb", "update pgbench_accounts set abalance = abalance + 1 where aid = 1", "balances"),
        ("tpcb", "update pgbench_tellers set tbalance = tbalance + 1 where tid = 1", "balances"),
        ("tpcb", "update pgbench_branches set bbalance = bbalance - 1", "balances"),
        (
            "tpcb",
            "delete from pgbench_history where ctid in (select ctid from pgbench_history limit 1)",
            "history",
        ),
        ("tpcb", "delete from pgbench_accounts where aid = 77", "tables"),
        ("simple-update", "update pgbench_branches set bbalance = 1", "balances"),
        ("select-only", "update pgbench_accounts set abalance = 1 where aid = 1", "tables"),
    ],
)
def test_a_planted_fault_is_caught(
    planted: tuple[str, str, str], database: str, server: Server, tmp_path: Path
) -> None:
    case, fault, broken = planted
    workload = loaded(case, database)
    before = snapshot(workload, database)
    counts = run(workload, database, server, tmp_path)
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute(fault.encode()).rowcount >= 1
    results = judge_measurement(workload, before, snapshot(workload, database), counts)
    assert verdicts(results)[broken] == "broken"


def test_a_lost_commit_is_caught(database: str, server: Server, tmp_path: Path) -> None:
    """One more transaction was acknowledged than the data show."""
    workload = loaded("tpcb", database)
    before = snapshot(workload, database)
    counts = run(workload, database, server, tmp_path)
    claimed = {"tpcb": Counters(scheduled=201, committed=counts["tpcb"].committed + 1)}
    results = judge_measurement(workload, before, snapshot(workload, database), claimed)
    assert verdicts(results) == {"tables": "held", "balances": "held", "history": "broken"}


def test_a_query_that_fails_leaves_its_rules_undecided(database: str) -> None:
    workload = loaded("seed of 2013", database)
    before = snapshot(workload, database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop table user_logout_rec")
    after = snapshot(workload, database)
    results = judge_measurement(workload, before, after, {})
    assert verdicts(results)["users"] == "held"
    assert verdicts(results)["login_rows"] == "undecided"
    (detail,) = {result.detail for result in results if result.check == "login_rows"}
    assert 'relation "user_logout_rec" does not exist' in detail


def test_a_missed_deadline_leaves_rules_undecided(database: str) -> None:
    workload = loaded("seed of 2013", database)
    with psycopg.connect(database) as other:
        other.execute("lock table user_session in access exclusive mode")
        began_s = time.monotonic()
        after = take_snapshot(workload, Target(conninfo=database), deadline_s=0.5)
        assert time.monotonic() - began_s < 10
    results = judge_measurement(workload, after, after, {})
    assert set(verdicts(results).values()) == {"undecided"}
    assert "statement timeout" in results[0].detail


def test_a_server_that_is_gone_leaves_rules_undecided(tmp_path: Path) -> None:
    name, parameters = CASES["tpcb"]
    workload = resolve(catalog.find(name), parameters)
    after = snapshot(workload, f"host={tmp_path} dbname=nowhere")
    results = judge_measurement(workload, Snapshot(), after, {})
    assert set(verdicts(results).values()) == {"undecided"}


def test_emptied_unlogged_tables_after_a_crash_are_undecided(
    database: str, server: Server, tmp_path: Path
) -> None:
    """A backend dies by SIGKILL: the server recovers, and unlogged tables are empty."""
    workload = loaded("seed of 2014", database)
    before = snapshot(workload, database)
    counts = run(workload, database, server, tmp_path)
    with psycopg.connect(database, autocommit=True) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select pg_sleep(5)")
    deadline_s = time.monotonic() + 30
    while (after := snapshot(workload, database)).problems:
        assert time.monotonic() < deadline_s, after.problems
        time.sleep(0.1)
    assert after.life.checkpointer != before.life.checkpointer
    found = verdicts(judge_measurement(workload, before, after, counts))
    assert found == {
        "users": "held",
        "login_counts": "held",
        "login_rows": "undecided",
        "logout_rows": "undecided",
    }
