"""Whatever happens to pgdyno, its server ends, and the next start removes what is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgdyno.hosts.base import Command
from pgdyno.hosts.local import Local
from pgdyno.servers import folders, orphans, processes
from pgdyno.servers.orphans import Entry, Ledger
from pgdyno.servers.privileges import server_user

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
    assert within(30, lambda: processes.processes_in(entry.data, entry.program) == ())
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
    assert processes.processes_in(entry.data, entry.program) != ()
    (notice,) = orphans.sweep(ledger)
    assert "was cleaned up" in notice
    assert processes.processes_in(entry.data, entry.program) == ()
    assert processes.identify(server_pid) is None
    assert not entry.folders[0].exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.25, 0.45, 0.6, 0.75])
def test_a_kill_at_any_moment_of_the_start_leaves_nothing(
    start: Callable[..., Lab], ledger: Ledger, delay_s: float
) -> None:
    lab = start()
    assert within(40, lambda: any(True for _ in ledger.entries()))
    time.sleep(delay_s)
    entry = entry_of(ledger)
    lab.end(signal.SIGKILL)
    orphans.sweep(ledger)
    assert list(ledger.entries()) == []
    assert not entry.folders[0].exists()
    assert within(30, lambda: processes.processes_in(entry.data, entry.program) == ())


@pytest.mark.parametrize("delay_s", [0.05, 0.2, 0.4, 0.6])
def test_ctrl_c_at_any_moment_of_the_start_leaves_nothing(
    start: Callable[..., Lab], ledger: Ledger, delay_s: float
) -> None:
    lab = start()
    assert within(40, lambda: any(True for _ in ledger.entries()))
    time.sleep(delay_s)
    entry = entry_of(ledger)
    assert lab.end(signal.SIGINT) == 0
    assert list(ledger.entries()) == []
    assert not entry.folders[0].exists()
    assert processes.processes_in(entry.data, entry.program) == ()


def test_a_kept_folder_whose_making_was_killed_can_be_used_again(
    start: Callable[..., Lab], ledger: Ledger
) -> None:
    data = Path("/var/tmp") / f"pgdyno-test-kept-{os.getpid()}"
    try:
        lab = start(str(data))
        assert within(40, lambda: any(data.glob("pgdyno-*/base")))
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
        shutil.rmtree(data, ignore_errors=True)


def test_a_server_somebody_else_started_in_kept_data_is_left_alone(
    start: Callable[..., Lab], ledger: Ledger
) -> None:
    data = Path("/var/tmp") / f"pgdyno-test-taken-{os.getpid()}"
    sockets = Path("/var/tmp") / f"pgdyno-test-sockets-{os.getpid()}"
    theirs = shell = None
    try:
        lab = start(str(data))
        assert int(lab.answer()) > 0
        entry = entry_of(ledger)
        lab.end(signal.SIGKILL)
        assert within(30, lambda: processes.processes_in(entry.data, entry.program) == ())
        user = server_user()
        folders.make_private_folders(Local(), user, [sockets])
        words = [str(entry.program), "-D", str(data), "-h", "", "-k", str(sockets)]
        theirs = Local().start(Command(words=words, user=user), log=None, pipe=False)
        assert within(30, lambda: processes.postmaster_of(data) is not None)
        shell = subprocess.Popen(["sleep", "60"], cwd=data)
        (notice,) = orphans.sweep(ledger)
        assert "its data stays" in notice
        assert not entry.folders[0].exists()
        assert theirs.status() is None
        assert shell.poll() is None
    finally:
        if theirs is not None:
            theirs.send(signal.SIGQUIT)
            theirs.wait(deadline_s=10)
        if shell is not None:
            shell.kill()
            shell.wait(timeout=5)
        shutil.rmtree(data, ignore_errors=True)
        shutil.rmtree(sockets, ignore_errors=True)


def test_two_labs_do_not_end_each_others_servers(start: Callable[..., Lab], ledger: Ledger) -> None:
    first, second = start(), start()
    pids = [int(first.answer()), int(second.answer())]
    assert len(list(ledger.entries())) == 2
    assert all(processes.identify(pid) is not None for pid in pids)
