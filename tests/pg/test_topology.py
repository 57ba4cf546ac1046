"""A primary with standbys: watched whole, its commits worth what they say, and gone in the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.durability.classes import classify
from pgdyno.errors import Problems
from pgdyno.experiment.store import StoredTrial, list_runs
from pgdyno.experiment.system_levels import standbys
from pgdyno.hosts.local import Local
from pgdyno.model import StandbyChoice, SystemChoice
from pgdyno.observers import durability_facts as facts
from pgdyno.observers.replication import REPLAY, REPLICATION
from pgdyno.observers.session import session
from pgdyno.servers import processes
from pgdyno.servers.base import Server, System
from pgdyno.servers.binaries import find_installations
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
from pgdyno.servers.replication import await_replay
from pgdyno.servers.topology import surround
from tests.pg.commands import Place
from tests.pg.test_run_interrupted import start_until

pytestmark = pytest.mark.pg

MAJORS = [one.major for one in find_installations(Local()) if one.problem is None]
PAIR = (
    StandbyChoice(name="standby-1", synchronous=True, slot=True, settings={"work_mem": "7MB"}),
    StandbyChoice(name="standby-2", cpus=(0,)),
)


def ask(server: Server, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.conninfo, password=server.password, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Ledger]]:
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    with provision(SystemChoice(tcp=True), Local(), ledger=ledger) as server:
        ask(server, "create table seen (n int)")
        yield server, ledger


@pytest.fixture(scope="module")
def system(primary: tuple[Server, Ledger]) -> Iterator[System]:
    server, ledger = primary
    choice = SystemChoice(tcp=True, standbys=PAIR)
    with surround(server, choice, Local(), notice=print, ledger=ledger) as whole:
        yield whole
    # Everything of the standbys is gone, and the primary waits for nobody.
    for standby in whole.standbys.values():
        assert standby.postmaster_pid is not None and standby.data is not None
        assert processes.identify(standby.postmaster_pid) is None
        assert not standby.data.parent.exists()
    assert len(list(ledger.entries())) == 1
    assert ask(server, "show synchronous_standby_names") == [("",)]
    assert ask(server, "select slot_name from pg_replication_slots") == []
    ask(server, "insert into seen values (1)")


def test_standbys_stream_each_under_its_name_with_its_own_settings(system: System) -> None:
    assert list(system.servers) == ["primary", "standby-1", "standby-2"]
    assert ask(
        system.primary,
        "select application_name, state, sync_state from pg_stat_replication order by 1",
    ) == [("standby-1", "streaming", "sync"), ("standby-2", "streaming", "async")]
    slots = ask(system.primary, "select slot_name, active from pg_replication_slots")
    assert slots == [("pgdyno_standby_1", True)]
    first, second = system.standbys.values()
    for standby in (first, second):
        assert ask(standby, "select pg_is_in_recovery(), count(*) from seen") == [(True, 0)]
        assert standby.password == system.primary.password
        assert conninfo_to_dict(standby.conninfo)["host"] == "127.0.0.1"
    assert ask(first, "show work_mem") == [("7MB",)]
    assert ask(second, "show work_mem") == [("4MB",)]
    assert len({conninfo_to_dict(one.conninfo)["port"] for one in system.servers.values()}) == 3


@pytest.mark.parametrize(
    ("commit", "durability_class"),
    [("remote_apply", "D4"), ("on", "D3"), ("remote_write", "D3w"), ("local", "D2"), ("off", "D1")],
)
def test_what_a_commit_is_worth(system: System, commit: str, durability_class: str) -> None:
    primary = system.primary
    with session(primary.conninfo, primary.password) as asked:
        before = facts.read_settled_writes(asked)
    ask(primary, f"set synchronous_commit = {commit}; insert into seen values (2)")
    load = facts.LoadFacts(scripts={}, committed=1, commit=commit)
    with session(primary.conninfo, primary.password) as asked:
        found = classify(facts.gather(asked, before, load, ()))
    assert found.durability_class == durability_class, found.because
    if commit == "remote_apply":
        (one, _) = system.standbys.values()
        assert ask(one, "select count(*) > 0 from seen where n = 2") == [(True,)]


@pytest.mark.parametrize("major", [min(MAJORS, key=float), max(MAJORS, key=float)])
def test_the_oldest_and_the_newest_have_standbys(major: str, tmp_path: Path) -> None:
    choice = SystemChoice(pg=major, standbys=standbys("1 synchronous with slots")[0])
    ledger = Ledger(tmp_path)
    with (
        provision(choice, Local(), ledger=ledger) as server,
        surround(server, choice, Local(), notice=print, ledger=ledger) as system,
    ):
        ask(server, "create table here as select 1 as n")
        await_replay(server, system.standbys)
        (standby,) = system.standbys.values()
        assert ask(standby, "select n from here") == [(1,)]
        with session(server.conninfo) as asked:
            (row,) = asked.ask("replication")
            assert list(row) == [column.name for column in REPLICATION.columns]
            assert (row["standby"], row["sync_state"]) == ("standby-1", "sync")
        with session(standby.conninfo) as asked:
            row = asked.ask_one("replay")
            assert list(row) == [column.name for column in REPLAY.columns]
            assert int(str(row["received_bytes"])) >= int(str(row["replayed_bytes"])) > 0
    assert list(ledger.entries()) == []


def tables_of(stored: StoredTrial) -> dict[str, list[dict[str, object]]]:
    found = {}
    for path in sorted((stored.folder / "observations").glob("*.parquet")):
        table = stored.observations(path.stem)
        assert table is not None
        found[path.stem] = table.to_pylist()
    return found


def test_a_run_watches_every_server_and_leaves_nothing(place: Place) -> None:
    words = ("--scale", "1", "--clients", "2", "--warmup", "0s", "--time", "3s")
    ended = place.pgdyno("run", "tpcb", *words, "--standbys", "2 synchronous with slots")
    assert ended.status == 0, ended.error
    (run,) = list_runs(place.runs)
    (stored,) = run.trials
    trial = stored.trial
    assert {"primary", "standby-1", "standby-2", "engine"} <= set(trial.placement)
    assert trial.durability is not None and trial.durability.durability_class == "D3"
    tables = tables_of(stored)
    for role in ("standby-1", "standby-2"):
        replayed = [int(str(row["replayed_bytes"])) for row in tables[f"{role}_replay"]]
        assert replayed[-1] > replayed[0] > 0
        received = [int(str(row["wal_position_bytes"])) for row in tables[f"{role}_wal"]]
        assert received[-1] > received[0]
        assert (stored.folder / "logs" / f"{role}.log").stat().st_size > 0
    assert {row["standby"] for row in tables["replication"]} == {"standby-1", "standby-2"}
    lags = [row["flush_lag_bytes"] for row in tables["replication"]]
    assert all(isinstance(lag, int) and lag >= 0 for lag in lags)
    roles = {row["role"] for row in tables["processes"]}
    assert roles == {"primary", "standby-1", "standby-2", "engine"}


def test_a_killed_pgdyno_takes_its_standbys_along(place: Place) -> None:
    data = place.folder / "kept"
    words = ("--data", str(data), "--standbys", "1 synchronous with slots")
    process = start_until(place, "measure", *words, "--warmup", "0s", "--time", "60s")
    assert list((data / "pg_replslot").iterdir()) != []
    process.kill()
    process.communicate(timeout=10)
    end_s = time.monotonic() + 30
    while place.left_running():
        assert time.monotonic() < end_s, place.left_running()
        time.sleep(0.05)
    # What is left are folders and the slot; the next start with these data ends both.
    again = place.pgdyno(
        *("run", "userlogin", "--users", "300_000", "--clients", "2", "--data", str(data)),
        *("--warmup", "0s", "--time", "1s"),
    )
    assert again.status == 0, again.error
    assert again.error.count("left behind by pgdyno") == 2
    assert list((data / "pg_replslot").iterdir()) == []


def test_variants_differ_in_their_standbys_and_share_their_data(place: Place) -> None:
    file = place.folder / "standbys.toml"
    file.write_text(
        'workload = "tpcb"\nclients = 2\nwarmup = "0s"\ntime = "1s"\nparam.scale = 1\n'
        'replicates = 1\nresponses = []\nreset = "template"\n'
        'factors.standbys = [0, "1 synchronous"]\n'
    )
    ended = place.pgdyno("experiment", "run", str(file))
    assert ended.status == 0, ended.error
    (run,) = list_runs(place.runs)
    classes = {
        one.trial.variant: one.trial.durability.durability_class
        for one in run.trials
        if one.trial.durability is not None
    }
    assert classes == {"standbys=0": "D2", "standbys=1 synchronous": "D3"}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (SystemChoice(dsn="host=db", standbys=PAIR), "--standbys is for a private server"),
        (SystemChoice(standbys=(PAIR[0], PAIR[0])), "there are two standbys 'standby-1'"),
        (SystemChoice(standbys=(StandbyChoice(name="engine"),)), "cannot be called 'engine'"),
        (SystemChoice(standbys=PAIR, quorum=2), "any 2 of 1 synchronous standbys"),
        (
            SystemChoice(standbys=PAIR, settings={"wal_level": "minimal", "max_wal_senders": "1"}),
            "wal_level = minimal leaves a standby too little: set it to replica\n"
            "max_wal_senders = 1 is too few: set it to 4",
        ),
        (
            SystemChoice(standbys=PAIR, settings={"synchronous_standby_names": "*"}),
            "synchronous_standby_names is made from the standbys",
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(
    choice: SystemChoice, said: str, tmp_path: Path
) -> None:
    with (
        pytest.raises(Problems, match=said.replace("*", ".")),
        provision(choice, Local(), ledger=Ledger(tmp_path)),
    ):
        raise AssertionError("it was started")
    assert list(tmp_path.iterdir()) == []
