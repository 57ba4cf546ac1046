"""The published pgbench command lines and scripts (docs/seeds.md), as they were printed.

Replaced is only what belongs to their machines or makes them long: the length, the scale, host
names. Their ports lead to a private server by links to its socket.
"""

from __future__ import annotations

import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.engine import find_engine
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.base import Server
from pgdyno.servers.provision import provision
from pgdyno.workloads import catalog
from pgdyno.workloads.loading import LoadRequest, load
from pgdyno.workloads.resolving import resolve
from pgdyno.workloads.rows import Loader
from pgdyno.workloads.target import Target
from tests.pg.pgbench_pair import link_to_engine

pytestmark = pytest.mark.pg

DEADLINE_S = 90.0
PORTS = (1921, 5432, 9999)
USERS = "5000"
LOGIN = "\\setrandom userid 1 2000000\nSELECT f_user_login(:userid);\n"
SHARD_USERS = 20_000_000
SHARDS = {
    f"test{n}.sql": f"\\setrandom userid {n * SHARD_USERS + 1} {(n + 1) * SHARD_USERS}\n"
    f"SELECT f_user_login_{n}(:userid);\nSELECT f_user_logout_{n}(:userid);\n"
    for n in range(5)
}
OF_2013 = {"users": USERS, "functions": "plpgsql"}
OF_2014 = {
    "users": USERS,
    "shards": "5",
    "functions": "sql",
    "log_tables": "unlogged",
    "transactions": "both",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A command line as printed, what is replaced in it, and what its report must say."""

    command: str
    replaced: dict[str, str]
    report: dict[str, str]
    latencies: list[str] = field(default_factory=list)


LOGIN_REPORT = {"transaction type": "{file}", "query mode": "prepared"}
LOGIN_LINES = ["\\setrandom userid 1 2000000", "SELECT f_user_login(:userid);"]
KVM = [
    Published(
        command="pgbench -M prepared -r -c 2 -f ~/login.sql -j 1 -n -T 60 "
        "-h $PGDATA -p 1921 -U postgres digoal",
        replaced={"-T 60": "-T 1"},
        report=LOGIN_REPORT | {"number of clients": "2", "number of threads": "1"},
        latencies=LOGIN_LINES,
    ),
    Published(
        command="pgbench -M prepared -r -c 16 -f ~/login.sql -j 4 -n -T 60 "
        "-h $PGDATA -p 1921 -U postgres digoal",
        replaced={"-T 60": "-T 1"},
        report=LOGIN_REPORT | {"number of clients": "16", "number of threads": "4"},
        latencies=LOGIN_LINES,
    ),
    Published(
        command="pgbench -M prepared -r -c 16 -f ./login.sql -j 4 -n -T 60 "
        "-h $PGDATA -p 1921 -U postgres postgres",
        replaced={"-T 60": "-T 1", "postgres postgres": "postgres digoal"},
        report=LOGIN_REPORT | {"number of clients": "16", "number of threads": "4"},
        latencies=LOGIN_LINES,
    ),
]
OSC = Published(
    command="pgbench -M prepared -n -r -f ./test0.sql -f ./test1.sql -f ./test2.sql "
    "-f ./test3.sql -f ./test4.sql -c 16 -j 4 -T 180 -h $PGDATA -p 5432 -U postgres postgres "
    ">./test.log",
    replaced={"-T 180": "-T 1", "postgres postgres": "postgres digoal"},
    report={
        "transaction type": "multiple scripts",
        "query mode": "prepared",
        "number of clients": "16",
        "number of threads": "4",
    },
    latencies=[line for text in SHARDS.values() for line in text.splitlines()],
)
SELECT_LINES = [
    "\\set aid random(1, 100000 * :scale)",
    "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;",
]
POOLED = [
    Published(
        command=f"pgbench -c {clients} -j {threads} -M prepared -n -P 2 -S -T 200 -r "
        f"-h {host} -p {port}",
        replaced={"-T 200": f"-T {length_s}", f"-h {host}": "-h $PGDATA"},
        report={
            "transaction type": "<builtin: select only>",
            "query mode": "prepared",
            "number of clients": str(clients),
            "number of threads": str(threads),
        },
        latencies=SELECT_LINES,
    )
    for clients, threads, host, port, length_s in [
        (300, 300, "maggie1", 9999, 3),
        (300, 300, "maggie2", 5432, 1),
        (400, 300, "maggie1", 9999, 1),
        (400, 400, "maggie2", 5432, 1),
    ]
]
CLOUD = Published(
    command="pgbench --protocol=prepared -P 60 --time=600 --client=1000 --jobs=2048",
    replaced={"--time=600": "--time=1"},
    report={
        "transaction type": "<builtin: TPC-B (sort of)>",
        "query mode": "prepared",
        "number of clients": "1000",
        # No more threads than clients.
        "number of threads": "1000",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A server with room for every client, and a folder in which the command lines are typed."""

    server: Server
    folder: Path

    def database(self) -> str:
        """Conninfo of a fresh database under the name of the texts."""
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS digoal")
            connection.execute("CREATE DATABASE digoal")
        return make_conninfo(self.server.conninfo, dbname="digoal")

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Let a shell carry a command line out."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        own = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PGDATA": str(self.folder),
            "PGHOST": str(self.folder),
            "PGUSER": "postgres",
            "PGDATABASE": "digoal",
        }
        return subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=kept | own,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def publish(self, published: Published) -> tuple[str, str]:
        """Type a published command line; its report says what it must. Report and progress."""
        command = published.command
        for printed, instead in published.replaced.items():
            assert printed in command
            command = command.replace(printed, instead)
        done = self.type(command)
        redirected = re.search(r">(\S+)", command)
        report = (self.folder / redirected[1]).read_text() if redirected else done.stdout
        assert done.returncode == 0, done.stderr
        file = re.search(r"-f (\S+)", command)
        for name, value in published.report.items():
            expected = value.replace("{file}", file[1] if file else "")
            expected = expected.replace("~", str(self.folder))
            assert f"{name}: {expected}\n" in report, report
        shown = re.findall(r"^ +\d+\.\d+ +\d+ +(.*)$", report, re.MULTILINE)
        assert shown == published.latencies
        assert processed(report) > 0
        assert re.search(r"^tps = \d+\.\d+ \(without initial connection time\)$", report, re.M)
        return report, done.stderr


