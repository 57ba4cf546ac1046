"""A private server: how it runs, who may connect, what is kept, and that nothing is left."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.errors import InvalidInput, PgdynoError, Problems
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers import processes
from pgdyno.servers.base import Server
from pgdyno.servers.binaries import find_installations, major_version
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.preflight import check_connections, gather
from pgdyno.servers.provision import provision
from pgdyno.servers.trouble import server_trouble

pytestmark = pytest.mark.pg

MAJORS = sorted({one.major for one in find_installations(Local()) if one.problem is None})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that the server's account can reach; pytest's own are closed to others."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent != Path("/tmp") and parent.is_relative_to("/tmp"):
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    return tmp_path


def settings_of(server: Server, *names: str) -> list[str]:
    with psycopg.connect(server.conninfo, password=server.password) as connection:
        return [
            str(connection.execute("SELECT current_setting(%s)", [name]).fetchone()[0])  # type: ignore[index]
            for name in names
        ]


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s, "not within 30 s"
        time.sleep(0.02)


def assert_nothing_left(server: Server, ledger: Ledger) -> None:
    assert server.postmaster_pid is not None
    assert server.log is not None
    assert processes.identify(server.postmaster_pid) is None
    assert not server.log.parent.exists()
    assert list(ledger.entries()) == []


@pytest.mark.parametrize("major", MAJORS)
def test_each_version_starts_runs_as_nobody_special_and_leaves_nothing(
    major: str, ledger: Ledger
) -> None:
    with provision(SystemChoice(pg=major), Local(), ledger=ledger) as server:
        assert major_version(server.version_num) == major
        assert server.initdb_options == ("--encoding=UTF8", "--locale=C")
        assert server.data is not None
        folder = Path(conninfo_to_dict(server.conninfo)["host"])
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        owner = Path(f"/proc/{server.postmaster_pid}").stat().st_uid
        assert owner == server.data.stat().st_uid
        assert owner != 0
        assert os.geteuid() in {0, owner}
        assert settings_of(server, "listen_addresses", "server_encoding") == ["", "UTF8"]
        # What costs durability is as the server's makers chose it.
        guards = ("fsync", "full_page_writes", "synchronous_commit", "max_connections")
        assert settings_of(server, *guards) == ["on", "on", "on", "100"]
        assert server_trouble(server) is None
    assert_nothing_left(server, ledger)


def test_an_error_inside_ends_the_server_too(ledger: Ledger) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        provision(SystemChoice(), Local(), ledger=ledger) as server,
    ):
        raise KeyboardInterrupt
    assert_nothing_left(server, ledger)


def test_a_server_and_its_backends_stay_on_their_cpus(ledger: Ledger) -> None:
    cpu = min(os.sched_getaffinity(0))
    with provision(SystemChoice(), Local(), ledger=ledger, cpus=(cpu,)) as server:
        assert server.postmaster_pid is not None
        assert os.sched_getaffinity(server.postmaster_pid) == {cpu}
        with psycopg.connect(server.conninfo) as connection:
            assert os.sched_getaffinity(connection.info.backend_pid) == {cpu}


def test_settings_are_in_force_and_come_from_a_file(ledger: Ledger) -> None:
    asked = {"work_mem": "7MB", "search_path": 'a, "it\'s"', "my.own": r"back\slash"}
    with provision(SystemChoice(settings=asked), Local(), ledger=ledger) as server:
        assert settings_of(server, *asked) == list(asked.values())
        with psycopg.connect(server.conninfo) as connection:
            source = connection.execute("SELECT source FROM pg_settings WHERE name = 'work_mem'")
            assert source.fetchone() == ("configuration file",)


@pytest.mark.parametrize("major", MAJORS)
def test_all_wrong_settings_are_told_before_anything_is_made(major: str, ledger: Ledger) -> None:
    asked = {
        "max_conections": "9",
        "max_connections": "abc",
        "wal_level": "full",
        "work_mem": "1kB",
        "port": "5432",
        "shared_buffers": "64MB",
        "my.own": "fine",
    }
    choice = SystemChoice(pg=major, settings=asked)
    with (
        pytest.raises(Problems) as caught,
        provision(choice, Local(), ledger=ledger),
    ):
        pytest.fail("it started")
    told = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 5
    assert "'max_conections' does not exist; did you mean 'max_connections'?" in told
    assert "a whole number from 1 to 262143" in told
    assert "Available values: minimal, replica, logical" in told
    assert "outside the valid range" in told
    assert "--port" in told
    assert not ledger.folder.exists()


def test_a_server_that_cannot_start_shows_its_log(ledger: Ledger) -> None:
    choice = SystemChoice(settings={"shared_preload_libraries": "no_such_library"})
    with (
        pytest.raises(PgdynoError, match="did not start") as caught,
        provision(choice, Local(), ledger=ledger),
    ):
        pytest.fail("it started")
    assert 'could not access file "no_such_library"' in caught.value.message
    assert list(ledger.entries()) == []


def test_loopback_wants_the_generated_password(ledger: Ledger) -> None:
    with provision(SystemChoice(tcp=True), Local(), ledger=ledger) as server:
        assert conninfo_to_dict(server.conninfo)["host"] == "127.0.0.1"
        assert server.password is not None
        assert len(server.password) >= 24
        assert server.password not in repr(server)
        assert settings_of(server, "listen_addresses") == ["127.0.0.1"]
        for wrong in (None, "wrong"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(server.conninfo, password=wrong, connect_timeout=5)
        assert server.log is not None
        assert server.password not in server.log.read_text()
        assert server.password not in "".join(one.read_text() for one in ledger.folder.iterdir())


def test_a_port_that_is_taken_is_told(ledger: Ledger) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(InvalidInput, match=f"port {port} on 127.0.0.1 cannot be used") as caught,
            provision(SystemChoice(tcp=True, port=port), Local(), ledger=ledger),
        ):
            pytest.fail("it started")
    assert "--port" in str(caught.value.hint)
    assert list(ledger.entries()) == []


def test_a_kept_data_folder_is_used_again(ledger: Ledger, open_folder: Path) -> None:
    data = open_folder / "made" / "data"
    data.parent.mkdir(mode=0o755)
    choice = SystemChoice(data=str(data), settings={"work_mem": "5MB"})
    with provision(choice, Local(), ledger=ledger) as server:
        assert server.data == data
        with psycopg.connect(server.conninfo) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        with (
            pytest.raises(InvalidInput, match="in use by a running server"),
            provision(choice, Local(), ledger=ledger),
        ):
            pytest.fail("it started twice")
        assert settings_of(server, "work_mem") == ["5MB"]
    assert_nothing_left(server, ledger)
    again = choice.model_copy(update={"settings": {}, "tcp": True})
    with provision(again, Local(), ledger=ledger) as server:
        assert settings_of(server, "work_mem") == ["4MB"]
        assert server.initdb_options == ("--encoding=UTF8", "--locale=C")
        assert server.log is not None
        assert "not properly shut down" not in server.log.read_text()
        with psycopg.connect(server.conninfo, password=server.password) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    assert_nothing_left(server, ledger)
    others = [major for major in MAJORS if major != major_version(server.version_num)]
    for other in others[:1]:
        with (
            pytest.raises(InvalidInput, match=f"but PostgreSQL {other} was chosen"),
            provision(SystemChoice(data=str(data), pg=other), Local(), ledger=ledger),
        ):
            pytest.fail("it started")
    (data / "pgdyno.json").unlink()
    with (
        pytest.raises(InvalidInput, match="pgdyno did not make"),
        provision(choice, Local(), ledger=ledger),
    ):
        pytest.fail("it started")
    assert (data / "PG_VERSION").exists()


def test_a_folder_of_something_else_is_not_touched(ledger: Ledger, open_folder: Path) -> None:
    (open_folder / "data").mkdir()
    (open_folder / "data" / "precious").write_text("mine")
    choice = SystemChoice(data=str(open_folder / "data"))
    with (
        pytest.raises(InvalidInput, match="is not empty and holds no cluster"),
        provision(choice, Local(), ledger=ledger),
    ):
        pytest.fail("it started")
    assert [one.name for one in (open_folder / "data").iterdir()] == ["precious"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another account")
def test_a_data_folder_closed_to_the_account_is_told(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    with (
        pytest.raises(InvalidInput, match="cannot write") as caught,
        provision(SystemChoice(data=str(tmp_path / "closed/data")), Local(), ledger=ledger),
    ):
        pytest.fail("it started")
    assert "o+x" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another account")
def test_binaries_closed_to_the_account_are_copied(ledger: Ledger, tmp_path: Path) -> None:
    from pgdyno.servers.privileges import server_user
    from pgdyno.servers.readable import readable_by

    wheel = next(one for one in find_installations(Local()) if one.origin == "wheel")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = wheel.bin_dir.parent.parent
    place = closed / package.name / wheel.bin_dir.parent.name
    shutil.copytree(wheel.bin_dir.parent, place, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    hidden = replace(wheel, bin_dir=place / "bin")
    # The cache is one that others can read, unlike pytest's folders.
    cache = Path("/var/tmp") / f"pgdyno-test-cache-{os.getpid()}" / "binaries"
    try:
        open_copy = readable_by(hidden, server_user(), Local(), cache=cache)
        assert open_copy.bin_dir.is_relative_to(cache)
        assert not list(cache.rglob("*.a"))
        began_s = time.monotonic()
        assert readable_by(hidden, server_user(), Local(), cache=cache) == open_copy
        assert time.monotonic() - began_s < 2
        choice = SystemChoice(pg=str(open_copy.bin_dir))
        with provision(choice, Local(), ledger=ledger) as server:
            assert server.version_num == wheel.version_num
            assert server.bin_dir == open_copy.bin_dir
    finally:
        shutil.rmtree(cache.parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another account")
def test_root_drops_to_postgres_or_nobody(server: Server) -> None:
    assert server.data is not None
    assert pwd.getpwuid(server.data.stat().st_uid).pw_name in {"postgres", "nobody"}


def test_a_killed_backend_and_a_killed_server_are_trouble(ledger: Ledger) -> None:
    with provision(SystemChoice(), Local(), ledger=ledger) as server:
        assert server.postmaster_pid is not None
        with psycopg.connect(server.conninfo) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        until(lambda: server_trouble(server) is not None)
        told = str(server_trouble(server))
        assert "crashed and recovered" in told
        assert "signal 9" in told
        os.kill(server.postmaster_pid, signal.SIGKILL)
        until(lambda: processes.identify(server.postmaster_pid or 0) is None)
        assert "is gone" in str(server_trouble(server))
    assert_nothing_left(server, ledger)


def test_more_clients_than_connections_are_told_before_loading(server: Server) -> None:
    facts = gather(server.conninfo, server.password, private=True)
    assert facts.limits.max_connections == 100
    assert check_connections(16, facts) == []
    (problem,) = check_connections(101, facts)
    assert "--set max_connections=" in problem
