"""Ten thousand connections from one process: how fast they open, and what they hold."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.pg.engine_runs import assert_adds_up, end_engine, start_engine, write_plan

pytestmark = pytest.mark.pg

CLIENTS = 10_000
FILES = CLIENTS + 200


def peak_bytes(pid: int) -> int:
    """The largest resident size a process had."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def many_files() -> None:
    """Each side needs a descriptor for every connection; both raise their own soft limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < FILES:
        pytest.skip(f"{FILES} open files are needed, the hard limit is {hard} (ulimit -Hn)")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("reactor", ["io_uring", "epoll"])
@pytest.mark.usefixtures("many_files")
def test_ten_thousand_connections(tmp_path: Path, reactor: str, threads: int) -> None:
    socket = tmp_path / ".s.PGSQL.5432"
    null_server = start_engine("null-server", "--listen", socket)
    assert null_server.stdout is not None
    try:
        assert null_server.stdout.readline(), "the null server does not listen"
        plan = write_plan(
            tmp_path,
            f"host={tmp_path} user=nobody dbname=none",
            "SELECT 1;",
            clients=CLIENTS,
            threads=threads,
            reactor=reactor,
            duration_s=1.0,
            session_settings=[],
            load={"kind": "open", "rate_per_s": 5000},
        )
        run = end_engine(start_engine("run", plan), tmp_path)
        assert run.status == 0, run.error
        server_bytes = peak_bytes(null_server.pid)
    finally:
        null_server.send_signal(signal.SIGTERM)
        try:
            null_server.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.kill(null_server.pid, signal.SIGKILL)
            null_server.communicate()
            raise
    summary = run.summary
    assert (summary.clients_connected, summary.outcome) == (CLIENTS, "completed")
    assert summary.timeline.connect_end_ns is not None
    connect_s = (summary.timeline.connect_end_ns - summary.timeline.connect_begin_ns) / 1e9
    assert connect_s < 5, connect_s
    assert summary.own_cost is not None
    # Everything the engine holds, histograms included, is below the bar for its clients alone.
    assert summary.own_cost.max_rss_bytes < CLIENTS * 64_000
    assert summary.own_cost.max_rss_bytes + server_bytes < 640_000_000
    assert summary.measurement.committed > 3000
    assert_adds_up(run)
