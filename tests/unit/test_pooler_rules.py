"""Poolers without processes: old settings, who stands behind, what fits through, answers."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, Problems
from pgdyno.experiment.system_file import read_system_file
from pgdyno.model import PoolerChoice
from pgdyno.observers.poolers import POOLER, rows_of
from pgdyno.servers.poolers.asking import haproxy_answer, pgbouncer_answer, pgpool_answer
from pgdyno.servers.poolers.base import Backend, Capacity, Plan
from pgdyno.servers.poolers.facts import facts_of
from pgdyno.servers.poolers.fitness import Demand, fit
from pgdyno.servers.poolers.judging import unknown_names
from pgdyno.servers.poolers.kinds import KINDS
from pgdyno.servers.poolers.pgpool import differences
from pgdyno.servers.poolers.planning import backend_roles, settings_for
from pgdyno.servers.poolers.programs import Program
from pgdyno.servers.poolers.settings_file import parse_pooler_file
from pgdyno.servers.poolers.translation import translate

pytestmark = pytest.mark.unit

PGPOOL = (4, 3, 5)
READS = {"select-only": "\\set aid random(1, 10)\nSELECT 1 FROM t WHERE aid = :aid;"}
WRITES = {"tpcb": "BEGIN;\nUPDATE t SET a = 1;\nEND;"}


def capacity(kind: str, mode: str | None = None, **settings: str) -> Capacity:
    """What a configuration lets through, in front of a primary and a standby."""
    versions = {"pgpool": PGPOOL, "pgbouncer": (1, 18, 0), "haproxy": (2, 6, 12)}
    return KINDS[kind].capacity(plan(kind, versions[kind], mode, settings))


def plan(kind: str, version: tuple[int, ...], mode: str | None, settings: dict[str, str]) -> Plan:
    choice = PoolerChoice.model_validate({"kind": kind, "mode": mode, "settings": settings})
    roles = backend_roles(choice, ["primary", "standby-1"])
    return Plan(
        program=Program(path=Path("/nowhere"), version=version),
        mode=choice.mode,
        settings=choice.settings,
        backends=tuple(Backend(role=role, host="/run/x", port=5432) for role in roles),
        folder=Path("/run/pooler"),
        port=5432,
        tcp=False,
        user="postgres",
        database="postgres",
    )


def demand(
    clients: int,
    *,
    enough: int | None = None,
    protocol: str = "prepared",
    scripts: dict[str, str] = READS,
    max_connections: int = 1000,
) -> Demand:
    return Demand(
        clients=clients,
        enough=enough,
        protocol=protocol,
        scripts=scripts,
        max_connections=max_connections,
    )


def test_an_old_pgpool_configuration_balances_again_and_each_ignored_name_is_told() -> None:
    # The settings of a published benchmark of 2020, made for pgpool-II 4.1.
    old = {
        "load_balance_mode": "on",
        "master_slave_mode": "on",
        "master_slave_sub_mode": "stream",
        "replication_mode": "off",
        "delay_threshold": "10",
        "num_init_children": "150",
        "black_function_list": "nextval",
        "print_timestamp": "on",
    }
    translated = translate(old, facts_of("pgpool"), PGPOOL)
    assert translated.settings == {
        "load_balance_mode": "on",
        "delay_threshold": "10",
        "num_init_children": "150",
        "write_function_list": "nextval",
        "backend_clustering_mode": "streaming_replication",
    }
    told = " ".join(translated.notices)
    for name in set(old) - set(translated.settings):
        assert name in told
    assert translate(old, facts_of("pgpool"), (4, 1, 2)).settings == {
        name: value for name, value in old.items() if name != "print_timestamp"
    }


def test_a_file_as_published_is_read_without_its_places(tmp_path: Path) -> None:
    (tmp_path / "pgpool.conf").write_text(
        "listen_addresses='*' # all\nbackend_hostname0 = 'one'\nbackend_weight0 = 1\n"
        "num_init_children = 150 // most clients\nmaster_slave_mode = on\n"
    )
    (tmp_path / "system.toml").write_text(
        '[[standbys]]\n[pooler]\nkind = "pgpool"\nsettings_file = "pgpool.conf"\n'
        "settings = { num_init_children = 32 }\n"
    )
    found = read_system_file(tmp_path / "system.toml")
    assert found.system.pooler is not None
    assert found.system.pooler.settings == {
        "backend_weight0": "1",
        "num_init_children": "32",
        "master_slave_mode": "on",
    }
    assert ["listen_addresses" in found.notices[0], "backend_hostname0" in found.notices[1]] == [
        True,
        True,
    ]
    ini = "[databases]\nx = host=y\n[pgbouncer]\nlisten_port = 1\nmax_client_conn = 7\n"
    read = parse_pooler_file("pgbouncer", ini, "pgbouncer.ini")
    assert (read.settings, len(read.notices)) == ({"max_client_conn": "7"}, 2)
    with pytest.raises(InvalidInput, match="lines are given as settings"):
        parse_pooler_file("haproxy", "global\n", "haproxy.cfg")


@pytest.mark.parametrize(
    ("old", "mode"),
    [
        ({"replication_mode": "true"}, "native_replication"),
        ({"master_slave_mode": "on"}, "streaming_replication"),
        ({"master_slave_mode": "on", "master_slave_sub_mode": "slony"}, "slony"),
        ({"master_slave_mode": "off"}, "raw"),
    ],
)
def test_old_modes_of_pgpool(old: dict[str, str], mode: str) -> None:
    translated = translate(old, facts_of("pgpool"), PGPOOL)
    assert translated.settings == {"backend_clustering_mode": mode}


def test_what_is_given_in_new_words_wins() -> None:
    both = {"master_slave_mode": "on", "backend_clustering_mode": "raw"}
    translated = translate(both, facts_of("pgpool"), PGPOOL)
    assert translated.settings == {"backend_clustering_mode": "raw"}
    assert "given as well" in translated.notices[0]


def test_settings_that_are_not_the_persons_are_refused_together() -> None:
    choice = PoolerChoice(
        kind="pgpool",
        mode="session",
        settings={"backend_hostname0": "x", "port": "1", "max_pool": "2"},
    )
    program = Program(path=Path("/nowhere"), version=PGPOOL)
    with pytest.raises(Problems) as caught:
        settings_for(choice, facts_of("pgpool"), program)
    assert len(caught.value.problems) == 3
    native = PoolerChoice(kind="pgpool", settings={"replication_mode": "on"})
    with pytest.raises(InvalidInput, match="native_replication"):
        settings_for(native, facts_of("pgpool"), program)


@pytest.mark.parametrize(
    ("kind", "roles", "behind"),
    [
        ("pgpool", ["primary", "a", "b"], ("primary", "a", "b")),
        ("pgbouncer", ["primary", "a"], ("primary",)),
        ("haproxy", ["primary", "a", "b"], ("a", "b")),
        ("haproxy", ["server"], ("server",)),
    ],
)
def test_who_stands_behind(kind: str, roles: list[str], behind: tuple[str, ...]) -> None:
    assert backend_roles(PoolerChoice.model_validate({"kind": kind}), roles) == behind


@pytest.mark.parametrize(
    ("kind", "backends", "said"),
    [
        ("haproxy", ("standby-9",), "no such server"),
        ("pgbouncer", ("primary", "standby-1"), "one server, not 2"),
        ("pgpool", ("standby-1",), "must be 'primary'"),
    ],
)
def test_who_cannot_stand_behind(kind: str, backends: tuple[str, ...], said: str) -> None:
    choice = PoolerChoice.model_validate({"kind": kind, "backends": backends})
    with pytest.raises(InvalidInput, match=said):
        backend_roles(choice, ["primary", "standby-1"])


def test_more_clients_than_pgpool_has_processes_are_refused_with_the_value_to_set() -> None:
    # 300 clients before 150 processes, as published: 149 are served, and one of ours asks.
    found = capacity("pgpool", num_init_children="150", max_pool="4")
    (problem,) = fit(found, demand(300)).problems
    assert "num_init_children = 150 serves 149" in problem
    assert "set num_init_children to 301 (pgpool must be restarted)" in problem
    assert "--min-clients 149" in problem
    told = fit(found, demand(300, enough=149, max_connections=200))
    assert told.problems == ()
    assert "149 of 300 clients, the others wait" in told.notices[0]
    assert "600 connections" in told.notices[1]
    assert told.sessions == 150
    assert fit(found, demand(149)).problems == fit(found, demand(149)).notices == ()


def test_reserved_connections_of_pgpool_refuse() -> None:
    found = capacity("pgpool", reserved_connections="2")
    (problem,) = fit(found, demand(30)).problems
    assert "serves 29 clients and refuses more" in problem


def test_pgbouncer_lets_few_work_for_many_only_where_it_pools_transactions() -> None:
    session = fit(capacity("pgbouncer"), demand(50))
    (problem,) = session.problems
    assert "default_pool_size = 20 serves 20" in problem
    assert "set default_pool_size to 50 (a reload is enough)" in problem
    pooled = fit(capacity("pgbouncer", "transaction"), demand(50, protocol="extended"))
    assert pooled.problems == ()
    assert "at most 20 of 50 clients are active at once" in pooled.notices[0]
    assert pooled.sessions == 20
    (problem,) = fit(
        capacity("pgbouncer", "transaction"), demand(101, protocol="extended")
    ).problems
    assert "max_client_conn = 100 serves 99 clients and refuses more" in problem
    assert "set max_client_conn to 102" in problem


@pytest.mark.parametrize(
    ("version", "settings", "works"),
    [
        ((1, 18, 0), {}, False),
        ((1, 21, 0), {}, False),
        ((1, 21, 0), {"max_prepared_statements": "100"}, True),
        ((1, 24, 0), {}, True),
        ((1, 24, 0), {"max_prepared_statements": "0"}, False),
    ],
)
def test_prepared_statements_only_where_the_version_keeps_track_of_them(
    version: tuple[int, ...], settings: dict[str, str], *, works: bool
) -> None:
    found = KINDS["pgbouncer"].capacity(plan("pgbouncer", version, "transaction", settings))
    said = fit(found, demand(4)).problems
    assert (said == ()) is works
    assert fit(found, demand(4, protocol="extended")).problems == ()
    session = KINDS["pgbouncer"].capacity(plan("pgbouncer", version, None, settings))
    assert fit(session, demand(4)).problems == ()


def test_what_would_fail_with_every_transaction_is_refused() -> None:
    statement = capacity("pgbouncer", "statement")
    (problem,) = fit(statement, demand(4, protocol="simple", scripts=WRITES)).problems
    assert "several statements" in problem
    (problem,) = fit(capacity("haproxy"), demand(4, scripts=WRITES)).problems
    assert "'tpcb' writes (update), but haproxy sends to standby-1" in problem
    assert fit(capacity("haproxy"), demand(4)).problems == ()
    assert fit(capacity("pgpool"), demand(4, scripts=WRITES)).problems == ()
    (problem,) = fit(capacity("haproxy", **{"server.maxconn": "3"}), demand(4)).problems
    assert "server.maxconn = 3" in problem


def test_names_that_pgpool_would_ignore_are_found_in_its_own_file(tmp_path: Path) -> None:
    program = tmp_path / "pgpool"
    program.write_bytes(b"\x7fELF\0max_pool\0backend_weight\0load_balance_mode\0\1\2")
    given = {"max_pool": "1", "backend_weight1": "2", "max_pol": "3", "zzz": "4"}
    assert unknown_names(program, given) == {
        "max_pol": "did you mean 'max_pool'?",
        "zzz": "its manual lists them",
    }


def test_values_that_pgpool_took_for_others() -> None:
    given = {"a": "yes", "b": "maybe", "c": "12", "d": "12", "e": "5min", "f": "text"}
    shown = {"a": "on", "b": "off", "c": "12", "d": "7", "e": "300", "f": "other"}
    assert [line.split("'")[1] for line in differences(given, shown)] == ["b", "d"]


def test_answers_become_rows() -> None:
    idle = {"status": "Wait for connection"}
    node = {"node_id": "1", "status": "up", "select_cnt": "5", "insert_cnt": "2", "error_cnt": "1"}
    answer = pgpool_answer([idle, {"status": "Idle"}, {"status": "Execute command"}], [node], "ab")
    front, behind = rows_of(answer)
    assert (front["connections"], front["statements"]) == (1, 7)
    assert (behind["side"], behind["up"]) == ("b", 1)
    assert (behind["reads"], behind["writes"], behind["errors"]) == (5, 2, 1)
    names = ("cl_active", "cl_waiting", "sv_active", "sv_idle", "sv_used", "sv_tested", "sv_login")
    pool = {"database": "x", **dict.fromkeys(names, "2")}
    words = ("xact_count", "query_count", "received", "sent", "wait_time")
    counts = {"database": "x", **{f"total_{word}": 9 for word in words}}
    console = {"database": "pgbouncer"}
    front, behind = rows_of(pgbouncer_answer([pool, console], [counts, console], ["server"]))
    assert (front["connections"], front["waiting"], front["busy"]) == (4, 2, 2)
    assert (behind["connections"], behind["statements"]) == (10, 9)
    table = (
        "# svname,scur,stot,qcur,bin,bout,econ,eresp,status\n"
        "FRONTEND,3,9,,10,20,,,OPEN\na,2,5,0,1,2,1,0,UP\nb,1,4,0,1,2,0,0,DOWN\n"
        "BACKEND,3,9,1,10,20,0,0,UP\n"
    )
    front, first, second = rows_of(haproxy_answer(table, ["a", "b"]))
    assert (front["waiting"], front["server_connections"]) == (1, 3)
    assert (first["up"], first["errors"], second["up"]) == (1, 1, 0)
    assert list(first) == [column.name for column in POOLER.columns]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_facts_are_whole(kind: str) -> None:
    facts = facts_of(kind)
    text = files("pgdyno.servers.poolers").joinpath(f"{kind}.toml").read_text()
    assert set(tomllib.loads(text)) <= {field.name for field in fields(facts)}
    assert not facts.owned.keys() & (facts.given.keys() | facts.defaults.keys()) - {"pool_mode"}
    assert set(facts.package) == {"debian", "fedora"}
