"""The ledger: what it records, whom it calls an orphan, and that it removes nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.errors import PgdynoError
from pgdyno.servers import orphans, processes
from pgdyno.servers.orphans import Entry, Here, Judgement, Ledger, judge
from pgdyno.servers.processes import ProcessIdentity

pytestmark = pytest.mark.unit

SLEEP = Path(shutil.which("sleep") or "/bin/sleep")
HERE = Here(machine="me", boot_id="b", pid_namespace="n")


def entry(tmp_path: Path, **changes: object) -> Entry:
    base = tmp_path / "pgdyno-abc"
    made = orphans.new_entry("abc", folders=(base,), data=base / "data", program=SLEEP, keep=False)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "boot_id", "namespace", "owner_lives", "judgement"),
    [
        ("me", "b", "n", True, "in use"),
        ("me", "b", "n", False, "orphan"),
        ("me", "earlier", "n", False, "orphan"),
        ("me", "earlier", "n", True, "orphan"),
        ("me", "b", "container", False, "unknown"),
        ("other", "b", "n", False, "unknown"),
    ],
)
def test_judgement(  # noqa: PLR0917
    tmp_path: Path,
    machine: str,
    boot_id: str,
    namespace: str,
    owner_lives: bool,
    judgement: Judgement,
) -> None:
    one = entry(tmp_path, machine=machine, boot_id=boot_id, pid_namespace=namespace)
    assert judge(one, HERE, owner_lives=owner_lives) == judgement


def test_what_is_recorded_is_read_back_and_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state")
    one = entry(tmp_path)
    ledger.record(one)
    assert list(ledger.entries()) == [one]
    with_server = ledger.with_server(one, os.getpid())
    assert with_server.server == processes.identify(os.getpid())
    assert list(ledger.entries()) == [with_server]
    ledger.forget(one)
    assert list(ledger.entries()) == []


def test_files_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for name, text in (("a", "{"), ("b", '{"format": 99}'), ("c", "[]")):
        (tmp_path / f"{name}.json").write_text(text)
    assert orphans.sweep(ledger) == ()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_ledger_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PgdynoError, match="cannot record the server"):
        Ledger(tmp_path / "file").record(entry(tmp_path))


def test_an_orphans_folder_is_removed_and_a_living_owners_is_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state")
    one = entry(tmp_path)
    one.data.mkdir(parents=True)
    ledger.record(one)
    assert orphans.sweep(ledger) == ()
    assert one.data.is_dir()
    ledger.record(replace(one, owner=ProcessIdentity(pid=os.getpid(), start_ticks=1)))
    (notice,) = orphans.sweep(ledger)
    assert "was cleaned up" in notice
    assert not one.folders[0].exists()
    assert list(ledger.entries()) == []


def test_kept_data_stay(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "state")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "PG_VERSION").write_text("18")
    base = tmp_path / "pgdyno-abc"
    base.mkdir()
    gone = ProcessIdentity(pid=os.getpid(), start_ticks=1)
    ledger.record(entry(tmp_path, data=kept, keep=True, owner=gone))
    (notice,) = orphans.sweep(ledger)
    assert f"its data stays in '{kept}'" in notice
    assert (kept / "PG_VERSION").exists()
    assert not base.exists()


def test_only_folders_of_our_name_are_removed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "pgdyno-abc"
    precious.mkdir()
    link.symlink_to(precious)
    assert orphans.remove_folders(entry(tmp_path, folders=(precious, link))) == (precious, link)
    assert precious.is_dir()


def test_a_process_is_found_by_program_and_folder_together(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    ours = subprocess.Popen(["sleep", "60"], cwd=inside)
    elsewhere = subprocess.Popen(["sleep", "60"], cwd=outside)
    shell = subprocess.Popen(["sh", "-c", "read line"], cwd=inside, stdin=subprocess.PIPE)
    try:
        assert [one.pid for one in processes.processes_in(inside, SLEEP)] == [ours.pid]
        assert processes.kill_all_in(inside, SLEEP)
        assert ours.wait(timeout=5) == -signal.SIGKILL
        assert (elsewhere.poll(), shell.poll()) == (None, None)
    finally:
        for process in (ours, elsewhere, shell):
            process.kill()
            process.communicate(timeout=5)


def test_a_zombie_and_a_reused_number_are_not_the_process() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    known = processes.identify(sleeper.pid)
    assert known is not None
    assert processes.is_alive(known)
    assert not processes.is_alive(replace(known, start_ticks=known.start_ticks - 1))
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.is_alive(known)
    sleeper.wait(timeout=5)
