"""Real poolers before a primary and a standby: judged, started, asked, measured through, gone."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.errors import Problems
from pgdyno.experiment.store import StoredTrial, list_runs
from pgdyno.hosts.local import Local
from pgdyno.model import PoolerChoice, StandbyChoice, SystemChoice
from pgdyno.servers import orphans, processes
from pgdyno.servers.base import POOLER, Pooler, System
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.poolers.asking import ask_once
from pgdyno.servers.poolers.judging import judge
from pgdyno.servers.poolers.running import in_front
from pgdyno.servers.provision import provision
from pgdyno.servers.topology import surround
from tests.pg.commands import Place
from tests.pg.test_run_interrupted import start_until

FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
MISSING = [one for one in ("pgpool", "pgbouncer", "haproxy") if not shutil.which(one, path=FOLDERS)]

pytestmark = [
    pytest.mark.pg,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

KINDS = ("pgpool", "pgbouncer", "haproxy")
TCP = (False, True)


@pytest.fixture(scope="module", params=TCP, ids=["socket", "tcp"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[System, Ledger]]:
    """A primary with a standby, by sockets or by loopback with a password."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    choice = SystemChoice(tcp=request.param, standbys=(StandbyChoice(name="standby-1"),))
    with (
        provision(choice, Local(), ledger=ledger) as primary,
        surround(primary, choice, Local(), notice=print, ledger=ledger) as system,
    ):
        yield system, ledger


def through(pooler: Pooler, statements: int) -> set[bool]:
    """Send reads, each by a session of its own; whether they were answered by a standby."""
    found = set()
    for _ in range(statements):
        with psycopg.connect(
            pooler.conninfo, password=pooler.password, autocommit=True, connect_timeout=5
        ) as connection:
            # pgpool sends functions that are not stable to the primary.
            row = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
            assert row is not None
            found.add(row[0] == "on")
    return found


