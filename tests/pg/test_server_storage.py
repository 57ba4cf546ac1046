"""A private server with files elsewhere, made its own way, and limited: used, and nothing left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.errors import InvalidInput
from pgdyno.hosts.local import Local
from pgdyno.model import InitdbChoice, Limits, StorageChoice, SystemChoice
from pgdyno.servers import limits, orphans, processes
from pgdyno.servers.base import Server
from pgdyno.servers.cluster import Origin
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.postmaster import running
from pgdyno.servers.provision import private_cluster, provision

pytestmark = pytest.mark.pg

LIMITS = Limits(cpu_share=0.5, memory_bytes=1024**3)
NO_LIMITS = limits.why_not(LIMITS)

LAB = """
import sys, time
from pathlib import Path
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
choice = SystemChoice.model_validate_json(sys.argv[2])
with provision(choice, Local(), ledger=Ledger(Path(sys.argv[1]))) as server:
    print(server.postmaster_pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def disks() -> Iterator[Path]:
    """A folder that the server's account can pass, with two places in it."""
    folder = Path(tempfile.mkdtemp(prefix="storage-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("one", "two"):
        (folder / name).mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def elsewhere(disks: Path) -> StorageChoice:
    one, two = str(disks / "one"), str(disks / "two")
    return StorageChoice(wal=one, temporary=two, tablespaces={"fast": two})


def left(disks: Path) -> list[str]:
    return [str(path) for path in disks.rglob("*") if path.parent != disks]


def recorded(ledger: Ledger) -> list[Path]:
    """Every folder of a server that runs, its control groups among them."""
    return [folder for entry in ledger.entries() for folder in entry.folders]


def answer(server: Server, statement: str) -> list[object]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return [] if row is None else list(row)


def test_files_lie_where_they_were_asked_for(disks: Path, ledger: Ledger) -> None:
    choice = SystemChoice(
        storage=elsewhere(disks),
        settings={"default_tablespace": "fast"},
        initdb=InitdbChoice(checksums=True, wal_segment_bytes=32 * 1024**2),
    )
    with provision(choice, Local(), ledger=ledger) as server:
        assert server.data is not None
        assert (server.data / "pg_wal").readlink().is_relative_to(disks / "one")
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute("CREATE TABLE made AS SELECT generate_series(1, 10000) AS n")
        where = "SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = "
        (place,) = answer(server, where + "'fast'")
        assert str(place).startswith(str(disks / "two"))
        (path,) = answer(server, "SELECT pg_relation_filepath('made')")
        assert str(path).startswith("pg_tblspc/")
        shown = answer(
            server,
            "SELECT current_setting('temp_tablespaces'), current_setting('data_checksums'), "
            "current_setting('wal_segment_size')",
        )
        assert shown == ["pgdyno_temporary", "on", "32MB"]
        assert server.initdb_options[2:] == ("--data-checksums", "--wal-segsize=32")
    assert left(disks) == []


def test_a_copy_has_its_own_files_elsewhere(disks: Path, ledger: Ledger) -> None:
    choice = SystemChoice(storage=elsewhere(disks), settings={"default_tablespace": "fast"})
    host = Local()
    with private_cluster(choice, host, ledger=ledger) as origin:
        with (
            running(origin, choice.settings, host, ledger, ending="clean") as server,
            psycopg.connect(server.conninfo, autocommit=True) as connection,
        ):
            connection.execute("CREATE TABLE made AS SELECT 42 AS answer")
        copy = Origin(data=origin.data, method="copy")
        with (
            private_cluster(choice, host, ledger=ledger, origin=copy) as cluster,
            running(cluster, choice.settings, host, ledger, ending="at once") as server,
        ):
            assert answer(server, "DELETE FROM made RETURNING answer") == [42]
            assert (cluster.data / "pg_wal").readlink() == cluster.storage.wal
            assert cluster.storage.wal != origin.storage.wal
        with running(origin, choice.settings, host, ledger, ending="clean") as server:
            assert answer(server, "SELECT answer FROM made") == [42]
    assert left(disks) == []


def test_kept_data_keep_what_they_were_made_with(disks: Path, ledger: Ledger) -> None:
    kept = SystemChoice(
        data=str(disks / "one" / "data"),
        storage=StorageChoice(wal=str(disks / "two")),
        initdb=InitdbChoice(checksums=True),
    )
    for _ in range(2):
        with provision(kept, Local(), ledger=ledger) as server:
            assert answer(server, "SHOW data_checksums") == ["on"]
    for other, told in (
        ({"storage": StorageChoice()}, "have their WAL in"),
        ({"initdb": InitdbChoice(locale="C.UTF-8")}, "were made with"),
    ):
        with (
            pytest.raises(InvalidInput, match=told),
            provision(kept.model_copy(update=other), Local(), ledger=ledger),
        ):
            pytest.fail("it started")


@pytest.mark.skipif(NO_LIMITS is not None, reason=str(NO_LIMITS))
def test_a_limited_server_gets_no_more_cpu_time(ledger: Ledger) -> None:
    with provision(SystemChoice(limits=LIMITS), Local(), ledger=ledger) as server:
        assert server.postmaster_pid is not None
        groups = Path(f"/proc/{server.postmaster_pid}/cgroup").read_text()
        assert groups.count("pgdyno-") >= 1
        ours = recorded(ledger)
        assert any(limits.is_group(folder) for folder in ours)
        began_s = time.monotonic()
        with psycopg.connect(server.conninfo) as connection:
            pid = connection.info.backend_pid
            connection.execute("SELECT sum(n) FROM generate_series(1, 6000000) AS n")
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        taken_s = time.monotonic() - began_s
        used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        # Half a CPU, and one period of 100 ms that may be spent at once.
        assert used_s <= 0.5 * taken_s + 0.2
    assert [folder for folder in ours if folder.exists()] == []


def test_after_a_kill_the_next_start_removes_it_all(disks: Path, ledger: Ledger) -> None:
    choice = SystemChoice(
        storage=elsewhere(disks), limits=Limits() if NO_LIMITS else LIMITS, pg=None
    )
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(ledger.folder), choice.model_dump_json()],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert lab.stdout is not None
        pid = int(lab.stdout.readline())
        ours = recorded(ledger)
        assert all(folder.exists() for folder in ours)
    finally:
        os.killpg(lab.pid, signal.SIGKILL)
        lab.communicate(timeout=30)
    (line,) = orphans.sweep(ledger)
    assert "cleaned up" in line
    assert processes.identify(pid) is None
    assert [folder for folder in ours if folder.exists()] == []
    assert left(disks) == []
    assert list(ledger.entries()) == []
