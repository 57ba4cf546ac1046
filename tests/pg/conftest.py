"""Real servers for tests: one private server a session, a fresh empty database a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgdyno.servers.base import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private server on a socket folder of its own, ended with the session."""
    bin_dir = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    base = Path(tempfile.mkdtemp(prefix="pgdyno-test-", dir="/var/tmp"))
    drop = []
    if os.geteuid() == 0:
        shutil.chown(base, "postgres", "postgres")
        drop = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    data, log = base / "data", base / "server.log"
    subprocess.run(
        [*drop, str(bin_dir / "initdb"), "-D", str(data), "-U", "postgres", "-E", "UTF8",
         "--locale=C", "-A", "trust"],
        check=True, capture_output=True, cwd="/", timeout=60,
    )  # fmt: skip
    control = [*drop, str(bin_dir / "pg_ctl"), "-D", str(data), "-w", "-t", "60"]
    subprocess.run(
        [*control, "-l", str(log), "-o", f"-h '' -k {base}", "start"],
        check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=90,
    )  # fmt: skip
    conninfo = make_conninfo(host=str(base), port=5432, user="postgres", dbname="postgres")
    try:
        with psycopg.connect(conninfo) as connection:
            version_num = connection.info.server_version
            version = connection.info.parameter_status("server_version") or ""
        yield Server(
            conninfo=conninfo,
            version_num=version_num,
            version=version,
            host_name="local",
            private=True,
            bin_dir=bin_dir,
            data=data,
            postmaster_pid=int((data / "postmaster.pid").read_text().split()[0]),
            log=log,
            initdb_options=("--encoding=UTF8", "--locale=C"),
        )
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"],
            check=False, cwd="/", stdout=subprocess.DEVNULL, timeout=90,
        )  # fmt: skip
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """Conninfo of a fresh empty database, dropped after the test."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield make_conninfo(server.conninfo, dbname=name)
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