def processed(report: str) -> int:
    found = re.search(r"^number of transactions actually processed: (\d+)", report, re.MULTILINE)
    assert found is not None, report
    return int(found[1])


def one(database: str, query: str) -> tuple[object, ...]:
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return tuple(row)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The server, reachable at each published port."""
    # A socket's path has at most 107 bytes.
    folder = Path(f"/var/tmp/seeds-{uuid.uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    try:
        with provision(SystemChoice(settings={"max_connections": "1010"}), Local()) as server:
            words = conninfo_to_dict(server.conninfo)
            for port in PORTS:
                link = folder / f".s.PGSQL.{port}"
                link.symlink_to(f"{words['host']}/.s.PGSQL.{words['port']}")
            link_to_engine(folder)
            (folder / "login.sql").write_text(LOGIN)
            for name, text in SHARDS.items():
                (folder / name).write_text(text)
            yield Shop(server=server, folder=folder)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def load_users(database: str, parameters: dict[str, str]) -> None:
    loader = Loader(engine=find_engine(), host=Local(), connections=2)
    target = Target(conninfo=database, initdb_options=("--locale=C",))
    request = LoadRequest(target=target, loader=loader, reload=False, memory_bytes=2**30)
    load(resolve(catalog.find("userlogin"), parameters), request)


def test_logins_in_a_virtual_machine(shop: Shop) -> None:
    database = shop.database()
    load_users(database, OF_2013)
    written = 0
    for published in KVM:
        report, progress = shop.publish(published)
        assert progress == ""
        written += processed(report)
    bounds = "SELECT count(*), min(userid) >= 1, max(userid) <= 2000000 FROM user_login_rec"
    assert one(database, bounds) == (written, True, True)


def test_logins_and_logouts_from_five_files(shop: Shop) -> None:
    database = shop.database()
    load_users(database, OF_2014)
    report, progress = shop.publish(OSC)
    assert progress == ""
    assert report.count("SQL script ") == len(SHARDS)
    logins = one(database, "SELECT count(*), min(userid) >= 1 FROM user_login_rec")
    assert logins == (processed(report), True)
    assert one(database, "SELECT count(*) FROM user_logout_rec") == (processed(report),)


def test_selects_by_hundreds_of_threads_and_tpcb_with_more_threads_than_clients(shop: Shop) -> None:
    database = shop.database()
    made = shop.type("pgbench -i --fillfactor=90 --scale=1")
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    fillfactors = "SELECT array_agg(DISTINCT reloptions::text) FROM pg_class WHERE relname IN "
    tables = "('pgbench_accounts', 'pgbench_branches', 'pgbench_tellers')"
    assert one(database, fillfactors + tables) == (["{fillfactor=90}"],)
    progress = [shop.publish(published)[1] for published in POOLED]
    assert re.match(r"progress: 2\.\d s, \d+\.\d tps, lat \d+\.\d{3} ms stddev ", progress[0])
    report, lines = shop.publish(CLOUD)
    assert lines == "starting vacuum...end.\n"
    assert one(database, "SELECT count(*) FROM pgbench_history") == (processed(report),)
