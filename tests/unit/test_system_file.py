"""The system file: what it means, all that is wrong with it, and what comes on top of it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pgdyno.cli.system_options import Cpus, engine_cpus_of, system_of, system_options
from pgdyno.errors import InvalidInput, Problems
from pgdyno.experiment.system_file import WrittenSystem, read_system_file, with_word
from pgdyno.experiment.system_levels import pooler, standbys
from pgdyno.model import (
    Limits,
    LoadChoice,
    PoolerChoice,
    StandbyChoice,
    SystemChoice,
    Variant,
    WorkloadChoice,
)
from pgdyno.servers.replication import needed_settings, synchronous_names

pytestmark = pytest.mark.unit

WHOLE = """\
quorum = 1

[server]
pg = 15
cpus = "0"
memory_limit = "2GB"
settings = { shared_buffers = "1GB", fsync = false }
wal_folder = "wal"

[[standbys]]
synchronous = true
slot = true
cpus = 1

[[standbys]]
name = "far"
settings = { work_mem = "8MB" }

[pooler]
kind = "pgbouncer"
mode = "transaction"
settings = { default_pool_size = 20 }

[engine]
cpus = "2-3"
"""


def read(folder: Path, text: str) -> WrittenSystem:
    path = folder / "system.toml"
    path.write_text(text)
    return read_system_file(path)


def test_a_file_says_it_all(tmp_path: Path) -> None:
    found = read(tmp_path, WHOLE)
    assert found.engine_cpus == (2, 3)
    system = found.system
    assert (system.pg, system.cpus, system.quorum) == ("15", (0,), 1)
    assert system.limits == Limits(memory_bytes=2 * 1024**3)
    assert system.settings == {"shared_buffers": "1GB", "fsync": "off"}
    assert system.storage.wal == str(tmp_path / "wal")
    assert system.standbys == (
        StandbyChoice(name="standby-1", synchronous=True, slot=True, cpus=(1,)),
        StandbyChoice(name="far", settings={"work_mem": "8MB"}),
    )
    assert system.pooler == PoolerChoice(
        kind="pgbouncer", mode="transaction", settings={"default_pool_size": "20"}
    )
    assert read(tmp_path, "").system == SystemChoice()


def test_all_that_is_wrong_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = """\
quorum = 3
[server]
cpu = "0"
cpus = "x"
tcp = "maybe"
[[standbys]]
synchronous = true
[[standbys]]
synchron = true
[pooler]
kind = "pgpol"
"""
    with pytest.raises(Problems) as caught:
        read(tmp_path, text)
    told = caught.value.message.replace(f"{tmp_path}/", "").splitlines()
    assert [line.split(": ")[0] for line in told] == [
        "system.toml:3", "system.toml:4", "system.toml:5", "system.toml:9", "system.toml:11"
    ]  # fmt: skip
    assert "server.cpu: unknown key; did you mean 'cpus'" in told[0]
    assert "'x' is not a list of CPUs; write it as 0-3,8" in told[1]
    assert "standbys[1].synchron: unknown key; did you mean 'synchronous'?" in told[3]
    assert caught.value.hint == "docs/servers.md describes the file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server\n", "system.toml:1: "),
        ("quorum = 1\n", "any 1 of 0 synchronous standbys"),
        ('[[standbys]]\nname = "a"\n[[standbys]]\nname = "a"\n', "there are two standbys 'a'"),
        ('[server]\nprofile = "none-such"\n', "system.toml:1: profile 'none-such' does not exist"),
        ("[server]\nsettings = { a = [1] }\n", "system.toml:2: server.settings: 'a' must be"),
        ("[server]\ninitdb = { checksum = true }\n", "'checksum' is not known"),
    ],
)
def test_what_a_file_cannot_mean(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text)
    assert said in str(caught.value).replace(f"{tmp_path}/", "")


def options_of(*words: str) -> tuple[SystemChoice, tuple[int, ...]]:
    found = []

    @click.command()
    @system_options
    @click.option("--engine-cpus", type=Cpus())
    def command(**options: object) -> None:
        found.append((system_of(options), engine_cpus_of(options)))

    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return found[0]


def test_options_come_on_top_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "system.toml"
    path.write_text(WHOLE)
    system, engine_cpus = options_of(
        *("--system", str(path), "--pg", "18", "--set", "fsync=on", "--standbys", "1"),
        *("--engine-cpus", "1"),
    )
    assert (system.pg, system.cpus, engine_cpus) == ("18", (0,), (1,))
    assert system.settings == {"shared_buffers": "1GB", "fsync": "on"}
    assert system.standbys == (StandbyChoice(name="standby-1"),)
    assert options_of("--system", str(path))[1] == (2, 3)


def test_a_file_is_a_level_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text("[[standbys]]\n[engine]\ncpus = 3\n")
    plain = Variant(
        name="a", workload=WorkloadChoice(name="tpcb"), system=SystemChoice(), load=LoadChoice()
    )
    found = with_word(plain, "system", "pair.toml", {}, folder=tmp_path)
    assert found.system.standbys == (StandbyChoice(name="standby-1"),)
    assert found.load.cpus == (3,)
    assert with_word(plain, "clients", 3, {}, folder=tmp_path).load.clients == 3


@pytest.mark.parametrize(
    ("words", "count", "synchronous", "slot", "quorum"),
    [
        ("2", 2, False, False, None),
        ("1 synchronous", 1, True, False, None),
        ("3 any 2 synchronous", 3, True, False, 2),
        ("1 with slots", 1, False, True, None),
        ("2 any 1 synchronous with slots", 2, True, True, 1),
    ],
)
def test_standbys_in_words(
    words: str, count: int, synchronous: bool, slot: bool, quorum: int | None
) -> None:
    found, found_quorum = standbys(words)
    assert [one.name for one in found] == [f"standby-{n}" for n in range(1, count + 1)]
    assert {(one.synchronous, one.slot) for one in found} == {(synchronous, slot)}
    assert found_quorum == quorum


@pytest.mark.parametrize("words", ["-1", "two", "2 any synchronous", "2 any 3 synchronous", "99"])
def test_standbys_that_cannot_be(words: str) -> None:
    with pytest.raises(InvalidInput):
        standbys(words)


@pytest.mark.parametrize("words", ["pgbuncer", "pgbouncer sometimes"])
def test_poolers_that_cannot_be(words: str) -> None:
    with pytest.raises(InvalidInput):
        pooler(words)


def test_an_old_primary_is_given_what_later_ones_have() -> None:
    pair = SystemChoice(standbys=standbys(2)[0])
    assert needed_settings(pair, 150000) == {}
    assert needed_settings(SystemChoice(), 90600) == {}
    assert needed_settings(pair, 90624) == {
        "wal_level": "replica", "hot_standby": "on",
        "max_wal_senders": "10", "max_replication_slots": "10",
    }  # fmt: skip
    many = SystemChoice(standbys=standbys(12)[0], settings={"max_replication_slots": "20"})
    assert needed_settings(many, 150000) == {"max_wal_senders": "14"}


def test_who_is_waited_for() -> None:
    three, quorum = standbys("3 any 2 synchronous")
    assert synchronous_names(three, quorum, 150000) == (
        'ANY 2 ("standby-1", "standby-2", "standby-3")'
    )
    assert synchronous_names(standbys(2)[0], None, 150000) == ""