def queues_of(pid: int) -> list[str]:
    """Shared memory of System V that a process made, by its number."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if line.split()[4] == str(pid)]


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers_counts_and_leaves_nothing(pair: tuple[System, Ledger], kind: str) -> None:
    system, ledger = pair
    before = len(list(ledger.entries()))
    choice = PoolerChoice.model_validate({"kind": kind, "cpus": (0,)})
    with in_front(system, choice, Local(), ledger) as whole:
        pooler = whole.poolers[POOLER]
        assert pooler.pid is not None and pooler.log is not None
        folder = pooler.log.parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert whole.entry.conninfo == pooler.conninfo
        assert whole.processes[POOLER] == pooler.pid
        assert os.sched_getaffinity(pooler.pid) == {0}
        first = ask_once(pooler)
        answered_by_standby = through(pooler, 40)
        second = ask_once(pooler)
        expected = {"pgpool": {True, False}, "pgbouncer": {False}, "haproxy": {True}}
        assert answered_by_standby == expected[kind]
        for old, new in zip(first.backends, second.backends, strict=True):
            counted = "sessions" if kind == "haproxy" else "statements"
            assert getattr(new, counted) - getattr(old, counted) > 0
            assert new.up is not False
        with (
            pytest.raises(psycopg.OperationalError),
            psycopg.connect(
                pooler.conninfo, password="wrong", dbname="nobody_has_this", connect_timeout=5
            ),
        ):
            pass
    assert processes.identify(pooler.pid) is None
    assert queues_of(pooler.pid) == []
    assert not folder.exists()
    assert len(list(ledger.entries())) == before


def test_only_who_knows_the_password_gets_in_by_loopback(pair: tuple[System, Ledger]) -> None:
    system, ledger = pair
    if system.primary.password is None:
        pytest.skip("the socket folder is the protection there")
    for kind in KINDS:
        choice = PoolerChoice.model_validate({"kind": kind})
        with in_front(system, choice, Local(), ledger) as whole:
            pooler = whole.poolers[POOLER]
            assert pooler.password is not None and pooler.password not in pooler.conninfo
            for wrong in ("wrong", ""):
                with (
                    pytest.raises(psycopg.OperationalError),
                    psycopg.connect(pooler.conninfo, password=wrong, connect_timeout=5),
                ):
                    pass


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (
            PoolerChoice(
                kind="pgpool",
                settings={"max_pol": "3", "num_init_children": "many", "max_pool": "2"},
            ),
            ["'max_pol' does not exist, it would be ignored; did you mean 'max_pool'?",
             "'num_init_children' cannot be 'many'"],
        ),
        (
            PoolerChoice(
                kind="pgbouncer",
                settings={"max_conn": "3", "default_pool_size": "x", "reserve_pool_size": "1"},
            ),
            ["'max_conn' does not exist", "'default_pool_size' cannot be 'x'"],
        ),
        (
            PoolerChoice(
                kind="haproxy", settings={"balance": "fair", "global.foo": "1", "server.bar": ""}
            ),
            ["'global.foo' cannot be '1'", "'balance' cannot be 'fair'", "'server.bar' cannot be"],
        ),
    ],
    ids=KINDS,
)  # fmt: skip
def test_its_own_program_judges_and_all_is_told(
    tmp_path: Path, choice: PoolerChoice, said: list[str]
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(Problems) as caught:
        judge(choice, ["server"], Local(), ledger)
    assert len(caught.value.problems) == len(said)
    for problem, words in zip(caught.value.problems, said, strict=True):
        assert words in problem
    assert list(ledger.entries()) == []


def test_old_words_of_pgpool_are_translated_and_a_value_it_would_bend_is_refused(
    pair: tuple[System, Ledger],
) -> None:
    system, ledger = pair
    if system.primary.password is not None:
        pytest.skip("once is enough")
    old = {"master_slave_mode": "on", "master_slave_sub_mode": "stream", "max_pool": "1"}
    judged = judge(PoolerChoice(kind="pgpool", settings=old), ["server"], Local(), ledger)
    (notice,) = judged.notices
    assert "backend_clustering_mode = 'streaming_replication'" in notice
    with in_front(system, PoolerChoice(kind="pgpool", settings=old), Local(), ledger) as whole:
        assert through(whole.poolers[POOLER], 40) == {True, False}
    bent = PoolerChoice(kind="pgpool", settings={"load_balance_mode": "maybe"})
    with (
        pytest.raises(Problems, match="'load_balance_mode' = 'maybe' for"),
        in_front(system, bent, Local(), ledger),
    ):
        pass


def rows_of(stored: StoredTrial, name: str) -> list[dict[str, object]]:
    table = stored.observations(name)
    assert table is not None
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(
    "words",
    [
        ("--pooler", "pgpool num_init_children=9", "--standbys", "1"),
        ("--pooler", "pgbouncer transaction default_pool_size=2", "--protocol", "extended"),
        ("--pooler", "haproxy", "--standbys", "1"),
    ],
    ids=KINDS,
)
def test_a_run_through_it_is_watched_whole(place: Place, words: tuple[str, ...]) -> None:
    size = ("--scale", "1", "--clients", "8", "--warmup", "0s", "--time", "2s")
    ended = place.pgdyno("run", "select-only", *size, *words)
    assert ended.status == 0, ended.error
    assert "of 8 clients on average (N = X·R)" in ended.output
    (run,) = list_runs(place.runs)
    (stored,) = run.trials
    trial = stored.trial
    assert POOLER in trial.placement
    busy = [row for row in rows_of(stored, "processes") if row["role"] == POOLER]
    used = [int(str(row["user_jiffies"])) + int(str(row["sys_jiffies"])) for row in busy]
    assert used[-1] > used[0]
    clients = [row for row in rows_of(stored, "pooler") if row["side"] == "clients"]
    assert max(int(str(row["connections"])) for row in clients) == 8
    shares = {"pgpool": "primary", "haproxy": "standby-1 "}.get(words[1].split()[0])
    if shares is not None:
        assert shares in ended.output
    else:
        assert "at most 2 of 8 clients are active at once" in " ".join(ended.error.split())
    # The clients are the load's own; every server behind it did some of the work.
    behind = {str(row["side"]) for row in rows_of(stored, "pooler")} - {"clients"}
    for role in behind:
        name = "database" if role in {"primary", "server"} else f"{role}_database"
        commits = [int(str(row["commits"])) for row in rows_of(stored, name)]
        assert commits[-1] - commits[0] > 100
    assert (stored.folder / "logs" / "pooler.log").exists()


def test_what_does_not_fit_through_is_told_before_anything_is_loaded(place: Place) -> None:
    size = ("--scale", "1", "--clients", "40")
    ended = place.pgdyno("run", "tpcb", *size, "--pooler", "pgpool")
    assert ended.status == 2
    assert "set num_init_children to 41" in ended.error
    pooled = ("--pooler", "pgbouncer transaction")
    ended = place.pgdyno("run", "tpcb", *size, *pooled, "--protocol", "prepared")
    # Told for versions that do not keep track of them, as the one of Debian 12.
    if ended.status != 0:
        assert "protocol 'prepared' cannot go through pgbouncer" in ended.error
    assert not any(place.runs.glob("*/trials/*/load_plan.json"))


def standing_below(folder: Path) -> list[int]:
    """Processes that stand in a folder below `folder`, gone or not: pgpool's rename themselves."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            standing = str((one / "cwd").readlink())
        except OSError:
            continue
        if standing.startswith(f"{folder}/"):
            found.append(int(one.name))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_pgdyno_takes_its_pooler_along(place: Place, kind: str) -> None:
    words = ("--users", "1000", "--pooler", kind, "--warmup", "0s", "--time", "60s")
    process = start_until(place, "measure", *words)
    folders = [path for path in place.folder.glob("pgdyno-*") if (path / "pooler.log").exists()]
    assert len(folders) == 1
    process.kill()
    process.communicate(timeout=10)
    end_s = time.monotonic() + 30
    while standing_below(place.folder):
        assert time.monotonic() < end_s, standing_below(place.folder)
        time.sleep(0.05)
    # What every command does first: the next start ends what the killed one left.
    told = orphans.sweep(Ledger(place.folder / "state" / "pgdyno" / "servers"))
    assert sum(f"a {kind} left behind by pgdyno" in line for line in told) == 1
    assert not folders[0].exists()
