"""Where data and sockets may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.hosts.local import Local
from pgdyno.servers import folders
from pgdyno.servers.folders import DataFolderFacts, judge_data_folder

pytestmark = pytest.mark.unit

DATA = Path("/data")
OURS = DataFolderFacts(exists=True, empty=False, major="18", ours=True)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (DataFolderFacts(exists=False), "new"),
        (DataFolderFacts(exists=True), "new"),
        (OURS, "reuse"),
    ],
)
def test_folders_that_can_be_used(facts: DataFolderFacts, state: str) -> None:
    assert judge_data_folder(DATA, facts, "18") == state


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (DataFolderFacts(exists=True, is_folder=False), "is not a folder"),
        (DataFolderFacts(exists=True, empty=False), "is not empty and holds no cluster"),
        (
            DataFolderFacts(exists=True, empty=False, major="18"),
            "PostgreSQL 18 that pgdyno did not make",
        ),
        (
            DataFolderFacts(exists=True, empty=False, major="15", ours=True),
            "PostgreSQL 15, but PostgreSQL 18 was chosen",
        ),
        (
            DataFolderFacts(exists=True, empty=False, major="18", ours=True, running_pid=7),
            r"in use by a running server \(process 7\)",
        ),
    ],
)
def test_folders_that_are_refused(facts: DataFolderFacts, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        judge_data_folder(DATA, facts, "18")


def test_the_deepest_mount_counts() -> None:
    mounts = (
        "/dev/a / ext4 rw 0 0\ntmpfs /var/tmp tmpfs rw 0 0\n/dev/b /var/tmp/my\\040disk xfs rw 0 0"
    )
    assert folders.filesystem_of(Path("/var"), mounts) == "ext4"
    assert folders.filesystem_of(Path("/var/tmp/x"), mounts) == "tmpfs"
    assert folders.filesystem_of(Path("/var/tmpx"), mounts) == "ext4"
    assert folders.filesystem_of(Path("/var/tmp/my disk/x"), mounts) == "xfs"


def test_tmpdir_is_honoured_where_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert folders.temporary_root(Local(), None) == tmp_path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    assert folders.temporary_root(Local(), None) != tmp_path / "missing"


def test_a_socket_whose_path_would_be_too_long_lies_in_tmp() -> None:
    assert folders.socket_folder(Path("/var/tmp"), "pgdyno-1") == Path("/var/tmp/pgdyno-1")
    assert folders.socket_folder(Path("/var/tmp/a,b"), "pgdyno-1") == Path("/tmp/pgdyno-1")
    assert folders.socket_folder(Path("/" + "d" * 90), "pgdyno-1") == Path("/tmp/pgdyno-1")
