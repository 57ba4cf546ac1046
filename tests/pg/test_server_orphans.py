"""Whatever happens to pgdyno, its server ends, and the next start removes what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgdyno.servers import orphans, processes
from pgdyno.servers.orphans import Entry, Ledger

pytestmark = pytest.mark.pg

LAB = """
import sys, time
from pathlib import Path
from pgdyno.hosts.local import Local
from pgdyno.model import SystemChoice
from pgdyno.servers.orphans import Ledger
from pgdyno.servers.provision import provision
data = sys.argv[2] if len(sys.argv) > 2 else None
try:
    with provision(SystemChoice(data=data), Local(), ledger=Ledger(Path(sys.argv[1]))) as server:
        print(server.postmaster_pid, flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def within(deadline_s: float, condition: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + deadline_s
    while time.monotonic() < end_s:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


class Lab:
    """A process of its own that provisions a server and waits."""

    def __init__(self, ledger: Ledger, *more: str) -> None:
        self.ledger = ledger
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAB, str(ledger.folder), *more],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, number: signal.Signals) -> int:
        # As a terminal does it: to the whole process group.
        os.killpg(self.process.pid, number)
        return self.process.wait(timeout=30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start(ledger: Ledger) -> Iterator[Callable[..., Lab]]:
    labs: list[Lab] = []

    def start_one(*more: str) -> Lab:
        labs.append(Lab(ledger, *more))
        return labs[-1]

    yield start_one
    for lab in labs:
        lab.close()
    orphans.sweep(ledger)


def entry_of(ledger: Ledger) -> Entry:
    (entry,) = ledger.entries()
    return entry


def test_ctrl_c_stops_and_removes(start: Callable[..., Lab], ledger: Ledger) -> None:
    lab = start()
    server_pid = int(lab.answer())
    entry = entry_of(ledger)
    assert os.getsid(server_pid) != os.getsid(lab.process.pid)
    lab.end(signal.SIGINT)
    assert lab.answer() == "interrupted"
    assert processes.identify(server_pid) is None
    assert not entry.folders[0].exists()
    assert list(ledger.entries()) == []


def test_a_killed_lab_takes_its_server_along_and_the_next_start_cleans_up(
    start: Callable[..., Lab], ledger: Ledger
) -> None:
    lab = start()
    server_pid = int(lab.answer())
    entry = entry_of(ledger)
    assert entry.server is not None
    assert entry.server.pid == server_pid
    lab.end(signal.SIGKILL)
    assert within(10, lambda: processes.processes_in(entry.data) == ())
    assert entry.data.exists()
    after = start()
    next_pid = int(after.answer())
    assert not entry.folders[0].exists()
    assert entry_of(ledger).server == processes.identify(next_pid)


def test_a_server_that_outlived_its_lab_is_ended_by_what_was_recorded(
    start: Callable[..., Lab], ledger: Ledger
) -> None:
    lab = start()
    server_pid = int(lab.answer())
    entry = entry_of(ledger)
    # A stopped process does not die of SIGQUIT: it is what hangs when its lab is killed.
    os.kill(server_pid, signal.SIGSTOP)
    lab.end(signal.SIGKILL)
    assert processes.processes_in(entry.data) != ()
    (notice,) = orphans.sweep(ledger)
    assert "was cleaned up" in notice
    assert processes.processes_in(entry.data) == ()
    assert processes.identify(server_pid) is None
    assert not entry.folders[0].exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.25, 0.45, 0.6, 0.75])
def test_a_kill_at_any_moment_of_the_start_leaves_nothing(
    start: Callable[..., Lab], ledger: Ledger, delay_s: float
) -> None:
    lab = start()
    assert within(20, lambda: any(True for _ in ledger.entries()))
    time.sleep(delay_s)
    entry = entry_of(ledger)
    lab.end(signal.SIGKILL)
    orphans.sweep(ledger)
    assert list(ledger.entries()) == []
    assert not entry.folders[0].exists()
    assert within(5, lambda: processes.processes_in(entry.data) == ())


def test_a_kept_folder_whose_making_was_killed_can_be_used_again(
    start: Callable[..., Lab], ledger: Ledger
) -> None:
    data = Path("/var/tmp") / f"pgdyno-test-kept-{os.getpid()}"
    try:
        lab = start(str(data))
        assert within(20, lambda: any(data.glob("pgdyno-*/base")))
        lab.end(signal.SIGKILL)
        after = start(str(data))
        assert int(after.answer()) > 0
        after.end(signal.SIGKILL)
        # Killed with data in it: they stay, and the server recovers.
        assert (data / "PG_VERSION").exists()
        again = start(str(data))
        assert int(again.answer()) > 0
        again.end(signal.SIGINT)
        assert (data / "PG_VERSION").exists()
        assert list(ledger.entries()) == []
    finally:
        import shutil

        shutil.rmtree(data, ignore_errors=True)


def test_two_labs_do_not_end_each_others_servers(start: Callable[..., Lab], ledger: Ledger) -> None:
    first, second = start(), start()
    pids = [int(first.answer()), int(second.answer())]
    assert len(list(ledger.entries())) == 2
    assert all(processes.identify(pid) is not None for pid in pids)
